"""The agent's annotations of its node, computed from a snapshot.

``temper.codes/agent-status`` is ``<mode>`` or ``<mode>:<reason>``. The density scorer reads the
mode, the ``tier-*`` keys and the fence keys, which no other object of the cluster has.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from attrs import field, frozen

from temper_core import FENCING_TIERS, LayerPlan, Snapshot, Status, Tier

PREFIX = "temper.codes/"
STATUS = f"{PREFIX}agent-status"
MODE = f"{PREFIX}agent-mode"
MESSAGE = f"{PREFIX}agent-message"
GENERATION = f"{PREFIX}config-generation"
UPDATED = f"{PREFIX}tiers-updated"
RESTORED = f"{PREFIX}restored"
LEFT = f"{PREFIX}restore-left"
FORMER = f"{PREFIX}agent-former-requests"
FENCED = f"{PREFIX}fenced-cores"
BUDGET = f"{PREFIX}fence-budget-cores"
CORE_CPUS = f"{PREFIX}threads-per-core"
LONGEST_MESSAGE = 500

Annotations = Mapping[str, str]
Patch = dict[str, str | None]


def tier_key(tier: Tier, what: str) -> str:
    """Return the key of a tier's number. *what* is ``pods`` or ``cpu-millis``."""
    return f"{PREFIX}tier-{tier}-{what}"


OURS = (
    STATUS,
    MODE,
    MESSAGE,
    GENERATION,
    UPDATED,
    FENCED,
    BUDGET,
    CORE_CPUS,
    *(tier_key(tier, what) for tier in Tier for what in ("pods", "cpu-millis")),
)
"""Every annotation of the agent's state, which it removes when it stops."""

ANSWERS = (RESTORED, LEFT, FORMER)
"""What the agent says of requests, whatever its options are. It removes these, too."""


@frozen
class AnnotationValues:
    """The values to write. A change of ``moving`` ones alone does not cause a write."""

    standing: Annotations
    moving: Annotations = field(factory=dict)


def annotations_of(snapshot: Snapshot) -> AnnotationValues:
    """Return the annotations for *snapshot*."""
    status = snapshot.status
    standing = {
        STATUS: status_text(status),
        MODE: str(status.mode),
        GENERATION: str(status.generation),
    }
    moving = {MESSAGE: status.detail[:LONGEST_MESSAGE]}
    if snapshot.plan is not None:
        standing |= _tiers(snapshot.plan)
        standing |= _cores(snapshot.plan, snapshot.reserve_cores)
        moving[UPDATED] = _rfc3339(snapshot.at)
    return AnnotationValues(standing, moving)


def status_text(status: Status) -> str:
    """Return ``<mode>`` or ``<mode>:<reason>``."""
    return f"{status.mode}:{status.reason}" if status.reason else str(status.mode)


def changes(values: AnnotationValues, present: Annotations, *, is_refresh: bool) -> Patch:
    """Return the patch of *present*: empty if all standing values are there already.

    Moving values are included if a standing one changed, or with *is_refresh*.
    """
    differs = {key: value for key, value in values.standing.items() if present.get(key) != value}
    if not differs and not is_refresh:
        return {}
    moved = {key: value for key, value in values.moving.items() if present.get(key) != value}
    return {**differs, **moved}


def removals(present: Annotations) -> Patch:
    """Return the patch that removes all of the agent's annotations."""
    return {key: None for key in OURS if key in present}


def _tiers(plan: LayerPlan) -> dict[str, str]:
    pods: Counter[Tier] = Counter()
    millis: Counter[Tier] = Counter()
    for assignment in plan.assignments:
        pods[assignment.tier] += 1
        millis[assignment.tier] += assignment.pod.cpu_request_millis
    return {
        key: str(value)
        for tier in Tier
        for key, value in (
            (tier_key(tier, "pods"), pods[tier]),
            (tier_key(tier, "cpu-millis"), millis[tier]),
        )
    }


def _cores(plan: LayerPlan, reserve_cores: int) -> dict[str, str]:
    """Return the whole cores that can be fenced, and those that critical and high layers need.

    The engine takes the first core's number of CPUs for every core, and so does this count.
    """
    unit = len(plan.machine.siblings[0])
    cores = min(plan.machine.cores, len(plan.machine.cpus) // unit)
    owned = sum(layer.cpus_min or 0 for layer in plan.layers if layer.tier in FENCING_TIERS)
    return {
        FENCED: str(-(-owned // unit)),
        BUDGET: str(max(0, cores - reserve_cores)),
        CORE_CPUS: str(unit),
    }


def _rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
