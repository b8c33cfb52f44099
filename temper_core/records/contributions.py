"""What plugins contribute: every record a hook may return that is not a plain document."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from attrs import field, frozen
from attrs.validators import and_, ge, in_, instance_of, le, matches_re

from temper_core.records.machine import MachineShape
from temper_core.records.pods import Pod
from temper_core.records.snapshots import Snapshot

if TYPE_CHECKING:
    import click

NAME = matches_re(r"[a-z][a-z0-9-]{0,62}")
METHODS = ("GET", "POST", "PUT")


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
    """Recognises workloads; ``detect`` looks at the pod only and does no I/O."""

    name: str = field(validator=NAME)
    detect: Callable[[Pod], Detection | None]


@frozen
class MetricSample:
    """One value of a metric, with its labels."""

    value: float
    labels: Mapping[str, str] = field(factory=dict)


@frozen
class Metric:
    """A metric family; ``name`` starts with ``temper_`` and is in base units."""

    name: str = field(validator=matches_re(r"temper_[a-z0-9_]+"))
    help: str
    samples: Sequence[MetricSample]
    kind: str = field(default="gauge", validator=in_(["gauge", "counter"]))


@frozen
class Exporter:
    """Turns a snapshot into metrics; called at every scrape, does no I/O."""

    name: str = field(validator=NAME)
    collect: Callable[[Snapshot], Iterable[Metric]]


class OpenPodSource(Protocol):
    """A pod source at work.

    One that hears of changes has a method ``fileno`` as well, which returns a descriptor that is
    readable from a change until the next call of ``pods`` (-1 for none, at the moment); it is then
    asked when there is something to see, and otherwise only now and then.

    One that goes on by what it knows while it cannot ask has a method ``stale`` as well, which
    returns a ``Staleness``, or None while what it says is up to date.
    """

    def pods(self) -> Iterable[Pod]:
        """Return the pods of this node as they are now; raise MachineError if it cannot tell."""
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
    """A way to learn which pods are on the node; chosen by ``[pods] source``."""

    name: str = field(validator=NAME)
    open: Callable[[PodSourceContext], OpenPodSource]
    summary: str = ""


@frozen
class Left:
    """What a restoration left on the host, and why.

    ``is_failure`` where it should have gone and could not, ``is_kept`` where it stays on purpose.
    """

    path: str
    why: str
    is_failure: bool = False
    is_kept: bool = False


@frozen
class Restored:
    """What was removed from the host, by path, and what was left there."""

    removed: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()


def _cannot_restore(_reason: str, done: Callable[[Restored], None]) -> None:
    done(Restored())


@frozen
class CompanionContext:
    """What a companion has of the agent; its functions may be called from any thread.

    ``request_safe_mode`` takes the reason, and asks in the companion's name; the request stands,
    restarts included, until ``release_safe_mode`` takes it back. ``node`` is the node's name.

    ``restore`` asks for safe mode as well, without writing that down, and has all that the agent
    keeps on the host removed once its engine has ended; then the function it is given is called,
    which returns at once. The agent writes nothing there until one of the other two is called.
    """

    node: str
    request_safe_mode: Callable[[str], None]
    release_safe_mode: Callable[[], None]
    restore: Callable[[str, Callable[[Restored], None]], None] = _cannot_restore


class OpenCompanion(Protocol):
    """A companion at work; what takes time it does in threads of its own."""

    def tell(self, snapshot: Snapshot) -> None:
        """Take note of the latest look at the node; returns at once."""
        ...

    def close(self) -> None:
        """Undo what should not outlive the agent, and let go of everything."""
        ...


@frozen
class Companion:
    """Stands between the agent and a control plane: tells that of the node, and hears its wishes.

    ``open`` is called before anything is enforced, so that what it asks for holds from the start.
    """

    name: str = field(validator=NAME)
    open: Callable[[CompanionContext], OpenCompanion]


@frozen
class Command:
    """A sub-command of ``temper``; ``load`` returns the click command when it is needed."""

    name: str = field(validator=NAME)
    summary: str
    load: Callable[[], "click.Command"]


@frozen
class Request:
    """What an endpoint is asked: query and path parameters, and the JSON body if there was one.

    ``requester`` is ``socket`` or ``token`` where the endpoint acts, ``accept`` the caller's
    preferred media types.
    """

    query: Mapping[str, str]
    body: Any
    snapshot: Snapshot | None
    requester: str = ""
    accept: str = ""


@frozen
class Endpoint:
    """An HTTP endpoint; whatever ``acts`` needs the token or the local socket.

    ``answer`` returns something JSON can say, or raises InputError for a 400.
    """

    name: str = field(validator=NAME)
    method: str = field(validator=in_(METHODS))
    path: str = field(validator=matches_re(r"/[a-z0-9/._{}-]*"))
    summary: str
    answer: Callable[[Request], Any]
    acts: bool = False
    parameters: Mapping[str, str] = field(factory=dict)
