"""What plugins contribute: every record a hook may return that is not a plain document."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from attrs import field, frozen
from attrs.validators import and_, ge, in_, instance_of, le, matches_re

from temper_core.records.histogram import Histogram
from temper_core.records.machine import MachineShape
from temper_core.records.names import NAME
from temper_core.records.pods import Pod
from temper_core.records.snapshots import Snapshot

if TYPE_CHECKING:
    import click


COMMAND_GROUPS = ("temper", "temper profiles", "kubectl temper")
"""The groups that plugins may add commands to. ``temper k8s`` has those of ``kubectl temper``."""


@frozen
class Detection:
    """A detector's verdict on a pod: the profile id, how sure (0..1), and why."""

    profile: str = field(validator=instance_of(str))
    confidence: float = field(
        validator=and_(instance_of((int, float)), ge(0.0), le(1.0)),
    )
    why: str = field(validator=instance_of(str))


@frozen
class Detector:
    """Recognises workloads. ``detect`` looks at the pod only and does no I/O."""

    name: str = field(validator=NAME)
    detect: Callable[[Pod], Detection | None]


@frozen
class MetricSample:
    """One value of a metric, with its labels. A ``Histogram`` where the family is one."""

    value: float | Histogram
    labels: Mapping[str, str] = field(factory=dict)


@frozen
class Metric:
    """A metric family. ``name`` starts with ``temper_`` and is in base units."""

    name: str = field(validator=matches_re(r"temper_[a-z0-9_]+"))
    help: str
    samples: Sequence[MetricSample]
    kind: str = field(default="gauge", validator=in_(["gauge", "counter", "histogram"]))


@frozen
class Exporter:
    """Turns a snapshot into metrics. Called at every scrape, does no I/O."""

    name: str = field(validator=NAME)
    collect: Callable[[Snapshot], Iterable[Metric]]


class OpenPodSource(Protocol):
    """A pod source at work.

    One that hears of changes has a method ``fileno`` as well, which returns a descriptor that is
    readable from a change until the next call of ``pods`` (-1 for none, at the moment). It is then
    asked when there is something to see, and otherwise only now and then.

    One that goes on by what it knows while it cannot ask has a method ``stale`` as well, which
    returns a ``Staleness``, or None while what it says is up to date.
    """

    def pods(self) -> Iterable[Pod]:
        """Return the pods of this node as they are now. Raise MachineError if it cannot tell."""
        ...

    def close(self) -> None:
        """Let go of everything the source holds."""
        ...


@frozen
class Staleness:
    """Since how many seconds a pod source goes by what it knew, and why, in a few words."""

    age_s: float
    reason: str


@frozen
class PodSourceContext:
    """What a pod source may know: the settings' ``[pods]`` and ``[[workloads]]``, and the roots."""

    options: Any
    workloads: tuple[Any, ...]
    machine: MachineShape
    proc_root: str = "/proc"
    cgroup_root: str = "/sys/fs/cgroup"
    node: str = ""


@frozen
class PodSource:
    """A way to learn which pods are on the node. Chosen by ``[pods] source``."""

    name: str = field(validator=NAME)
    open: Callable[[PodSourceContext], OpenPodSource]
    summary: str = ""


@frozen
class Command:
    """A command of a group. ``load`` returns the click command when it is needed.

    ``under`` is the group as a user writes it: ``temper``, ``temper profiles``, ``kubectl temper``.
    """

    name: str = field(validator=NAME)
    summary: str
    load: Callable[[], "click.Command"]
    under: str = field(default="temper", validator=in_(COMMAND_GROUPS))
