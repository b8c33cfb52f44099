"""The tier and the workload profile that hot threads need for cores of their own."""

from collections.abc import Iterator
from enum import StrEnum

from attrs import frozen

from temper_core import FENCING_TIERS, Tier
from temper_plugin_rightsizer.advice.records import Advice, Verdict

BY_PRIORITY = "give the pod the PriorityClass of high"
BY_RULE = 'set tier = "high" in its [[workloads]] rule'
BY_NEW_RULE = 'give it a [[workloads]] rule with tier = "high"'


class SuggestionKind(StrEnum):
    """The suggested change."""

    TIER = "tier"
    PROFILE = "profile"


@frozen
class PodTreatment:
    """The present treatment of a container's threads by Temper.

    ``tier`` is empty if it is not known, or if the pod is in the system layer. ``profile`` is the
    id of its workload profile, or empty. ``has_exclusive_group`` is whether that has a thread group
    with the treatment ``exclusive``. ``raised_by`` says how the pod gets the tier high.
    """

    tier: str = ""
    profile: str = ""
    has_exclusive_group: bool = False
    raised_by: str = BY_PRIORITY


@frozen
class Suggestion:
    """A change of the tier or of the profile. ``wanted`` is the tier, or empty for a profile."""

    kind: SuggestionKind
    wanted: str
    reason: str


def suggestions(advice: Advice, now: PodTreatment) -> tuple[Suggestion, ...]:
    """Return what a container with *advice* needs, so that its hot threads do not share cores.

    Without a hot thread there is none: how much a program matters is not measured.
    """
    return tuple(_suggested(advice, now))


def _suggested(advice: Advice, now: PodTreatment) -> Iterator[Suggestion]:
    if advice.verdict is not Verdict.EXCLUSIVE or not now.tier:
        return
    threads = ", ".join(advice.hot_threads) or "the hot threads"
    if now.tier not in FENCING_TIERS:
        yield Suggestion(
            SuggestionKind.TIER,
            Tier.HIGH,
            f"only the tiers critical and high give threads cores of their own, and the tier is "
            f"{now.tier}: if users wait for {threads}, {now.raised_by}",
        )
    if not now.has_exclusive_group:
        profile = f"the profile {now.profile} has" if now.profile else "there is"
        yield Suggestion(
            SuggestionKind.PROFILE,
            "",
            f"{profile} no exclusive thread group for {threads}: --output profile writes one",
        )
