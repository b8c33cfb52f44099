"""What must be true of the programs: by the engine's own record, and by the kernel's trace."""

from collections.abc import Callable, Sequence

import programs
from kernel import NotInTime
from outcomes import Report
from placements import (
    CONNECTIONS,
    FEEDERS,
    OWN,
    TIER,
    Named,
    faults,
    is_any,
    is_connection,
    is_innodb,
    is_main,
    is_worker,
    rows_of,
    told,
)
from profiled import Json, Node, Rows
from switches import Stay, Window, kernel_threads, used_by, watch

WATCHED_S = 6.0
CORES = 2
# Of the time that the connections ran. Nothing keeps two threads of an exclusive layer off one core
# if more of them are runnable than the layer has cores: the engine lets a thread that runs go on.
STRANGERS, OVERLAP = 0.01, 0.05


def judge_database(node: Node, report: Report) -> None:
    """Judge where the server's threads are, and those of its neighbour in the pod."""
    node.count_switches(node.rows("db"))
    programs.answered()  # wakes up the thread that takes connections
    _expect(node, report, "connections", "mysql", [(is_connection, CONNECTIONS)])
    _expect(node, report, "innodb", "mysql", [(is_innodb, TIER)])
    _expect(node, report, "accepting", "mysql", [(is_main, TIER)])
    _expect(node, report, "neighbour", "exporter", [(is_any, TIER)])


def judge_training(node: Node, report: Report) -> None:
    """Judge where the training's threads are: workers are processes, and come and go."""
    rows = node.rows("train")
    node.count_switches(rows)
    wanted = [(is_worker, FEEDERS), (lambda name: not is_worker(name), OWN)]
    _expect(node, report, "training", "trainer", wanted)


def judge_fence(node: Node, report: Report) -> None:
    """Judge by the kernel's trace who ran on the cores of the connections."""
    seen = node.observe()
    cpus, cores = _home(seen)
    whole = len(cores) == CORES and cpus == set().union(*cores)
    report.claim("whole_cores", whole, f"CPUs {sorted(cpus)} of cores {cores}")
    before = rows_of(node, "mysql", is_connection)
    window = watch(WATCHED_S, report.trace)
    tids = {row["tid"] for row in before}
    report.tell(f"connections: {sorted(tids)}; layers before: {_owned(seen)}")
    report.tell(f"layers after: {_owned(node.observe())}")
    mine = [stay for stay in window.stays if stay.tid in tids]
    ran = sum(stay.length_s for stay in mine)
    report.tell(f"{len(mine)} stays of connections, {ran:.2f} s; {window.lost} records lost")
    away = sum(stay.length_s for stay in mine if stay.cpu not in cpus)
    told_all = ran > 0 and not window.lost
    report.claim("at_home", told_all and away == 0, f"{away:.4f} s of {ran:.2f} s")
    others = [stay for stay in window.stays if stay.cpu in cpus and stay.tid not in tids]
    kernels, pods_own = kernel_threads(), {row["tid"] for row in node.rows("db")}
    strangers = [stay for stay in others if stay.tid not in kernels | pods_own]
    tier = [stay for stay in others if stay.tid in pods_own]
    strange = sum(stay.length_s for stay in strangers)
    own = [stay for stay in others if stay.tid in kernels]
    measured = (
        f"{used_by(window, strangers)}; the pod's other threads: {used_by(window, tier)}; "
        f"the kernel's own: {used_by(window, own)}"
    )
    report.claim("alone", told_all and strange <= STRANGERS * ran, measured)
    report.tell(f"more connections than cores: {_both_busy(window, mine, cores)[1]}")


def judge_siblings(node: Node, report: Report) -> None:
    """Judge how long both CPUs of a core were busy, with a connection for each core.

    The connections only read, because the log's threads are in the same layer.
    """
    node.ask_by(programs.ONE_PER_CORE, programs.READS)
    cores = _home(node.observe())[1]
    tids = {row["tid"] for row in rows_of(node, "mysql", is_connection)}
    window = watch(WATCHED_S, None)
    mine = [stay for stay in window.stays if stay.tid in tids]
    ran = sum(stay.length_s for stay in mine)
    both, measured = _both_busy(window, mine, cores)
    idled = ran > 0 and not window.lost and both <= OVERLAP * ran
    report.claim("siblings_idle", idled, measured)
    node.ask_by(programs.ONE_PER_CORE, programs.READS_AND_WRITES)


def _home(seen: Json) -> tuple[set[int], list[set[int]]]:
    """Return the CPUs of the layer of the connections, and the cores that they are on."""
    cpus = next(set(each["cpus"]) for each in seen["layers"] if each["name"] == CONNECTIONS)
    return cpus, [set(core) for core in seen["machine"]["siblings"] if cpus & set(core)]


def _owned(seen: Json) -> dict[str, list[int]]:
    return {layer["name"]: layer["cpus"] for layer in seen["layers"]}


def _both_busy(
    window: Window, mine: Sequence[Stay], cores: Sequence[set[int]]
) -> tuple[float, str]:
    """Return the seconds in which both CPUs of a core were busy while a connection had one."""
    ran = sum(stay.length_s for stay in mine)
    sibling = {cpu: (core - {cpu}).pop() for core in cores for cpu in core}
    at_home = [stay for stay in mine if stay.cpu in sibling]
    kernels = kernel_threads()
    beside = [(window.busy(sibling[stay.cpu], stay.since, stay.until), stay) for stay in at_home]
    parts = [part for found, _ in beside for part in found]
    both = sum(part.length_s for part in parts if part.tid not in kernels)
    return both, f"{both:.4f} s of {ran:.2f} s, the other had {used_by(window, parts)}"


def _expect(
    node: Node, report: Report, claim: str, program: str, wanted: Sequence[tuple[Named, str]]
) -> None:
    """Claim that every thread of a program that has been awake is where its name belongs."""

    def awake(named: Named) -> Rows:
        tids = node.awake
        return [row for row in rows_of(node, program, named) if row["tid"] in tids]

    def missing() -> list[str]:
        found = [(awake(named), layer) for named, layer in wanted]
        absent = ["some have not been awake"] if not all(rows for rows, _ in found) else []
        return absent + [fault for rows, layer in found for fault in faults(rows, layer)]

    def measured() -> str:
        return told([row for named, _ in wanted for row in rows_of(node, program, named)])

    claim_soon(node, report, claim, missing, measured)


def claim_soon(
    node: Node,
    report: Report,
    claim: str,
    missing: Callable[[], Sequence[str]],
    measured: Callable[[], str],
) -> None:
    """Claim that soon nothing is missing any more."""
    try:
        took = node.wait_until(claim, lambda: not missing())
        report.claim(claim, True, f"after {took:.1f} s: {measured()}")
    except NotInTime as late:
        report.claim(claim, False, f"{late}: {'; '.join(missing())}; {measured()}")
