"""Remarks on likely mistakes in a valid profile."""

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from attrs import fields, frozen

from temper_core.patterns import finds
from temper_core.profiles.engine_limits import MOST_GROUPS, wants_layer
from temper_core.profiles.image_versions import contradict
from temper_core.profiles.match_reach import covers
from temper_core.records.profile_evidence import Effect, iso_date
from temper_core.records.profiles import Fingerprint, WorkloadProfile
from temper_core.records.thread_groups import ThreadGroup, ThreadMatch, Treatment

GENERIC_NAMES = frozenset(
    {
        "MainThread", "Thread-", "connection", "exe", "main", "manager", "pool", "server", "sh",
        "signal_handler", "task", "thread", "timer", "timer_thread", "worker", "worker_thread",
    }
)  # fmt: skip
"""Thread names that are common to many programs."""
GENERIC_PROCESSES = frozenset(
    {
        "MainThread", "bash", "dotnet", "java", "node", "node-MainThread", "perl", "php", "python",
        "python3", "ruby", "sh", "tini",
    }
)  # fmt: skip
"""Interpreters and launchers, which run any program. MainThread leads a process of Node."""
NAMELESS_PROCESSES = frozenset({"MainThread", "main", "sh"})
"""Process names that do not identify the program, even inside one pod."""
GLOB = re.compile(r"[*?\[]")
ANY_NAMES = ("", "q", "Zz 9#", "\x7f:[-]")
"""Samples of names. A pattern that is found in all of them restricts nothing."""


@frozen
class Remark:
    """A possible mistake. ``code`` is stable, ``path`` is its place in the document."""

    code: str
    path: str
    message: str


Rule = Callable[[WorkloadProfile], Iterator[Remark]]


def remarks_on(profile: WorkloadProfile, today: dt.date) -> tuple[Remark, ...]:
    """Return the remarks on *profile*, in the order of the document."""
    remarks = [remark for rule in RULES for remark in rule(profile)]
    return (*remarks, *_evidence(profile, today))


def _fingerprint(profile: WorkloadProfile) -> Iterator[Remark]:
    fingerprint = profile.fingerprint
    if not fingerprint.images and not fingerprint.processes:
        yield Remark("annotation_only", "fingerprint", "only an annotation can choose this profile")
    if fingerprint.versions and not fingerprint.images:
        why = "without images no tag gives a version, so only an annotation can choose it"
        yield Remark("version_unknown", "fingerprint.versions", why)
    for number, glob in enumerate(fingerprint.images):
        if glob and not glob.replace("*", "").strip("/:@"):
            path = f"fingerprint.images[{number}]"
            yield Remark("broad_fingerprint", path, f"{glob!r} claims every pod of the node")
    for number, name in enumerate(fingerprint.processes):
        if name in GENERIC_PROCESSES:
            path = f"fingerprint.processes[{number}]"
            yield Remark("broad_fingerprint", path, f"{name!r} runs programs of all kinds")
    yield from _unreachable(fingerprint)


def _unreachable(known: Fingerprint) -> Iterator[Remark]:
    for number, glob in enumerate(known.images):
        if why := _image_misread(glob):
            yield Remark("never_recognised", f"fingerprint.images[{number}]", why)
    for number, name in enumerate(known.processes):
        if not name or GLOB.search(name):
            why = f"{name!r} is no name of a process, and no glob is taken here"
            yield Remark("never_recognised", f"fingerprint.processes[{number}]", why)
    if contradict(known.versions):
        why = f"no version is {' and '.join(known.versions)}"
        yield Remark("never_recognised", "fingerprint.versions", why)


def _image_misread(glob: str) -> str:
    """Return why *glob* most likely matches less than intended. Empty if it may be right."""
    if not glob:
        return "'' takes no image"
    if "@" in glob or ":" in glob.rpartition("/")[2] or glob.endswith("*"):
        return ""
    return f"{glob!r} takes references without a tag alone; {glob + ':*'!r} takes all"


def _shape(profile: WorkloadProfile) -> Iterator[Remark]:
    shape = profile.machine_shape
    is_open = all(getattr(shape, field.name) is None for field in fields(type(shape)))
    if is_open and any(group.treatment is Treatment.EXCLUSIVE for group in profile.thread_groups):
        why = "exclusive groups were tuned on some machine; without one they apply to all"
        yield Remark("any_machine", "machine_shape", why)


def _matches(profile: WorkloadProfile) -> Iterator[Remark]:
    for number, group in enumerate(profile.thread_groups):
        for place, match in enumerate(group.match):
            path = f"thread_groups[{number}].match[{place}]"
            yield from _match_remarks(match, path)
            taker = _hidden_by(profile.thread_groups[:number], match)
            if taker:
                yield Remark("hidden_match", path, f"group {taker!r} before it takes these threads")


def _match_remarks(match: ThreadMatch, path: str) -> Iterator[Remark]:
    yield from _generic_names(match, path)
    prefix = match.comm_prefix or ""
    if prefix[-1:].isdigit():
        why = f"{prefix!r} takes {prefix}0 and the like, too; a comm_pattern with an end does not"
        yield Remark("prefix_of_index", f"{path}.comm_prefix", why)
    pattern = match.comm_pattern
    if pattern is not None and all(finds(pattern, name) for name in ANY_NAMES):
        why = f"{pattern!r} is found in every name"
        yield Remark("matches_all", f"{path}.comm_pattern", why)


def _generic_names(match: ThreadMatch, path: str) -> Iterator[Remark]:
    if any(key is not None for key in (match.title_pattern, match.exe, match.parent)):
        return
    if match.process is None and match.comm_prefix in GENERIC_NAMES:
        why = f"{match.comm_prefix!r} is a common thread name; give the process or exe as well"
        yield Remark("generic_name", f"{path}.comm_prefix", why)
    if match.process in NAMELESS_PROCESSES and _is_generic(match.comm_prefix):
        why = f"{match.process!r} is the name of processes of many programs; give the exe as well"
        yield Remark("generic_name", f"{path}.process", why)


def _is_generic(name: str | None) -> bool:
    return name is None or name in GENERIC_NAMES


def _hidden_by(groups: Sequence[ThreadGroup], match: ThreadMatch) -> str:
    takers = (
        group.name for group in groups if any(covers(earlier, match) for earlier in group.match)
    )
    return next(takers, "")


def _groups(profile: WorkloadProfile) -> Iterator[Remark]:
    groups = profile.thread_groups
    for number, group in enumerate(groups):
        yield from _group_remarks(group, f"thread_groups[{number}]")
    if groups[-1].match:
        why = (
            "no last group without match: threads that none takes stay in the layer of their tier; "
            'add one with treatment = "normal" if that is intended'
        )
        yield Remark("no_rest", "thread_groups", why)
    exclusive_share = sum(
        _fraction(group) for group in groups if group.treatment is Treatment.EXCLUSIVE
    )
    if exclusive_share > 1:
        share = float(exclusive_share)
        why = f"exclusive groups take {share:g} of the request, which is more than all"
        yield Remark("over_request", "thread_groups", why)
    if sum(wants_layer(group) for group in groups) == MOST_GROUPS:
        why = f"on a steered node the engine has room for {MOST_GROUPS - 1} such groups"
        yield Remark("crowded", "thread_groups", why)


def _group_remarks(group: ThreadGroup, path: str) -> Iterator[Remark]:
    if group.treatment is Treatment.EXCLUSIVE and group.cpu_fraction is None:
        why = "exclusive without a cpu_fraction takes the pod's whole request"
        yield Remark("whole_request", path, why)
    if group.treatment is Treatment.LATENCY and not group.match:
        why = "latency for all other threads is the tier's work; they stay in its layer"
        yield Remark("latency_for_all", path, why)
    blind = [number for number, match in enumerate(group.match) if not match.is_static]
    if blind and group.treatment is not Treatment.NORMAL:
        which = ", ".join(map(str, blind))
        why = f"match {which} needs steering; without it those threads stay in the tier's layer"
        yield Remark("needs_steering", path, why)


def _evidence(profile: WorkloadProfile, today: dt.date) -> Iterator[Remark]:
    evidence = profile.evidence
    if not evidence.figures and not (evidence.before and evidence.after):
        why = "without a measurement before and after, the profile's effect is unknown"
        yield Remark("no_evidence", "evidence", why)
    for name in ("date", "expires"):
        date = getattr(evidence, name)
        if date and iso_date(date) is None:
            yield Remark("no_date", f"evidence.{name}", f"{date!r} is no date as YYYY-MM-DD")
    if profile.enabled and evidence.effect in (Effect.WITHIN_SPREAD, Effect.WORSE):
        why = f"its effect is {evidence.effect.value!r} and it is enabled; say enabled = false"
        yield Remark("no_benefit", "enabled", why)
    if evidence.expired_on(today):
        why = f"expired on {evidence.expires}: measure again"
        yield Remark("expired", "evidence.expires", why)


def _fraction(group: ThreadGroup) -> Fraction:
    return Fraction(1) if group.cpu_fraction is None else Fraction(str(group.cpu_fraction))


RULES: tuple[Rule, ...] = (_fingerprint, _shape, _matches, _groups)
