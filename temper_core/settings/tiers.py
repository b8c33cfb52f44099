"""The settings of tiers and of the plan that is made of them."""

from itertools import pairwise

from attrs import frozen
from attrs.validators import and_, deep_iterable, ge, le, matches_re, max_len

from temper_core.records.tiers import LayerKind, Tier
from temper_core.settings.fields import MILLISECOND_US, SECOND_US, setting


@frozen
class PriorityMapping:
    """Smallest ``pod.spec.priority`` of each tier. Below ``low`` is background."""

    critical: int = setting(1_000_000, "Smallest priority of the critical tier.")
    high: int = setting(100_000, "Smallest priority of the high tier.")
    normal: int = setting(0, "Smallest priority of the normal tier.")
    low: int = setting(-100, "Smallest priority of the low tier; anything below is background.")
    system: int = setting(
        2_000_000_000,
        "From here on a pod lives in the system layer; Kubernetes' own critical classes do.",
    )

    def __attrs_post_init__(self) -> None:
        steps = [self.system, self.critical, self.high, self.normal, self.low]
        if any(higher <= lower for higher, lower in pairwise(steps)):
            raise ValueError("must fall from system over critical, high, normal to low")


@frozen
class TierSettings:
    """What one tier's layer is made of."""

    kind: LayerKind = setting(
        LayerKind.OPEN,
        "Confined fences whole cores, Grouped prefers its own CPUs, Open takes what is idle.",
    )
    protected: bool = setting(False, "Whether other layers keep off this layer's idle CPUs.")
    preempt: bool = setting(False, "Whether a waking thread displaces lower tiers.")
    slice_us: int = setting(
        20 * MILLISECOND_US, "Time slice in µs.", validator=and_(ge(100), le(SECOND_US))
    )
    weight: int = setting(
        100,
        "Weight between layers when CPUs are short, 1 to 10000.",
        validator=and_(ge(1), le(10_000)),
    )
    util_range: tuple[float, float] = setting(
        (0.5, 0.8), "The layer shrinks below and grows above these utilisations of its CPUs."
    )

    def __attrs_post_init__(self) -> None:
        low, high = self.util_range
        if not 0 <= low < high:
            raise ValueError(
                f"util_range must be [low, high] with 0 <= low < high, not {low}, {high}"
            )


@frozen
class Tiers:
    """One table per tier."""

    critical: TierSettings = TierSettings(
        LayerKind.CONFINED, True, True, 5 * MILLISECOND_US, 1000, (0.4, 0.7)
    )
    high: TierSettings = TierSettings(
        LayerKind.GROUPED, True, True, 10 * MILLISECOND_US, 500, (0.4, 0.7)
    )
    normal: TierSettings = TierSettings(LayerKind.GROUPED, False, False, 20 * MILLISECOND_US, 100)
    low: TierSettings = TierSettings(LayerKind.OPEN, False, False, 30 * MILLISECOND_US, 50)
    background: TierSettings = TierSettings(LayerKind.OPEN, False, False, 5 * MILLISECOND_US, 10)

    def of(self, tier: Tier) -> TierSettings:
        """Return the settings of *tier*."""
        found: TierSettings = getattr(self, tier.value)
        return found


@frozen
class PlanSettings:
    """How the node's cores are shared out."""

    reserve_cores: int = setting(
        1, "Cores that no layer may own, so that everybody else can run.", validator=ge(1)
    )
    headroom_cores: int = setting(
        1,
        "Cores beyond its requests that a layer may grow into where they are to spare, so that "
        "the next pods need no other engine.",
        validator=ge(0),
    )
    shrink_after_s: float = setting(
        600.0,
        "Seconds for which a layer must have been larger than its pods need before it shrinks.",
        validator=ge(0),
    )
    system_slice_us: int = setting(
        5 * MILLISECOND_US,
        "Time slice of the system layer in µs.",
        validator=and_(ge(100), le(SECOND_US)),
    )
    open_slice_us: int = setting(
        5 * MILLISECOND_US,
        "Time slice of the shared Open layer in µs; how long others wait behind best effort.",
        validator=and_(ge(100), le(SECOND_US)),
    )
    system_processes: tuple[str, ...] = setting(
        ("kubelet", "containerd", "crio", "dockerd"),
        "Root processes, by the first 15 bytes of their name, that the system layer keeps served.",
    )
    system_process_cgroups: tuple[str, ...] = setting(
        ("system.slice/", "runtime.slice/", "user.slice/", "/"),
        "Where those processes count, as prefixes of their cgroup ('/' is the root alone): a pod "
        "could give any name to a process of its own.",
        validator=and_(max_len(8), deep_iterable(matches_re(r"/|[^/]+(/[^/]+)*/"))),
    )
    system_cgroups: tuple[str, ...] = setting(
        (
            "system.slice/kubelet.service/",
            "system.slice/containerd.service/",
            "system.slice/crio.service/",
            "system.slice/docker.service/",
            "init.scope/",
        ),
        "cgroups, with a trailing slash, whose threads the system layer keeps served.",
    )
