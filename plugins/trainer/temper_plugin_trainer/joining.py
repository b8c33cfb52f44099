"""Converts sampled threads to the rows of a table. Alike short-lived ones become one row."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from temper_plugin_trainer.name_families import name_family
from temper_plugin_trainer.sampling import SeenThread, ThreadCounters
from temper_plugin_trainer.thread_tables import MOST_THREADS, TableThread

MOST_ALIKE = 64
"""Threads of one kind that have a row each. A greater number is joined to one row."""
SHORT_LIVED = 0.5
"""Share of the recording. Threads that lived for less are joined with others of their kind."""
MOST_NAMES = 64
LEAST_SHARE = 1e-6
NS_PER_S = 1_000_000_000
NS_PER_US = 1_000


def table_threads(seen: Iterable[SeenThread], seconds: float) -> tuple[TableThread, ...]:
    """Return the rows of a recording of *seconds*, the busiest first."""
    rows = [_row(alike, seconds) for alike in _grouped(seen, seconds)]
    rows.sort(key=lambda row: (row.container, -row.cpus_used, row.process, row.comm))
    if len(rows) > MOST_THREADS:
        rows = sorted(rows, key=lambda row: -row.cpus_used)[:MOST_THREADS]
    return tuple(rows)


def _grouped(seen: Iterable[SeenThread], seconds: float) -> Iterator[Sequence[SeenThread]]:
    kinds: defaultdict[object, list[SeenThread]] = defaultdict(list)
    for thread in seen:
        kinds[_kind(thread)].append(thread)
    for alike in kinds.values():
        if len(alike) > MOST_ALIKE:
            yield alike
            continue
        short = [thread for thread in alike if thread.lived_s < SHORT_LIVED * seconds]
        if short:
            yield short
        yield from ([thread] for thread in alike if thread.lived_s >= SHORT_LIVED * seconds)


def _kind(thread: SeenThread) -> object:
    # Process ids, ports and counts in titles make no difference of kind.
    title = name_family(thread.title, "0")
    kind = thread.container, thread.process, title, thread.leader, thread.comm
    return *kind, thread.origin, thread.age_s < 0


def _row(alike: Sequence[SeenThread], seconds: float) -> TableThread:
    first = alike[0]
    lived_s = sum(thread.lived_s for thread in alike)
    used = ThreadCounters(*map(sum, zip(*(thread.used for thread in alike), strict=True)))
    names = dict.fromkeys(name for thread in alike for name in thread.names)
    return TableThread(
        comm=first.comm,
        process=first.process,
        title=first.title,
        leader=first.leader,
        cpu_share=_share(used.run_ns / NS_PER_S / lived_s),
        wait_share=_share(used.delay_ns / NS_PER_S / lived_s),
        wakeups_per_s=round(used.runs / lived_s, 2),
        run_us=round(used.run_ns / NS_PER_US / used.runs, 1) if used.runs else 0.0,
        count=len(alike),
        container=first.container,
        names=tuple(names)[:MOST_NAMES],
        lived_share=max(LEAST_SHARE, _share(lived_s / len(alike) / seconds)),
        age_s=round(sum(thread.age_s for thread in alike) / len(alike), 3),
        exe=first.origin.exe,
        parent=first.origin.parent,
        child=first.origin.is_child,
    )


def _share(value: float) -> float:
    return round(min(1.0, max(0.0, value)), 6)
