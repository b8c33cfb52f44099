"""The difference of two traces: two times, or two nodes such as a canary and another."""

from attrs import frozen

from temper_plugin_tracer.trace.analysis.report import Report, Subject

__all__ = ["Change", "Rates", "changes"]


@frozen
class Rates:
    """A subject's sums by the second of its trace, so that traces of different lengths compare.

    Attributes:
        run_share: CPU time by time: 1.0 is one CPU.
        wait_share: Waits by time: 1.0 is one thread that always waits.
        wakeups_per_s: Wake-ups.
        migrations_per_s: Migrations.
        wait_p50_ns: As in ``Distribution``.
        wait_p99_ns: The same.
        longest_wait_ns: The same.
        shared_share: Part of its run time with a busy sibling, None without a topology.
        outside_share: Part of its run time outside of the plan, None without a plan.

    """

    run_share: float
    wait_share: float
    wakeups_per_s: float
    migrations_per_s: float
    wait_p50_ns: int | None
    wait_p99_ns: int | None
    longest_wait_ns: int
    shared_share: float | None
    outside_share: float | None


@frozen
class Change:
    """A subject before and after. It is None where it has no thread."""

    name: str
    before: Rates | None
    after: Rates | None


def changes(before: Report, after: Report, level: str) -> tuple[Change, ...]:
    """Return the changes of the subjects of *level* in both reports, most changed wait first."""
    old = {one.name: _rates(one, before) for one in before.subjects[level]}
    new = {one.name: _rates(one, after) for one in after.subjects[level]}
    found = [Change(name, old.get(name), new.get(name)) for name in {**old, **new}]
    return tuple(sorted(found, key=lambda change: (-_moved(change), change.name)))


def _moved(change: Change) -> float:
    waits = [one.wait_share if one is not None else 0.0 for one in (change.before, change.after)]
    return abs(waits[1] - waits[0])


def _rates(subject: Subject, report: Report) -> Rates:
    length_ns = max(report.length_ns, 1)
    return Rates(
        run_share=subject.run_ns / length_ns,
        wait_share=subject.wait_ns / length_ns,
        wakeups_per_s=subject.wakeups * 1e9 / length_ns,
        migrations_per_s=subject.migrations * 1e9 / length_ns,
        wait_p50_ns=subject.waits.p50_ns,
        wait_p99_ns=subject.waits.p99_ns,
        longest_wait_ns=subject.waits.longest_ns,
        shared_share=_part(subject.shared_ns, subject.run_ns),
        outside_share=_part(subject.outside_ns, subject.run_ns),
    )


def _part(ns: int | None, of_ns: int) -> float | None:
    return None if ns is None else ns / max(of_ns, 1)
