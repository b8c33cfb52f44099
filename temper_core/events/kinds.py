"""The kinds of events that the agent itself records. ``docs/events.md`` is made from this table."""

from temper_core.records.events import EventKind, EventLevel

AGENT = "agent"
"""The source of events that no instrument records."""

_WARNING, _ERROR = EventLevel.WARNING, EventLevel.ERROR

AGENT_STARTED = EventKind(
    "agent_started",
    "The agent has started; the reason is set if the agent before it did not stop in order.",
)
AGENT_STOPPED = EventKind("agent_stopped", "The agent stops in order.")
MODE_CHANGED = EventKind(
    "mode_changed", "The agent enters or leaves observe-only mode; the subject is the new mode."
)
SAFE_MODE_REQUESTED = EventKind(
    "safe_mode_requested",
    "A requester, the subject, requests safe mode or changes its reason.",
    _WARNING,
)
SAFE_MODE_RELEASED = EventKind(
    "safe_mode_released", "A requester, the subject, withdraws its request for safe mode."
)
SAFE_MODE_ENTERED = EventKind(
    "safe_mode_entered",
    "The node is in safe mode; the subject is the cause, and the requester lists all requesters.",
    _WARNING,
)
SAFE_MODE_LEFT = EventKind(
    "safe_mode_left", "The node is out of safe mode; the subject is the cause that has ended."
)
ENGINE_RELOADED = EventKind(
    "engine_reloaded", "An engine was started, or let through its gate; the subject is the cause."
)
ENGINE_ATTACHED = EventKind("engine_attached", "An engine is attached and proven.")
ENGINE_DETACHED = EventKind("engine_detached", "No engine is attached any more.")
ENGINE_SWAPPED = EventKind(
    "engine_swapped", "A planned change of the engine is proven; the subject is warm or cold."
)
SWAP_FAILED = EventKind(
    "engine_swap_failed",
    "The next engine could not take over; the subject is the kind of its end.",
    _WARNING,
)
ENGINE_EJECTED = EventKind(
    "engine_ejected",
    "An engine ended without a request or did not attach; the subject is the kind of its end.",
    _ERROR,
)
DEMOTION_BEGAN = EventKind(
    "demotion_began", "The plan gives a tier or a group less than it is entitled to.", _WARNING
)
DEMOTION_ENDED = EventKind(
    "demotion_ended", "The plan gives a tier or a group its full share again."
)
VIOLATION_BEGAN = EventKind(
    "violation_began", "An invariant is broken; the level is that of its severity.", _WARNING
)
VIOLATION_ENDED = EventKind("violation_ended", "An invariant that was broken holds again.")
PROFILE_LOADED = EventKind(
    "profile_loaded", "A profile was added or edited after the agent's start."
)
PROFILE_FAILED = EventKind("profile_failed", "A profile could not be loaded.", _WARNING)
PROFILE_DROPPED = EventKind("profile_dropped", "A profile was removed.")
PLUGIN_SET_ASIDE = EventKind(
    "plugin_set_aside", "A plugin, or a part of it, is not called any more.", _ERROR
)
PLUGIN_REVIVED = EventKind("plugin_revived", "A plugin that was set aside is called again.")
INSTRUMENT_FAILED = EventKind("instrument_failed", "An instrument could not be opened.", _ERROR)
TRIAL_BEGAN = EventKind("trial_began", "A trial profile is in force.")
TRIAL_ENDED = EventKind("trial_ended", "A trial profile is not in force any more.")
STATE_TRIMMED = EventKind(
    "state_trimmed", "Files were removed from an instrument's full state directory.", _WARNING
)
CAPTURE = EventKind(
    "capture",
    "Protected data was read or recorded; repeats by one requester count once a minute at most.",
)
REQUEST = EventKind("request", "A request over HTTP that acts was carried out.")
REQUEST_REFUSED = EventKind(
    "request_refused", "A request over HTTP that acts was refused, or failed.", _WARNING
)
EVENTS_DROPPED = EventKind(
    "events_dropped",
    "Events came too fast and were only counted; the subject is their kind or instrument.",
    _WARNING,
)
EVENTS_DAMAGED = EventKind(
    "events_damaged", "Lines of the file of events could not be read and were skipped.", _WARNING
)

KINDS: tuple[EventKind, ...] = (
    AGENT_STARTED,
    AGENT_STOPPED,
    MODE_CHANGED,
    SAFE_MODE_REQUESTED,
    SAFE_MODE_RELEASED,
    SAFE_MODE_ENTERED,
    SAFE_MODE_LEFT,
    ENGINE_RELOADED,
    ENGINE_ATTACHED,
    ENGINE_DETACHED,
    ENGINE_SWAPPED,
    SWAP_FAILED,
    ENGINE_EJECTED,
    DEMOTION_BEGAN,
    DEMOTION_ENDED,
    VIOLATION_BEGAN,
    VIOLATION_ENDED,
    PROFILE_LOADED,
    PROFILE_FAILED,
    PROFILE_DROPPED,
    PLUGIN_SET_ASIDE,
    PLUGIN_REVIVED,
    INSTRUMENT_FAILED,
    TRIAL_BEGAN,
    TRIAL_ENDED,
    STATE_TRIMMED,
    CAPTURE,
    REQUEST,
    REQUEST_REFUSED,
    EVENTS_DROPPED,
    EVENTS_DAMAGED,
)
