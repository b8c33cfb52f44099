"""What a node's annotations say of it, from the last look: pure.

``temper.codes/agent-status`` is ``<mode>`` or ``<mode>:<reason>``. The density scorer reads the
mode, the ``tier-*`` keys and what can be fenced, which no other object of the cluster says.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from attrs import field, frozen

from temper_core import LayerPlan, Snapshot, Status, Tier

PREFIX = "temper.codes/"
STATUS = f"{PREFIX}agent-status"
MODE = f"{PREFIX}agent-mode"
MESSAGE = f"{PREFIX}agent-message"
GENERATION = f"{PREFIX}config-generation"
UPDATED = f"{PREFIX}tiers-updated"
RESTORED = f"{PREFIX}restored"
LEFT = f"{PREFIX}restore-left"
FENCED = f"{PREFIX}fenced-cores"
BUDGET = f"{PREFIX}fence-budget-cores"
CORE_CPUS = f"{PREFIX}threads-per-core"
FENCING_TIERS = (Tier.CRITICAL, Tier.HIGH)
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
"""Every annotation that the agent writes, and takes away when it stops."""


@frozen
class AnnotationValues:
    """What the annotations should say. ``moving`` alone are no cause to write."""

    standing: Annotations
    moving: Annotations = field(factory=dict)


def annotations_of(snapshot: Snapshot) -> AnnotationValues:
    """Return what to say of the node as it was last seen."""
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


def changes(told: AnnotationValues, present: Annotations, *, is_refresh: bool) -> Patch:
    """Return what to write over *present*: nothing where all of it is there already.

    What moves goes along with what changed, or where *is_refresh* says that it is time.
    """
    differs = {key: value for key, value in told.standing.items() if present.get(key) != value}
    if not differs and not is_refresh:
        return {}
    moved = {key: value for key, value in told.moving.items() if present.get(key) != value}
    return {**differs, **moved}


def removals(present: Annotations) -> Patch:
    """Return what takes away all that the agent wrote."""
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
    """Say how many whole cores can be fenced, and how many critical and high ask for.

    The engine takes the size of the first core for the size of all. So is counted here.
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
