"""Outcomes of an admission."""

from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of one admission, and the label of its metric."""

    LOWERED = "lowered"
    ALREADY_LOWERED = "already_lowered"
    NOTHING_TO_LOWER = "nothing_to_lower"
    OPTED_OUT = "opted_out"
    CRITICAL = "critical"
    PRIORITY_UNKNOWN = "priority_unknown"
    GUARANTEED = "guaranteed"
    POD_LEVEL = "pod_level_resources"
    STATIC = "static_pod"
    INVALID = "invalid"
    NO_ROOM = "no_room"
    NOT_OURS = "not_ours"
    UNREADABLE = "unreadable"
    TOO_LARGE = "too_large"
    REFUSED = "refused"
    FAILED = "failed"
