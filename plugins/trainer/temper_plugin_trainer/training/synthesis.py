"""Writes a profile from an analysis: one thread group per class, with its evidence in comments."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from temper_core import WorkloadProfile, parse_profile
from temper_core.console import printable
from temper_plugin_trainer.coverage import Coverage, judge
from temper_plugin_trainer.recording import UNKNOWN, program_id
from temper_plugin_trainer.thread_tables import TableThread, ThreadTable
from temper_plugin_trainer.training.bundles import Bundle, BundleThread
from temper_plugin_trainer.training.classes import (
    COMPUTE_SHARE,
    SURE,
    Behaviour,
    ThreadClass,
    milliseconds,
)
from temper_plugin_trainer.training.grouping import TOLD_SHARE, Analysis, TrainedGroup
from temper_plugin_trainer.training.matchers import Match, match_of

MILLIS = 1_000
THOUSANDTHS = 1_000

_WORD = re.compile(r"[a-z0-9]+")

_GROUPS: Mapping[ThreadClass, tuple[str, str]] = {
    ThreadClass.SYNC_COMPUTE: ("compute", "exclusive"),
    ThreadClass.WAKE_CHAIN: ("wake-chain", "latency"),
    ThreadClass.LATENCY_CRITICAL: ("latency", "latency"),
    ThreadClass.SPORADIC: ("sporadic", "yield"),
}
"""The name of each class in a profile, and its first treatment."""
_SERVING = (ThreadClass.WAKE_CHAIN, ThreadClass.LATENCY_CRITICAL)


@frozen
class Wanted:
    """The operator's decisions about a profile. Without a request the load's demand is taken."""

    id: str = ""
    images: tuple[str, ...] = ()
    request_millis: int | None = None


@frozen
class Synthesis:
    """A profile as text, its coverage on the bundle, and the reasons for what it leaves out.

    ``misplaced`` are the groups that take threads of another class.
    """

    text: str
    profile: WorkloadProfile
    coverage: Coverage
    left_out: tuple[str, ...]
    misplaced: tuple[str, ...] = ()


@frozen
class _Part:
    """A thread group of the profile: the groups of one class with their matches."""

    kind: ThreadClass
    members: tuple[tuple[TrainedGroup, Match], ...]


def synthesise(bundle: Bundle, analysis: Analysis, wanted: Wanted, source: str) -> Synthesis:
    """Write a profile for the groups of *analysis* whose class is clear.

    Raises DocumentError, which names *source*, if the profile is not valid: for an id or an image
    that is none, or without RE2 if names need patterns.
    """
    parts, left_out = _parts(bundle, analysis)
    text = "\n".join(_lines(bundle, analysis, parts, wanted)) + "\n"
    profile = parse_profile(text, source)
    coverage = judge(profile, bundle_table(bundle))
    misplaced = tuple(_misplaced(bundle, parts, coverage))
    return Synthesis(text, profile, coverage, tuple(left_out), misplaced)


def bundle_table(bundle: Bundle) -> ThreadTable:
    """Return the threads of *bundle* as a thread table, on which profiles are tested."""
    return ThreadTable(
        program=program_id(bundle.program),
        version=UNKNOWN,
        command=UNKNOWN,
        machine=bundle.machine,
        kernel=bundle.kernel,
        seconds=bundle.seconds,
        date=bundle.date,
        threads=tuple(_row(thread, bundle.seconds) for thread in bundle.threads),
        unseen_cpus=bundle.unseen_cpus + bundle.left_out_cpus,
    )


def _row(thread: BundleThread, seconds: float) -> TableThread:
    return TableThread(
        comm=thread.comm,
        process=thread.process,
        title=thread.title,
        leader=thread.leader,
        cpu_share=min(1.0, thread.run_s / thread.lived_s),
        wait_share=min(1.0, thread.wait_s / thread.lived_s),
        wakeups_per_s=min(1e9, thread.runs / thread.lived_s),
        run_us=min(1e9, 1e6 * thread.run_s / max(1, thread.runs)),
        container=thread.container,
        names=thread.names,
        lived_share=min(1.0, thread.lived_s / seconds),
        age_s=thread.age_s,
        exe=thread.exe,
        parent=thread.parent,
        child=thread.child,
    )


def _parts(bundle: Bundle, analysis: Analysis) -> tuple[list[_Part], list[str]]:
    """Return the thread groups of the profile, and why other threads are left to the rest."""
    total = sum(group.cpus for group in analysis.groups)
    members: dict[ThreadClass, list[tuple[TrainedGroup, Match]]] = {kind: [] for kind in _GROUPS}
    left_out: list[str] = []
    for group in analysis.groups:
        share = 100 * group.cpus / total if total else 0.0
        if not group.cpus or share < 100 * TOLD_SHARE:
            continue
        match = match_of(group, bundle.threads)
        why = ""
        if group.confidence < SURE:
            why = f"its class is unclear: {group.doubt or 'near a threshold'}"
        elif match is None:
            why = "no names tell it from other threads, or they cannot be written in a profile"
        if why or match is None:
            left_out.append(f"{group.label}, {share:.1f} % of the CPU time: {why}")
            continue
        members[group.kind].append((group, match))
    parts = [_Part(kind, tuple(of)) for kind, of in members.items() if of]
    return parts, left_out


def _misplaced(bundle: Bundle, parts: Sequence[_Part], coverage: Coverage) -> Iterator[str]:
    """Yield the thread groups that take much CPU time of threads of another class."""
    wanted = {
        tid: _GROUPS[part.kind][0]
        for part in parts
        for group, _ in part.members
        for tid in group.tids
    }
    lost: dict[str, float] = {}
    for thread, row in zip(bundle.threads, coverage.judged, strict=True):
        name = row.group.name if row.group else ""
        if row.is_covered and name != wanted.get(thread.tid, ""):
            lost[name] = lost.get(name, 0.0) + row.thread.cpus_used
    for name, cpus in lost.items():
        if cpus >= TOLD_SHARE * coverage.table.cpus_used:
            share = 100 * cpus / coverage.table.cpus_used
            yield f"group {name} takes threads of another class, {share:.1f} % of the CPU time"


def _lines(
    bundle: Bundle, analysis: Analysis, parts: Sequence[_Part], wanted: Wanted
) -> Iterator[str]:
    """Yield the lines of the profile."""
    yield "# Made by temper train synthesize, and not yet measured against the tier alone."
    yield from (f"# Not told: {printable(line)}" for line in analysis.untold)
    yield "schema_version = 1"
    program = _program_of(bundle, parts)
    yield f"id = {_text(wanted.id or _id_of(program))}"
    what = f"{_threads(len(bundle.threads))} by behaviour, observed for {bundle.seconds:.0f} s"
    yield f"description = {_text(what)}"
    yield from ("", "[fingerprint]")
    if wanted.images:
        yield f"images = [{', '.join(map(_text, wanted.images))}]"
    elif program:
        yield f"processes = [{_text(program)}]"
    machine = bundle.machine
    yield from ("", "[machine_shape]", f"cores = {machine.cores}")
    yield f"threads_per_core = {machine.threads_per_core}"
    yield f"architecture = {_text(machine.architecture)}"
    request = wanted.request_millis or _demanded_millis(analysis)
    for part in parts:
        yield from ("", "[[thread_groups]]", f'name = "{_GROUPS[part.kind][0]}"')
        yield from _group_lines(part, bundle, request, is_given=wanted.request_millis is not None)
    yield from ("", "[[thread_groups]]", 'name = "rest"', 'treatment = "normal"')
    yield from ("", "[evidence]", 'effect = "not measured"')
    shape = f"{machine.cores} cores, {machine.threads_per_core} threads per core"
    yield f"machine = {_text(shape)}"
    yield f"kernel = {_text(bundle.kernel)}"
    yield f"date = {_text(bundle.date)}"


def _group_lines(part: _Part, bundle: Bundle, request: int, *, is_given: bool) -> Iterator[str]:
    yield "match = ["
    for group, match in part.members:
        numbers = group.behaviour
        yield (
            f"    # {printable(group.label)}: {_threads(len(group.tids))}, confidence "
            f"{group.confidence:.2f}, {100 * numbers.share:.0f} % of a CPU each, "
            f"{numbers.rate:.1f} sleeps/s, {milliseconds(numbers.run_ms)} ms per run"
        )
        keys = ", ".join(f"{key} = {_value(value)}" for key, value in match.items())
        yield f"    {{ {keys} }},"
    yield "]"
    treatment = _GROUPS[part.kind][1]
    if treatment != "exclusive":
        yield f'treatment = "{treatment}"'
        return
    yield from _exclusive_lines(part, bundle, request, is_given=is_given)


def _exclusive_lines(part: _Part, bundle: Bundle, request: int, *, is_given: bool) -> Iterator[str]:
    """Yield the treatment of threads that compute, with the arithmetic of their cores."""
    tids = {tid for group, _ in part.members for tid in group.tids}
    shares = _hot_shares(thread for thread in bundle.threads if thread.tid in tids)
    hot = sum(lived_s for _, lived_s in shares) / bundle.seconds
    demand = sum(share * lived_s for share, lived_s in shares) / bundle.seconds
    cores = max(1, round(hot))
    yield f"# {hot:.1f} hot threads use {demand:.2f} CPUs without their waits: {cores} whole cores"
    if cores >= bundle.machine.cores:
        yield f"# the machine has {bundle.machine.cores}, and the other threads need one"
        yield 'treatment = "normal"'
        return
    fraction = min(THOUSANDTHS, cores * MILLIS * THOUSANDTHS // request)
    product = request * fraction
    given = math.ceil(product / MILLIS / THOUSANDTHS)
    origin = "the pod's CPU request" if is_given else "a request of what all threads used"
    yield f"# request {request}m: {origin}"
    yield (
        f"# {request}m x {fraction / THOUSANDTHS:g} = {product / MILLIS / THOUSANDTHS:g}, so "
        f"{given} exclusive cores"
    )
    if given != cores:
        yield f"# the request is too small for {cores} cores"
    yield 'treatment = "exclusive"'
    yield f"cpu_fraction = {max(1, fraction) / THOUSANDTHS:g}"


def _hot_shares(threads: Iterable[BundleThread]) -> list[tuple[float, float]]:
    """Return the share of a CPU without waits, and the seconds lived, of each that computes."""
    behaviours = (
        Behaviour(thread.lived_s, thread.run_s, thread.wait_s, thread.sleeps) for thread in threads
    )
    pairs = ((behaviour.share, behaviour.lived_s) for behaviour in behaviours)
    return [(share, lived_s) for share, lived_s in pairs if share >= COMPUTE_SHARE]


def _demanded_millis(analysis: Analysis) -> int:
    """Return the CPUs that all groups used, in millicores, rounded up to 100."""
    used = sum(group.cpus for group in analysis.groups)
    return max(100, 100 * math.ceil(10 * used))


def _text(value: str) -> str:
    """Return *value* as a basic string of TOML, which takes the escapes of JSON."""
    return json.dumps(printable(value), ensure_ascii=False)


def _value(value: str | bool) -> str:
    return json.dumps(value) if isinstance(value, bool) else _text(value)


def _program_of(bundle: Bundle, parts: Sequence[_Part]) -> str:
    """Return the name of the busiest process that serves, of the busiest of all if none does.

    A sidecar that compresses may use more CPU time than the server beside it.
    """
    serving = {
        tid
        for part in parts
        if part.kind in _SERVING
        for group, _ in part.members
        for tid in group.tids
    }
    return next((each.process for each in bundle.threads if each.tid in serving), bundle.program)


def _id_of(program: str) -> str:
    """Return *program* as the id of a profile."""
    words = "-".join(_WORD.findall(program.lower()))
    return words if words[:1].isalpha() else f"program-{words}".strip("-")


def _threads(number: int) -> str:
    return "1 thread" if number == 1 else f"{number} threads"
