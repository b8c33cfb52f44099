"""The records that plugins contribute, except plain documents."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from attrs import field, frozen
from attrs.validators import and_, ge, in_, instance_of, le, matches_re

from temper_core.records.histogram import Histogram
from temper_core.records.machine import MachineShape
from temper_core.records.names import NAME, is_summary
from temper_core.records.pods import Pod
from temper_core.records.snapshots import Snapshot

if TYPE_CHECKING:
    import click


COMMAND_GROUPS = ("temper", "temper profiles", "kubectl temper")
"""The groups that plugins may add commands to. ``temper k8s`` has those of ``kubectl temper``."""


@frozen
class Detection:
    """A detector's verdict on a pod: the profile id, the confidence (0..1), and the reason."""

    profile: str = field(validator=instance_of(str))
    confidence: float = field(
        validator=and_(instance_of((int, float)), ge(0.0), le(1.0)),
    )
    why: str = field(validator=instance_of(str))


@frozen
class Detector:
    """Recognises workloads. ``detect`` uses only the pod and does no I/O."""

    name: str = field(validator=NAME)
    detect: Callable[[Pod], Detection | None]


@frozen
class MetricSample:
    """One value of a metric, with its labels. A ``Histogram`` if the family is one."""

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
    """An open pod source.

    A source that receives changes also has a method ``fileno``, which returns a descriptor that is
    readable from a change until the next call of ``pods`` (-1 if there is none at the moment).
    ``pods`` is then called after a change, and otherwise only now and then.

    A source that has to look again without a change has a method ``again_in_s``, which returns the
    seconds until the next call of ``pods``, at most. A source that names the processes of
    containers may have a method ``executed``. It takes an ``ExecutionNews`` each time that the
    kernel has reported executions of programs, or begins or ceases to report them.

    A source that returns its last pods while it cannot read new ones also has a method ``stale``,
    which returns a ``Staleness``, or None while the pods are up to date.
    """

    def pods(self) -> Iterable[Pod]:
        """Return the current pods of this node. Raise MachineError if they cannot be read."""
        ...

    def close(self) -> None:
        """Release all resources of the source."""
        ...


@frozen
class Staleness:
    """The age in seconds of a pod source's last pods, and a short reason."""

    age_s: float
    reason: str


@frozen
class PodSourceContext:
    """The input of a pod source: the settings' ``[pods]`` and ``[[workloads]]``, and the roots."""

    options: Any
    workloads: tuple[Any, ...]
    machine: MachineShape
    proc_root: str = "/proc"
    cgroup_root: str = "/sys/fs/cgroup"
    node: str = ""


@frozen
class PodSource:
    """A source of the node's pods. Chosen by ``[pods] source``."""

    name: str = field(validator=NAME)
    open: Callable[[PodSourceContext], OpenPodSource]
    summary: str = field(default="", validator=is_summary)


@frozen
class Command:
    """A command of a group. ``load`` returns the click command when it is needed.

    ``under`` is the group as a user writes it: ``temper``, ``temper profiles``, ``kubectl temper``.
    """

    name: str = field(validator=NAME)
    summary: str = field(validator=is_summary)
    load: Callable[[], "click.Command"]
    under: str = field(default="temper")

    @under.validator
    def _is_group(self, _attribute: object, under: object) -> None:
        if under not in COMMAND_GROUPS:
            groups = ", ".join(map(repr, COMMAND_GROUPS))
            raise ValueError(
                f"command {self.name!r}: under is {under!r}, and must be one of {groups}"
            )
