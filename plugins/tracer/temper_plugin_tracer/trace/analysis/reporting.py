"""Makes the report of an analysis: sums over threads by level, with names."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from attrs import define, frozen

from temper_plugin_tracer.trace.analysis.analyzer import Analyzer
from temper_plugin_tracer.trace.analysis.names import Names
from temper_plugin_tracer.trace.analysis.pairs import CODE_BITS, PairSums
from temper_plugin_tracer.trace.analysis.report import (
    LEVELS,
    Distribution,
    Edge,
    Report,
    Share,
    Subject,
)
from temper_plugin_tracer.trace.analysis.shares import shares_of
from temper_plugin_tracer.trace.analysis.slices import powers, quantile_ns
from temper_plugin_tracer.trace.analysis.slow_wake_ups import slow_wake_ups
from temper_plugin_tracer.trace.analysis.threads import Integers
from temper_plugin_tracer.trace.roster import TracedThread

__all__ = ["PARTY_LEVELS", "Wanted", "report_of"]

PARTY_LEVELS = ("thread", "group", "pod", "layer")
"""Levels at which the parties of a wait are reported."""
USUAL_ROWS = 20
PartyShares = dict[str, tuple[Share, ...]]


@frozen
class Wanted:
    """The content of a report.

    Attributes:
        rows: Subjects of each level, edges, and parties of each subject.
        of: Part of a subject's name. Only such subjects are reported. All if it is empty.
        knows_siblings: Whether the trace has the CPUs' cores.
        knows_plan: Whether the trace has the plan of its layers.
        knows_throttling: Whether the trace says which threads were throttled.

    """

    rows: int = USUAL_ROWS
    of: str = ""
    knows_siblings: bool = False
    knows_plan: bool = False
    knows_throttling: bool = False


def report_of(
    analyzer: Analyzer,
    threads: Iterable[TracedThread],
    wanted: Wanted,
    lost: Mapping[int, int] | None = None,
) -> Report:
    """Return the report of what *analyzer* has seen. *lost* are lost events by CPU."""
    table = analyzer.threads
    maker = _Maker(analyzer, Names(threads, table), wanted)
    begin_ns = analyzer.begin_ns or 0
    tids, is_whole = table.tids[: table.count], analyzer.is_whole
    return Report(
        begin_ns=begin_ns,
        length_ns=analyzer.end_ns - begin_ns,
        events=analyzer.events,
        cpus=analyzer.cpus,
        only_cpus=analyzer.only_cpus,
        threads=int((tids > 0).sum()),
        whole_threads=int((is_whole & (tids > 0)).sum()),
        lost={cpu: count for cpu, count in (lost or {}).items() if count},
        broken=int(table.broken[: table.count][is_whole].sum()),
        unwoken=int(table.unwoken[: table.count][is_whole].sum()),
        knows_throttling=wanted.knows_throttling,
        folded=analyzer.blockers.folded + analyzer.sharers.folded,
        subjects={level: maker.subjects(level) for level in LEVELS},
        edges=maker.edges(),
        slowest=slow_wake_ups(analyzer, maker.names, wanted.rows),
    )


@define(eq=False)
class _Maker:
    analyzer: Analyzer
    names: Names
    wanted: Wanted

    def subjects(self, level: str) -> tuple[Subject, ...]:
        """Return the subjects of a level with the most wait."""
        table = self.analyzer.threads
        members: dict[str, list[int]] = defaultdict(list)
        for row, tid in enumerate(table.tids[: table.count].tolist()):
            if tid and self.analyzer.is_whole[row]:
                members[self.names.of(tid, level)].append(row)
        chosen = [name for name in members if self.wanted.of in name]
        waits = {name: int(table.wait_ns[members[name]].sum()) for name in chosen}
        chosen.sort(key=lambda name: (-waits[name], name))
        chosen = chosen[: self.wanted.rows]
        groups = [members[name] for name in chosen]
        blockers = self._shares(groups, self.analyzer.blockers)
        sharers = self._shares(groups, self.analyzer.sharers)
        return tuple(
            self._subject(level, name, np.array(rows), blocked, shared)
            for name, rows, blocked, shared in zip(chosen, groups, blockers, sharers, strict=True)
        )

    def edges(self) -> tuple[Edge, ...]:
        """Return the edges with the most wait, of threads that are asked for on either side."""
        table = self.analyzer.threads
        tids = table.tids[: table.count].tolist()
        asked = {tid for tid in tids if self._is_asked(tid)}
        edges = (
            Edge(
                self.names.waker(waker),
                self.names.of(tids[row], "thread"),
                count,
                waits_ns,
                longest_ns,
            )
            for waker, row, count, waits_ns, longest_ns in self.analyzer.edges.all()
            if waker in asked or tids[row] in asked or self.wanted.of in self.names.waker(waker)
        )
        ordered = sorted(edges, key=lambda edge: (-edge.waits_ns, edge.waker, edge.woken))
        return tuple(ordered[: self.wanted.rows])

    def _is_asked(self, tid: int) -> bool:
        """Whether a thread is of a subject of any level that is asked for."""
        return any(self.wanted.of in self.names.of(tid, level) for level in LEVELS)

    def _subject(
        self, level: str, name: str, rows: Integers, blockers: PartyShares, sharers: PartyShares
    ) -> Subject:
        table, wanted = self.analyzer.threads, self.wanted
        total: Callable[[Integers], int] = lambda column: int(column[rows].sum())  # noqa: E731
        return Subject(
            level=level,
            name=name,
            threads=len(rows),
            place=self.names.place(int(table.tids[rows[0]])) if level == "thread" else "",
            run_ns=total(table.run_ns),
            wait_ns=total(table.wait_ns),
            wakeups=total(table.wakeups),
            idle_wakeups=total(table.idle_wakeups),
            migrations=total(table.migrations),
            preemptions=total(table.preemptions),
            shared_ns=total(table.shared_ns) if wanted.knows_siblings else None,
            outside_ns=total(table.outside_ns) if wanted.knows_plan else None,
            slices=_distribution(rows, table.slice_counts, table.slices_ns, table.longest_slice_ns),
            waits=_distribution(rows, table.wait_counts, table.waits_ns, table.longest_wait_ns),
            blockers=blockers,
            sharers=sharers,
        )

    def _shares(self, groups: Sequence[Sequence[int]], sums: PairSums) -> list[PartyShares]:
        """Return the shares of each group of rows, by the level of the parties."""
        group_of = np.full(len(self.analyzer.threads.tids), -1, np.int64)
        for number, rows in enumerate(groups):
            group_of[rows] = number
        keys, values = sums.all()
        group = group_of[keys >> CODE_BITS]
        chosen = group >= 0
        codes = keys[chosen] & ((1 << CODE_BITS) - 1)
        found: list[Counter[int]] = [Counter() for _ in groups]
        for number, code, ns in zip(
            group[chosen].tolist(), codes.tolist(), values[chosen].tolist(), strict=True
        ):
            found[number][code] += ns
        tids = self.analyzer.threads.tids
        return [
            {
                level: shares_of(self.names, parties, level, tids[rows].tolist(), self.wanted.rows)
                for level in PARTY_LEVELS
            }
            if parties
            else {}
            for parties, rows in zip(found, map(list, groups), strict=True)
        ]


def _distribution(
    rows: Integers, counts: np.ndarray, totals: Integers, longest: Integers
) -> Distribution:
    summed = counts[rows].sum(axis=0, dtype=np.int64)
    longest_ns = int(longest[rows].max())
    return Distribution(
        count=int(summed.sum()),
        total_ns=int(totals[rows].sum()),
        p50_ns=quantile_ns(summed, 0.5, longest_ns),
        p99_ns=quantile_ns(summed, 0.99, longest_ns),
        longest_ns=longest_ns,
        powers=tuple(powers(summed)),
    )
