"""The settings of tiers and of the plan."""

from itertools import pairwise

from attrs import frozen
from attrs.validators import and_, deep_iterable, ge, le, matches_re, max_len

from temper_core.records.tiers import Isolation, LayerKind, Tier
from temper_core.settings.fields import MILLISECOND_US, SECOND_US, setting

MOST_HEADROOM = 4096
"""The cores of the largest machine."""


@frozen
class PriorityMapping:
    """Smallest ``pod.spec.priority`` of each tier. Below ``low`` is background."""

    critical: int = setting(1_000_000, "Smallest priority of the critical tier.")
    high: int = setting(100_000, "Smallest priority of the high tier.")
    normal: int = setting(0, "Smallest priority of the normal tier.")
    low: int = setting(-100, "Smallest priority of the low tier; anything below is background.")
    system: int = setting(
        2_000_000_000,
        "Smallest priority of pods in the system layer; Kubernetes' own critical classes have it.",
    )

    def __attrs_post_init__(self) -> None:
        steps = [self.system, self.critical, self.high, self.normal, self.low]
        if any(higher <= lower for higher, lower in pairwise(steps)):
            raise ValueError("must fall from system over critical, high, normal to low")


@frozen
class TierSettings:
    """The properties of one tier's layer."""

    kind: LayerKind = setting(
        LayerKind.OPEN,
        "Confined fences whole cores, Grouped prefers its own CPUs, Open uses idle CPUs.",
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
    isolation: Isolation = setting(
        Isolation.STRICT,
        "strict: protected and preempt say what happens to idle CPUs. lend: other threads use them "
        "until a thread of the tier wakes up; protected is off and preempt is on.",
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
        LayerKind.CONFINED, True, False, 5 * MILLISECOND_US, 1000, (0.4, 0.7)
    )
    high: TierSettings = TierSettings(
        LayerKind.GROUPED, True, True, 10 * MILLISECOND_US, 500, (0.4, 0.7)
    )
    normal: TierSettings = TierSettings(LayerKind.GROUPED, False, False, 20 * MILLISECOND_US, 100)
    low: TierSettings = TierSettings(LayerKind.OPEN, False, False, 30 * MILLISECOND_US, 50)
    background: TierSettings = TierSettings(LayerKind.OPEN, False, False, 5 * MILLISECOND_US, 10)

    def of(self, tier: Tier) -> TierSettings:
        """Return the settings of *tier*."""
        settings: TierSettings = getattr(self, tier.value)
        return settings


@frozen
class PlanSettings:
    """The distribution of the node's cores."""

    reserve_cores: int = setting(
        1, "Cores that no layer may own, so that all other threads can run.", validator=ge(1)
    )
    headroom_cores: int = setting(
        1,
        "Spare cores beyond its requests that a layer may grow into, so that the next pods need "
        "no new engine.",
        validator=and_(ge(0), le(MOST_HEADROOM)),
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
        "Time slice of the shared Open layer in µs; other threads wait this long for best effort.",
        validator=and_(ge(100), le(SECOND_US)),
    )
    system_processes: tuple[str, ...] = setting(
        ("kubelet", "containerd", "crio", "dockerd"),
        "Root processes of the system layer, by the first 15 bytes of their name.",
    )
    system_process_cgroups: tuple[str, ...] = setting(
        ("runtime.slice/", "user.slice/", "/"),
        "Cgroup prefixes in which those processes count ('/' is the root alone): a container could "
        "give any name to its own process. Docker's containers are in system.slice.",
        validator=and_(max_len(8), deep_iterable(matches_re(r"/|[^/]+(/[^/]+)*/"))),
        form="'/', or a cgroup with a slash at its end and none before it",
    )
    system_cgroups: tuple[str, ...] = setting(
        (
            "system.slice/kubelet.service/",
            "system.slice/containerd.service/",
            "system.slice/crio.service/",
            "system.slice/docker.service/",
            "system.slice/k3s.service/",
            "system.slice/k3s-agent.service/",
            "system.slice/rke2-server.service/",
            "system.slice/rke2-agent.service/",
            "system.slice/temper.service/",
            "init.scope/",
        ),
        "Cgroups, with a trailing slash, whose threads belong to the system layer.",
    )
