"""Compares what training tells of the recorded servers with the groups that the packs have.

A thread table has no wait channels, so chains and latency critical threads are one class here: they
serve. So the comparison is which threads a profile would have yield. ``python -m
bench.trained_groups`` prints the table.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from attrs import frozen

from temper_plugin_trainer.coverage import judge
from temper_plugin_trainer.thread_tables import TableThread, ThreadTable
from temper_plugin_trainer.training.bundles import (
    Bundle,
    BundleAgent,
    BundleInterval,
    BundleThread,
)
from temper_plugin_trainer.training.classes import SURE, ThreadClass
from temper_plugin_trainer.training.grouping import analyse
from tests.builtin_profiles.recorded import PACKS, PAIRS, RECORDINGS

TOLD_SHARE = 0.02
SERVED_BY = {"wait_woken": 20}
"""Wait channels that make every thread that is woken often one that serves."""
WITHOUT_AGENT = BundleAgent("a thread table has no wake-ups")


@frozen
class Difference:
    """Threads of a family that one side has yield, and the other not."""

    family: str
    kind: str
    group: str
    treatment: str


@frozen
class Comparison:
    """Shares of the CPU time of a recording: of equal and unclear threads, and of the others."""

    pack: str
    recording: str
    equal: float
    unclear: float
    differing: Mapping[Difference, float]


def bundle_of(table: ThreadTable) -> tuple[Bundle, Sequence[TableThread]]:
    """Return a table as a bundle. The thread with the id *n* is that of the row *n* - 1."""
    rows = [row for row in table.threads for _ in range(row.count)]
    threads = tuple(_thread(tid, row, table.seconds) for tid, row in enumerate(rows, 1))
    interval = BundleInterval(table.seconds, 0.0, 0.0, 0, len(threads))
    facts = (table.machine, table.kernel, table.date, table.seconds)
    return Bundle(table.program[:15], *facts, (interval,), threads, WITHOUT_AGENT), rows


def _thread(tid: int, row: TableThread, seconds: float) -> BundleThread:
    lived_s = max(1e-6, row.lived_share * seconds)
    runs = int(row.wakeups_per_s * lived_s)
    return BundleThread(
        tid=tid,
        pid=tid,
        comm=row.comm,
        process=row.process,
        lived_s=lived_s,
        run_s=row.cpu_share * lived_s,
        wait_s=row.wait_share * lived_s,
        runs=runs,
        sleeps=runs,
        sleeps_in=SERVED_BY,
        names=row.names,
        title=row.title,
        leader=row.leader,
        container=row.container,
    )


def compared(pack: str, recording: str) -> Comparison:
    """Compare a pack with what the classes of a recording say."""
    bundle, rows = bundle_of(RECORDINGS[recording])
    takers = {id(row.thread): row.group for row in judge(PACKS[pack], RECORDINGS[recording]).judged}
    equal, unclear, differing = 0.0, 0.0, defaultdict[Difference, float](float)
    for group in analyse(bundle).groups:
        for row in (rows[tid - 1] for tid in group.tids):
            cpus, taker = row.cpu_share * row.lived_share, takers[id(row)]
            treatment = str(taker.treatment) if taker else "normal"
            if group.confidence < SURE:
                unclear += cpus
            elif (group.kind is ThreadClass.SPORADIC) is (treatment == "yield"):
                equal += cpus
            else:
                name = taker.name if taker else "none"
                differing[Difference(group.label, str(group.kind), name, treatment)] += cpus
    total = equal + unclear + sum(differing.values())
    told = {each: cpus / total for each, cpus in differing.items() if cpus >= TOLD_SHARE * total}
    return Comparison(pack, recording, equal / total, unclear / total, told)


def table() -> str:
    """Return one line for each pack, in Markdown."""
    by_pack = defaultdict[str, list[Comparison]](list)
    for pair in PAIRS:
        by_pack[pair[0]].append(compared(*pair))
    head = (
        "| pack | recordings | equal, % | unclear, % | threads that differ, and the pack's group |"
    )
    lines = [head, "| --- | --: | --: | --: | --- |"]
    lines += (_line(pack, comparisons) for pack, comparisons in by_pack.items())
    return "\n".join(lines)


def _line(pack: str, comparisons: Sequence[Comparison]) -> str:
    largest: dict[str, float] = {}
    for differing in (each.differing for each in comparisons):
        for each, share in differing.items():
            words = f"`{each.family}` {each.kind}, `{each.group}` {each.treatment}"
            largest[words] = max(share, largest.get(words, 0.0))
    told = "; ".join(f"{words}: {100 * share:.0f} %" for words, share in largest.items())
    equal = _spread([each.equal for each in comparisons])
    unclear = _spread([each.unclear for each in comparisons])
    return f"| `{pack}` | {len(comparisons)} | {equal} | {unclear} | {told or '-'} |"


def _spread(shares: Sequence[float]) -> str:
    least, most = (f"{100 * share:.0f}" for share in (min(shares), max(shares)))
    return least if least == most else f"{least}-{most}"


if __name__ == "__main__":
    print(table())
