"""Bundles: the file of ``temper train observe``, which can be analysed on another machine.

A bundle is one JSON document, packed by gzip. Packed and unpacked size, the number of threads and
the length of every text are bounded. It contains no host name and no paths, as a thread table.
"""

import base64
import gzip
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import Attribute, asdict, evolve, field, frozen
from attrs.validators import and_, deep_iterable, ge, gt, in_, le, matches_re, max_len, min_len

from temper_core import DocumentError, InputError, fit, parse_json, read_bytes
from temper_plugin_trainer.sampling import LONGEST_FUNCTION
from temper_plugin_trainer.thread_tables import (
    LONGEST_COMM,
    LONGEST_FILE_NAME,
    LONGEST_TITLE,
    TableMachine,
    in_one_line,
)

SCHEMA_VERSION = 1
LARGEST_PACKED_BYTES = 8 * 1024 * 1024
LARGEST_BYTES = 16 * 1024 * 1024
MOST_THREADS = 4_096
MOST_INTERVALS = 4_096
MOST_EDGES = 4_096
MOST_FUNCTIONS = 8
LONGEST_REASON = 1_000
LONGEST_TRACE = 3 * 1024 * 1024
"""Characters of a trace of 2 MiB in base64, with room."""
LEAST_S = 0.001
"""Of an observation. Figures by the second overflow for much less."""
GZIP = 16 + zlib.MAX_WBITS
"""``wbits`` of zlib for the format of gzip (RFC 1952)."""

_SECONDS = and_(ge(0.0), le(1e9))
_COUNT = and_(ge(0), le(10**15))
_NAME: Any = max_len(LONGEST_COMM)
_REASON: Any = max_len(LONGEST_REASON)


def _bounded_functions(
    _: object, attribute: "Attribute[Mapping[str, int]]", value: Mapping[str, int]
) -> None:
    """Raise ValueError for too many functions, too long a name, or a count that is none."""
    is_short = all(len(name) <= LONGEST_FUNCTION for name in value)
    is_counted = all(0 <= count <= MOST_INTERVALS for count in value.values())
    if len(value) > MOST_FUNCTIONS or not (is_short and is_counted):
        raise ValueError(f"{attribute.name!r} must be at most {MOST_FUNCTIONS} functions, counted")


@frozen
class BundleThread:
    """One thread: what it did in the ``lived_s`` seconds in which it was observed.

    ``run_s`` are its seconds on a CPU and ``wait_s`` those for which it was runnable without one,
    ``runs`` the number of its runs (schedstat). ``sleeps`` are its voluntary switches: it gave
    the CPU up and was woken later. ``preemptions`` are the others. ``peak`` is its largest share
    of a CPU between two samples. ``sleeps_in`` counts the samples in which it slept, by the kernel
    function that it slept in. The other fields are those of a row of a thread table.
    """

    tid: int = field(validator=and_(ge(1), le(2**31)))
    pid: int = field(validator=and_(ge(1), le(2**31)))
    comm: str = field(validator=_NAME)
    process: str = field(validator=_NAME)
    lived_s: float = field(validator=and_(gt(0.0), le(1e6)))
    run_s: float = field(default=0.0, validator=_SECONDS)
    wait_s: float = field(default=0.0, validator=_SECONDS)
    runs: int = field(default=0, validator=_COUNT)
    sleeps: int = field(default=0, validator=_COUNT)
    preemptions: int = field(default=0, validator=_COUNT)
    peak: float = field(default=0.0, validator=and_(ge(0.0), le(1e6)))
    sleeps_in: Mapping[str, int] = field(factory=dict, validator=_bounded_functions)
    names: tuple[str, ...] = field(default=(), validator=[max_len(64), deep_iterable(_NAME)])
    title: str = field(default="", validator=max_len(LONGEST_TITLE))
    leader: bool = False
    container: str = field(default="", validator=max_len(253))
    exe: str = field(default="", validator=max_len(LONGEST_FILE_NAME))
    parent: str = field(default="", validator=_NAME)
    child: bool = False
    age_s: float = field(default=-1.0, validator=and_(ge(-1.0), le(1e9)))


@frozen
class BundleInterval:
    """All threads between two samples: seconds, CPU time and waits in seconds, sleeps, threads."""

    seconds: float = field(validator=and_(gt(0.0), le(1e6)))
    run_s: float = field(validator=_SECONDS)
    wait_s: float = field(validator=_SECONDS)
    sleeps: int = field(validator=_COUNT)
    threads: int = field(validator=_COUNT)


@frozen
class BundleEdge:
    """The number of times that a thread woke another in the agent's windows.

    ``waker`` and ``wakee`` are thread ids, 0 for an interrupt. ``waker_inside`` and
    ``wakee_inside`` are whether they are threads of the observed program.
    """

    waker: int = field(validator=and_(ge(0), le(2**31)))
    wakee: int = field(validator=and_(ge(0), le(2**31)))
    waker_comm: str = field(validator=_NAME)
    wakee_comm: str = field(validator=_NAME)
    waker_inside: bool
    wakee_inside: bool
    wakes: int = field(validator=_COUNT)


@frozen
class BundleWakes:
    """Wake-ups in ``windows`` windows of ``watched_s`` seconds altogether.

    ``reason`` is why there are none, empty if there are. ``lost`` edges found no room.
    """

    reason: str = field(default="", validator=_REASON)
    windows: int = field(default=0, validator=_COUNT)
    watched_s: float = field(default=0.0, validator=_SECONDS)
    lost: int = field(default=0, validator=_COUNT)
    edges: tuple[BundleEdge, ...] = field(default=(), validator=max_len(MOST_EDGES))


@frozen
class AgentLook:
    """The agent's ``/observe``: its time (RFC 3339), its mode, plan and engine, and pressure.

    ``cpu_pressure`` is the node's share of time in which some thread waited for a CPU (the average
    over 10 s, as a ratio), -1 if unknown.
    """

    at: str = field(default="", validator=max_len(64))
    mode: str = field(default="", validator=max_len(64))
    generation: int = field(default=0, validator=_COUNT)
    engine: str = field(default="", validator=max_len(128))
    cpu_pressure: float = field(default=-1.0, validator=and_(ge(-1.0), le(1.0)))


@frozen
class BundleAgent:
    """The answers of the node's agent. ``reason`` is why there are none, empty if there are."""

    reason: str = field(default="", validator=_REASON)
    looks: tuple[AgentLook, ...] = field(default=(), validator=max_len(16))
    wakes: BundleWakes = BundleWakes()


@frozen
class BundleTrace:
    """A kernel trace of the program under its load: a file of Perfetto's format, in base64.

    ``reason`` is why there is none, empty if there is one. It has ``events`` of ``seconds``.
    """

    reason: str = field(default="", validator=_REASON)
    content: str = field(default="", validator=max_len(LONGEST_TRACE))
    events: int = field(default=0, validator=_COUNT)
    seconds: float = field(default=0.0, validator=_SECONDS)
    ended_by: str = field(default="", validator=max_len(64))

    def decoded(self) -> bytes:
        """Return the bytes of the file. Raise InputError if there is none."""
        if not self.content:
            raise InputError(f"the bundle has no trace: {self.reason or 'it is empty'}")
        try:
            return base64.b64decode(self.content, validate=True)
        except ValueError as error:  # binascii.Error, or text that is not ASCII
            raise InputError(f"the bundle's trace is damaged: {error}") from error


@frozen
class Bundle:
    """The threads of a program, observed for ``seconds`` under its load.

    ``problems`` are the reasons why the load was not representative, empty if it was. ``left_out``
    threads have no record, and used ``left_out_cpus`` CPUs. ``unseen_cpus`` are the CPUs of threads
    that lived between two samples. ``date`` is ISO 8601. ``trace`` is None if it was not asked for.
    """

    program: str = field(validator=_NAME)
    machine: TableMachine
    kernel: str = field(validator=max_len(128))
    date: str = field(validator=matches_re(r"\d{4}-\d{2}-\d{2}"))
    seconds: float = field(validator=and_(ge(LEAST_S), le(86_400.0)))
    intervals: tuple[BundleInterval, ...] = field(validator=max_len(MOST_INTERVALS))
    threads: tuple[BundleThread, ...] = field(validator=[min_len(1), max_len(MOST_THREADS)])
    agent: BundleAgent
    problems: tuple[str, ...] = field(default=(), validator=[max_len(16), deep_iterable(_REASON)])
    unseen_cpus: float = field(default=0.0, validator=and_(ge(0.0), le(1e6)))
    left_out: int = field(default=0, validator=_COUNT)
    left_out_cpus: float = field(default=0.0, validator=and_(ge(0.0), le(1e6)))
    trace: BundleTrace | None = None
    schema_version: int = field(default=SCHEMA_VERSION, validator=in_([SCHEMA_VERSION]))

    @property
    def cpus_used(self) -> float:
        """CPUs that all recorded threads used together, on average."""
        return sum(thread.run_s for thread in self.threads) / self.seconds


def packed_bundle(bundle: Bundle) -> bytes:
    """Return the file of *bundle*, with the busiest threads if it would be too large otherwise."""
    while True:
        text = json.dumps(_document(bundle), separators=(",", ":")).encode()
        packed = gzip.compress(text, mtime=0)
        if len(packed) <= LARGEST_PACKED_BYTES and len(text) <= LARGEST_BYTES:
            return packed
        busiest = sorted(bundle.threads, key=lambda thread: -thread.run_s)
        kept, others = busiest[: len(busiest) // 2], busiest[len(busiest) // 2 :]
        cpus = sum(thread.run_s for thread in others) / bundle.seconds
        bundle = evolve(
            bundle,
            threads=tuple(kept),
            left_out=bundle.left_out + len(others),
            left_out_cpus=bundle.left_out_cpus + cpus,
        )


def _document(bundle: Bundle) -> dict[str, Any]:
    """Return *bundle* as JSON. Without a trace it is what earlier versions read."""
    document = asdict(bundle)
    if bundle.trace is None:
        del document["trace"]
    return document


def read_bundle(path: Path) -> Bundle:
    """Read the bundle at *path*. Raise DocumentError, one line, if it is invalid."""
    source = str(path)
    text = _unpacked(read_bytes(path, largest_bytes=LARGEST_PACKED_BYTES), source)
    try:
        return fit(parse_json(text, source=source), Bundle, source=source)
    except DocumentError as error:
        raise in_one_line(source, error.problems) from error


def _unpacked(content: bytes, source: str) -> str:
    """Unpack at most ``LARGEST_BYTES``, whatever the file says of its size."""
    unpacking = zlib.decompressobj(GZIP)
    try:
        text = unpacking.decompress(content, LARGEST_BYTES + 1)
    except zlib.error as error:
        why = "is not a bundle of temper train observe: it cannot be unpacked (gzip)"
        raise DocumentError(source, [why]) from error
    if len(text) > LARGEST_BYTES:
        raise DocumentError(source, [f"is larger than {LARGEST_BYTES} bytes when it is unpacked"])
    if not unpacking.eof:
        raise DocumentError(source, ["is cut off: its end is missing"])
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        why = f"is not UTF-8 text when it is unpacked (byte {error.start})"
        raise DocumentError(source, [why]) from error
