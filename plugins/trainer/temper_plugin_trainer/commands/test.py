"""``temper profiles test``: apply a profile to the recorded threads of a real program."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs
import click

from temper_core import InputError, completed_profiles, read_bytes
from temper_core.console import (
    EXIT_FINDINGS,
    FiniteRange,
    output_option,
    plain_table,
    print_json,
    results_console,
    shown,
)
from temper_plugin_trainer.coverage import Coverage, Judged, judge
from temper_plugin_trainer.thread_tables import TableThread, ThreadTable, read_thread_table

MOST_NAMES = 6
"""Names of threads shown per group; JSON has all."""
LONGEST_TITLE = 60
GZIP_MAGIC = b"\x1f\x8b"
"""The first bytes of a file of gzip (RFC 1952, 2.3.1)."""


@click.command("test")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--threads",
    "recordings",
    metavar="RECORDING",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    help="A thread table of temper profiles record, or a bundle of temper train observe; "
    "several may be given.",
)
@click.option(
    "--container",
    "containers",
    metavar="NAME",
    multiple=True,
    help="Of a pod's recording: a container that the profile is for; all by default.",
)
@click.option("--static", "is_static", is_flag=True, help="Judge as on a node without steering.")
@click.option(
    "--least",
    type=FiniteRange(0, 1),
    default=0.9,
    show_default=True,
    help="Share of the CPU time that groups with a match are to take.",
)
@click.option(
    "--profiles",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Directory of profiles that FILE may extend.",
)
@click.option("--settings", type=click.Path(path_type=Path), help="Settings file (TOML).")
@output_option
def command(
    file: Path,
    recordings: tuple[Path, ...],
    output: str,
    least: float,
    **options: Any,  # noqa: ANN401 - options of click
) -> None:
    """Test the profile FILE on recorded threads, judged as the agent judges live ones.

    Shows the threads of each group, the share of the CPU time covered by groups with a match, and
    hot threads outside of them. A short-lived thread counts for the group that it is in until user
    space decides about it. The exit code is 1 if the share is below --least.
    """
    containers = options["containers"]
    tables = [(path, _narrowed(path, _table(path), containers)) for path in recordings]
    judged = [
        (path, judge(profile, table, is_static=options["is_static"]))
        for profile in completed_profiles(
            file, settings=options["settings"], directory=options["profiles"]
        )
        for path, table in tables
    ]
    if output == "json":
        documents = [_document(path, coverage) for path, coverage in judged]
        head = {"file": str(file), "static": options["is_static"], "least": least}
        print_json({**head, "recordings": documents})
    else:
        for path, coverage in judged:
            _print(path, coverage)
    is_short = any(coverage.covered_share < least for _, coverage in judged)
    click.get_current_context().exit(EXIT_FINDINGS if is_short else 0)


def _table(path: Path) -> ThreadTable:
    """Read a thread table, or the threads of a bundle, which is packed."""
    if not read_bytes(path).startswith(GZIP_MAGIC):
        return read_thread_table(path)
    from temper_plugin_trainer.training.bundles import read_bundle  # noqa: PLC0415 - slow
    from temper_plugin_trainer.training.synthesis import bundle_table  # noqa: PLC0415 - slow

    return bundle_table(read_bundle(path))


def _narrowed(path: Path, table: ThreadTable, containers: tuple[str, ...]) -> ThreadTable:
    """Return *table* with only the threads of *containers*. Raise InputError for unknown names."""
    names = sorted({thread.container for thread in table.threads} - {""})
    for name in containers:
        if name not in names:
            raise InputError(f"{path}: no container {name!r}; there are: {', '.join(names) or '-'}")
    threads = tuple(
        thread for thread in table.threads if not containers or thread.container in containers
    )
    return attrs.evolve(table, threads=threads)


def _document(path: Path, coverage: Coverage) -> dict[str, Any]:
    table = coverage.table
    return {
        "profile": coverage.profile.id,
        "recording": str(path),
        "program": table.program,
        "version": table.version,
        "is_about_version": coverage.is_about_version,
        "cpus_used": round(table.cpus_used, 6),
        "unseen_cpus": table.unseen_cpus,
        "unreached_cpus": coverage.unreached_cpus,
        "coverage": round(coverage.covered_share, 6),
        "taken": round(coverage.taken_share, 6),
        "late": round(coverage.late_share, 6),
        "groups": [
            {"name": name, "treatment": treatment, **_members(coverage, name)}
            for name, treatment in _groups(coverage)
        ],
        "unmatched": _members(coverage, None),
        "hot_unmatched": [_row(row) for row in coverage.hot_unmatched],
        "in_several_groups": [_row(row) for row in coverage.judged if row.others],
        "decided_late": [
            {**_row(row), "late_cpus": round(row.late_cpus, 6), "before": _first_name(row)}
            for row in coverage.late
        ],
    }


def _first_name(judged: Judged) -> str | None:
    """Return the group that the kernel puts the thread into at its start."""
    first = judged.stays[0].group
    return first.name if first else None


def _groups(coverage: Coverage) -> Iterator[tuple[str, str]]:
    for group in coverage.profile.thread_groups:
        yield group.name, str(group.treatment)


def _members(coverage: Coverage, name: str | None) -> dict[str, Any]:
    rows = coverage.of_group(name)
    return {
        "threads": sum(row.thread.count for row in rows),
        "share": round(coverage.share_of(name), 6),
        "names": list(dict.fromkeys(row.thread.comm for row in rows)),
    }


def _row(judged: Judged) -> dict[str, Any]:
    thread = judged.thread
    return {
        "comm": thread.comm,
        "process": thread.process,
        "title": thread.title,
        "leader": thread.leader,
        "count": thread.count,
        "cpus_used": round(thread.cpus_used, 6),
        "group": judged.group.name if judged.group else None,
        "other_groups": list(judged.others),
    }


def _print(path: Path, coverage: Coverage) -> None:
    table, console = coverage.table, results_console()
    console.print(
        f"{path}: {table.program} {shown(table.version)}, {table.cpus_used:.2f} CPUs used in "
        f"{table.seconds:.1f} s; {_percent(coverage.covered_share)} covered by "
        f"{coverage.profile.id}, {_percent(coverage.taken_share)} in any group"
    )
    result = plain_table("group", "treatment", "threads", "CPU time", "names")
    for name, treatment in (*_groups(coverage), (None, "")):
        members = _members(coverage, name)
        if name is None and not members["threads"]:
            continue
        named = ", ".join(map(shown, members["names"][:MOST_NAMES]))
        more = len(members["names"]) - MOST_NAMES
        named += f" and {more} more" if more > 0 else ""
        threads, share = str(members["threads"]), _percent(members["share"])
        result.add_row(name or "none", treatment, threads, share, named)
    console.print(result)
    for line in _remarks(coverage):
        console.print(shown(line))


def _remarks(coverage: Coverage) -> Iterator[str]:
    yield from _remarks_on_the_recording(coverage)
    for thread, (count, cpus_used) in _alike(coverage.hot_unmatched).items():
        yield _unmatched(thread, count, cpus_used / coverage.table.cpus_used)
    for row in coverage.judged:
        if row.others:
            others = ", ".join(name or "none" for name in row.others)
            own = row.group.name if row.group else "none"
            name = row.thread.comm
            yield f"in several groups: {name} is in {own}, by its other names in {others}"
    yield from _remarks_on_late_ones(coverage)
    unseen = coverage.table.unseen_cpus
    if unseen:
        share = _percent(unseen / (coverage.table.cpus_used + unseen))
        yield f"not recorded: {share} of the CPU time was of threads too short-lived to be seen"
    if coverage.unreached_cpus:
        yield "not recorded threads are not covered: no prefix of a name takes them at their start"


def _remarks_on_the_recording(coverage: Coverage) -> Iterator[str]:
    """Yield what is remarkable about the containers and the version of the recorded program."""
    containers = sorted({thread.container for thread in coverage.table.threads} - {""})
    if len(containers) > 1:
        yield (
            f"several containers: {', '.join(containers)}; a profile is for those that its "
            "fingerprint recognises, which --container names"
        )
    if coverage.is_about_version is False:
        versions = " ".join(coverage.profile.fingerprint.versions)
        yield f"not for this version: the profile is for versions {versions}"


def _remarks_on_late_ones(coverage: Coverage) -> Iterator[str]:
    """Yield what user space decides too late, so that its threads use CPU time elsewhere."""
    if coverage.lacks_origins:
        yield (
            "recorded without executables and parents: exe, parent and is_child hold for no "
            "thread; record the program again"
        )
    kinds: dict[tuple[str, str, str], float] = {}
    for row in coverage.late:
        key = (
            row.thread.comm,
            row.group.name if row.group else "none",
            _first_name(row) or "its tier",
        )
        kinds[key] = kinds.get(key, 0.0) + row.late_cpus
    for (comm, group, before), cpus in kinds.items():
        share = _percent(cpus / coverage.table.cpus_used)
        yield (
            f"decided late: {comm} is in {before} for {share} of the CPU time, until it is found "
            f"to be in {group}; prefixes of names take a thread from its start"
        )


def _unmatched(thread: TableThread, count: int, share: float) -> str:
    """Describe *count* hot threads like *thread* that no group takes."""
    where = f" of process {thread.process}" if thread.process != thread.comm else ""
    times = f", {count} threads" if count > 1 else ""
    cut = "…" if len(thread.title) > LONGEST_TITLE else ""
    titled = f" ({thread.title[:LONGEST_TITLE]}{cut})" if thread.title else ""
    return (
        f"unmatched and hot: {thread.comm}{where}{times}, {_percent(share)} of the CPU time{titled}"
    )


def _alike(judged: Iterable[Judged]) -> dict[TableThread, tuple[int, float]]:
    """Return the first thread of each name, process and title, with the sums of count and CPUs."""
    sums: dict[tuple[str, ...], tuple[TableThread, int, float]] = {}
    for thread in (row.thread for row in judged):
        key = thread.comm, thread.process, thread.title
        first, count, cpus_used = sums.get(key, (thread, 0, 0.0))
        sums[key] = first, count + thread.count, cpus_used + thread.cpus_used
    return {first: (count, cpus_used) for first, count, cpus_used in sums.values()}


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
