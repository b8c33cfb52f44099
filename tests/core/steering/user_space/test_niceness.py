"""Nice values of real threads: set for groups, given back in every case."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from temper_core.steering import niceness as niceness_module
from temper_core.steering.nice_record import FILE_NAME, NicedThread, NiceRecord
from temper_core.steering.niceness import (
    CONFIRMED_S,
    MOST_OF_PROCESS,
    GivenBack,
    Niceness,
    WantedNice,
    give_back_all,
)
from temper_core.steering.scheduling import set_reset_on_fork
from tests.core.steering.processes import until
from tests.core.steering.user_space.plans import at, rule, steered

BOOST = -5
LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
INHERITED_BY_NONE = os.SCHED_OTHER | os.SCHED_RESET_ON_FORK
FORKS = "import os, time; os.fork(); time.sleep(600)"
EXECUTES = """
import os, sys, threading
def execute():
    print(threading.get_native_id(), flush=True)
    sys.stdin.readline()
    os.execvp("sleep", ["sleep", "600"])
threading.Thread(target=execute).start()
"""
KILLED = """
import sys, time
from pathlib import Path
from temper_core.steering.nice_record import NiceRecord
from temper_core.steering.niceness import Niceness, WantedNice
tid, start_ns, directory = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
Niceness(NiceRecord(directory), is_allowed=True).follow([WantedNice(tid, start_ns, -5)], 0.0)
print("set", flush=True)
time.sleep(600)
"""


CROWD = """
import sys, threading, time
threading.stack_size(131072)
for _ in range(int(sys.argv[1])):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("ready", flush=True)
time.sleep(600)
"""
GIVES_BACK = """
import sys
from pathlib import Path
from temper_core.steering.nice_record import NiceRecord
from temper_core.steering.niceness import give_back_all
print(give_back_all(NiceRecord(Path(sys.argv[1]))))
"""


@pytest.fixture
def sleeper(ordinary_nice):  # noqa: ARG001 - which comes first
    process = subprocess.Popen(["sleep", "600"])
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture
def niceness(tmp_path):
    made = Niceness(NiceRecord(tmp_path), is_allowed=True)
    yield made
    made.release()


@pytest.fixture(autouse=True)
def ordinary_nice():
    """Have the test's processes begin at 0, even if the tests were started by nice(1)."""
    if os.geteuid():
        pytest.skip("nice values below 0 need root")
    own = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    yield
    os.setpriority(os.PRIO_PROCESS, 0, own)


def start_of(pid):
    stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return int(stat[19]) * (1_000_000_000 // os.sysconf("SC_CLK_TCK"))


def name_of(pid):
    """Return the name of a process, empty while a thread of it becomes its leader."""
    with suppress(ProcessLookupError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def wanted(pid, nice=BOOST):
    return WantedNice(pid, start_of(pid), nice)


def nice_of(tid):
    return os.getpriority(os.PRIO_PROCESS, tid)


def test_a_thread_gets_its_nice_value_and_gets_it_back(niceness, sleeper, tmp_path):
    niceness.follow([wanted(sleeper)], 0.0)
    during, recorded = nice_of(sleeper), NiceRecord(tmp_path).read()

    niceness.follow([wanted(sleeper, 0)], 1.0)

    assert (during, nice_of(sleeper)) == (BOOST, 0)
    assert recorded == (NicedThread(sleeper, start_of(sleeper), BOOST),)
    assert os.sched_getscheduler(sleeper) == os.SCHED_OTHER
    assert (niceness.held, niceness.problem) == (0, "")


def test_another_value_replaces_the_first(niceness, sleeper):
    niceness.follow([wanted(sleeper)], 0.0)

    niceness.follow([wanted(sleeper, -10)], 1.0)

    assert (nice_of(sleeper), niceness.held) == (-10, 1)


def test_a_child_of_such_a_thread_does_not_inherit_the_value(niceness):
    process = subprocess.Popen([sys.executable, "-c", "input(); " + FORKS], stdin=subprocess.PIPE)
    niceness.follow([wanted(process.pid)], 0.0)

    process.stdin.write(b"\n")
    process.stdin.flush()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    child = int(until(children.read_text).split()[0])

    assert os.sched_getscheduler(process.pid) == INHERITED_BY_NONE
    assert (nice_of(process.pid), nice_of(child)) == (BOOST, 0)
    os.kill(child, signal.SIGKILL)
    process.kill()
    process.communicate()


def test_a_thread_with_a_value_of_its_own_is_left_alone(niceness, sleeper):
    os.setpriority(os.PRIO_PROCESS, sleeper, 3)

    niceness.follow([wanted(sleeper)], 0.0)
    niceness.release()

    assert (nice_of(sleeper), niceness.own) == (3, 1)


@pytest.mark.parametrize("policy", [os.SCHED_BATCH, os.SCHED_IDLE, INHERITED_BY_NONE])
def test_a_thread_of_another_policy_is_left_alone(niceness, sleeper, policy):
    os.sched_setscheduler(sleeper, policy, os.sched_param(0))

    niceness.follow([wanted(sleeper)], 0.0)

    assert (nice_of(sleeper), os.sched_getscheduler(sleeper)) == (0, policy)
    assert (niceness.held, niceness.own) == (0, 1)


def test_a_value_that_the_program_sets_later_stays(niceness, sleeper):
    niceness.follow([wanted(sleeper)], 0.0)
    os.setpriority(os.PRIO_PROCESS, sleeper, 7)

    niceness.follow([wanted(sleeper)], 1.0)
    niceness.release()

    assert (nice_of(sleeper), niceness.held, niceness.own) == (7, 0, 1)
    assert os.sched_getscheduler(sleeper) == os.SCHED_OTHER


def test_another_thread_of_the_same_id_is_left_alone(niceness, sleeper):
    other = WantedNice(sleeper, start_of(sleeper) - 10**9, BOOST)

    niceness.follow([other], 0.0)

    assert (nice_of(sleeper), niceness.held) == (0, 0)


def replaced(process):
    """End a process, and return another one that has its id."""
    if not LAST_PID.exists():
        pytest.skip("only a kernel with CHECKPOINT_RESTORE lets a test choose an id")
    process.kill()
    process.wait()
    for _ in range(100):
        LAST_PID.write_text(str(process.pid - 1))
        other = subprocess.Popen(["sleep", "600"])
        if other.pid == process.pid:
            return other
        other.kill()  # a process of somebody else took the id
        other.wait()
    pytest.skip("the id of the ended process is not free")


@pytest.mark.parametrize("moment", ["record", "flag", "value"])
def test_a_thread_that_gets_the_id_in_between_is_left_alone(tmp_path, monkeypatch, moment):
    first = subprocess.Popen(["sleep", "600"])
    while start_of(first.pid) > time.clock_gettime(time.CLOCK_BOOTTIME) * 1e9 - 1e8:
        time.sleep(0.01)  # two starts have to be ticks apart
    others = []

    class Record(NiceRecord):
        def write(self, threads):
            problem = super().write(threads)
            if moment == "record":
                others.append(replaced(first))
            return problem

    def flagged(tid, *, is_set):
        if moment == "flag" and not others:
            others.append(replaced(first))
        set_reset_on_fork(tid, is_set=is_set)
        if moment == "value" and not others:
            others.append(replaced(first))

    monkeypatch.setattr(niceness_module, "set_reset_on_fork", flagged)
    niceness = Niceness(Record(tmp_path), is_allowed=True)
    niceness.follow([wanted(first.pid)], 0.0)
    (other,) = others

    try:
        assert (nice_of(other.pid), os.sched_getscheduler(other.pid)) == (0, os.SCHED_OTHER)
    finally:
        other.kill()
        other.wait()


def test_threads_that_are_no_longer_judged_are_released(niceness, sleeper):
    niceness.follow([wanted(sleeper)], 0.0)

    niceness.forget(frozenset([sleeper]), CONFIRMED_S - 1)
    meanwhile = nice_of(sleeper)
    niceness.forget(frozenset([sleeper]), CONFIRMED_S + 1)

    assert (meanwhile, nice_of(sleeper)) == (BOOST, 0)


def test_without_the_right_nothing_is_set_and_the_cause_is_told(tmp_path, sleeper):
    niceness = Niceness(NiceRecord(tmp_path), is_allowed=False)

    niceness.follow([wanted(sleeper)], 0.0)

    assert "CAP_SYS_NICE" in niceness.problem
    assert (nice_of(sleeper), niceness.held) == (0, 0)


def test_what_cannot_be_recorded_is_not_set(tmp_path, sleeper):
    niceness = Niceness(NiceRecord(tmp_path / "missing"), is_allowed=True)

    niceness.follow([wanted(sleeper)], 0.0)

    assert "No such file" in niceness.problem
    assert (nice_of(sleeper), niceness.held) == (0, 0)


def test_an_agent_that_is_killed_leaves_a_record_by_which_the_next_undoes_it(tmp_path, sleeper):
    words = [str(sleeper), str(start_of(sleeper)), str(tmp_path)]
    agent = subprocess.Popen([sys.executable, "-c", KILLED, *words], stdout=subprocess.PIPE)
    agent.stdout.readline()
    agent.kill()
    agent.communicate()
    left = nice_of(sleeper)

    changed = give_back_all(NiceRecord(tmp_path))

    assert (left, changed, nice_of(sleeper)) == (BOOST, GivenBack(1), 0)
    assert os.sched_getscheduler(sleeper) == os.SCHED_OTHER
    assert not (tmp_path / FILE_NAME).exists()


def test_a_record_of_another_threads_start_changes_nothing(tmp_path, sleeper):
    os.setpriority(os.PRIO_PROCESS, sleeper, BOOST)
    record = NiceRecord(tmp_path)
    record.write([NicedThread(sleeper, start_of(sleeper) - 10**10, BOOST)])

    assert give_back_all(record) == GivenBack()
    assert nice_of(sleeper) == BOOST


def test_a_record_of_another_pid_namespace_changes_nothing_and_stays(tmp_path, sleeper):
    record = NiceRecord(tmp_path)
    record.write([NicedThread(sleeper, start_of(sleeper), BOOST)])
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to("pid:[4026532000]")

    assert give_back_all(record, str(tmp_path)) == GivenBack(denied=1)
    assert [thread.tid for thread in record.read()] == [sleeper]


@pytest.mark.parametrize(
    ("version", "odd_row", "changed"), [(2, None, 0), (1, ["tid"], 1), (1, "tid", 1), (1, [1], 1)]
)
def test_threads_that_are_not_understood_stay_on_a_record_that_nobody_replaces(
    tmp_path, sleeper, version, odd_row, changed
):
    os.setpriority(os.PRIO_PROCESS, sleeper, BOOST)
    set_reset_on_fork(sleeper, is_set=True)
    row = list(NicedThread(sleeper, start_of(sleeper), BOOST))
    rows = [row] if odd_row is None else [odd_row, row]
    text = json.dumps({"schema_version": version, "threads": rows})
    record = NiceRecord(tmp_path)
    record.path.write_text(text)

    with capture_logs():
        found = give_back_all(record)
    niceness = Niceness(record, is_allowed=True)
    niceness.follow([wanted(os.getpid())], 0.0)

    assert found == GivenBack(changed, is_foreign=True)
    assert nice_of(sleeper) == (0 if changed else BOOST)
    assert record.path.read_text() == text
    assert "boost and latency are off" in niceness.problem
    assert niceness.held == 0


@pytest.fixture
def strangers_sleeper(ordinary_nice):  # noqa: ARG001 - which comes first
    """A thread of another user, whose nice value takes CAP_SYS_NICE to change."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    process = subprocess.Popen(["setpriv", "--reuid=65534", "--clear-groups", "sleep", "600"])
    until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n")
    yield process.pid
    process.kill()
    process.wait()


def test_threads_that_may_not_be_changed_stay_on_the_record(tmp_path, niceness, strangers_sleeper):
    niceness.follow([wanted(strangers_sleeper)], 0.0)
    words = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]
    said = subprocess.run(
        [*words, sys.executable, "-c", GIVES_BACK, str(tmp_path)], check=True, capture_output=True
    )

    assert said.stdout == b"GivenBack(changed=0, denied=1, is_foreign=False)\n"
    assert [thread.tid for thread in NiceRecord(tmp_path).read()] == [strangers_sleeper]
    assert nice_of(strangers_sleeper) == BOOST


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary()
    | JSON.map(lambda value: json.dumps(value).encode())
    | JSON.map(lambda value: json.dumps({"schema_version": 1, "threads": value}).encode())
)
def test_no_content_of_the_record_is_an_error(tmp_path, content):
    (tmp_path / FILE_NAME).write_bytes(content)

    assert all(isinstance(thread, NicedThread) for thread in NiceRecord(tmp_path).read())


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_regular_file_holds_no_record(tmp_path, make):
    make(tmp_path / FILE_NAME)

    assert NiceRecord(tmp_path).read() == ()


def test_the_threads_of_a_group_are_boosted_until_they_leave_it(steerer, cgroups, workload):
    pod = cgroups.make("pod")
    inside = workload()
    inside.move_to(pod)
    hot, other = inside.thread("hot-1"), inside.thread("other")
    rules = (rule("high", comm_prefix="hot", nice=BOOST), rule("high"))

    steerer.apply(steered(at(cgroups.path(pod), *rules, pod="shop/web")))
    steerer.turn(1000.0)
    during = nice_of(hot), nice_of(other), steerer.state.niced
    inside.rename("hot-1", "cold-1")
    steerer.turn(1100.0)

    assert during == (BOOST, 0, 1)
    assert (nice_of(hot), steerer.state.niced) == (0, 0)


@pytest.fixture
def crowd(ordinary_nice):  # noqa: ARG001 - which comes first
    """The threads of a process with more of them than may be changed."""
    with subprocess.Popen(
        [sys.executable, "-c", CROWD, str(MOST_OF_PROCESS + 200)], stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        yield [int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()]
        process.kill()


def test_a_process_with_very_many_threads_leaves_room_to_others(niceness, crowd, sleeper):
    for walk in range(4):
        niceness.follow(map(wanted, crowd), float(walk))
    niceness.follow([wanted(sleeper)], 5.0)

    assert sum(nice_of(tid) == BOOST for tid in crowd) == MOST_OF_PROCESS
    assert nice_of(sleeper) == BOOST


def test_a_pod_that_fills_all_places_makes_room_for_others(niceness, crowd, sleeper, monkeypatch):
    monkeypatch.setattr(niceness_module, "MOST_NICED", 100)
    of_crowd = [wanted(tid)._replace(pod="shop/crowd") for tid in crowd[:300]]
    other = wanted(sleeper)._replace(pod="shop/other")

    for walk in range(4):
        niceness.follow(of_crowd, float(walk))
    assert niceness.problem
    niceness.follow([*of_crowd, other], 5.0)
    niceness.follow([*of_crowd, other], 6.0)

    assert nice_of(sleeper) == BOOST
    assert sum(nice_of(tid) == BOOST for tid in crowd) == 99
    assert niceness.held == 100


def test_pods_with_too_many_threads_share_the_places(niceness, crowd, monkeypatch):
    monkeypatch.setattr(niceness_module, "MOST_NICED", 100)
    first, second = (
        [wanted(tid)._replace(pod=pod) for tid in tids]
        for pod, tids in (("shop/a", crowd[:200]), ("shop/b", crowd[200:400]))
    )

    niceness.follow(first, 0.0)
    niceness.follow([*first, *second], 1.0)
    held = [sum(nice_of(thread.tid) == BOOST for thread in pod) for pod in (first, second)]
    niceness.follow([*first, *second], 2.0)

    assert held == [50, 50]
    assert [sum(nice_of(thread.tid) == BOOST for thread in pod) for pod in (first, second)] == held


def test_a_look_at_a_thread_reads_nothing_of_its_neighbours(monkeypatch, niceness, crowd):
    """The kernel makes a process's own files by a look at each of its threads."""
    some = [wanted(tid) for tid in crowd[:20]]
    read = []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(str(path)) or read_bytes(path))

    niceness.follow(some, 0.0)
    niceness.release()

    assert [path for path in read if re.fullmatch(r"/proc/\d+/(stat|schedstat)", path)] == []
    assert len(read) <= 20 * 8


@pytest.mark.parametrize("end", ["release", "close"])
def test_the_end_of_steering_gives_all_values_back(make_steerer, cgroups, workload, end):
    pod, steerer = cgroups.make("pod"), make_steerer()
    inside = workload()
    inside.move_to(pod)
    hot = inside.thread("hot-1")
    boosted = rule("high", comm_prefix="hot", nice=BOOST)
    steerer.ready(steered(at(cgroups.path(pod), boosted, rule("high"), pod="shop/web")))
    during = nice_of(hot)

    getattr(steerer, end)()

    assert (during, nice_of(hot)) == (BOOST, 0)


def test_a_plan_without_the_group_gives_the_values_back(steerer, cgroups, workload):
    pod = cgroups.make("pod")
    inside = workload()
    inside.move_to(pod)
    hot, path = inside.thread("hot-1"), cgroups.path(pod)
    boosted = rule("high", comm_prefix="hot", nice=BOOST)
    steerer.ready(steered(at(path, boosted, rule("high"), pod="shop/web")))
    during = nice_of(hot)

    steerer.apply(steered(at(path, rule("high"), pod="shop/web")))
    steerer.turn(time.monotonic())

    assert (during, nice_of(hot)) == (BOOST, 0)


def test_a_program_cannot_keep_part_of_the_weight_by_a_value_of_its_own(niceness, sleeper):
    """A process without rights may raise its value from -10 to -9."""
    niceness.follow([wanted(sleeper, -10)], 0.0)
    os.setpriority(os.PRIO_PROCESS, sleeper, -9)
    niceness.follow([wanted(sleeper, -10)], 1.0)
    assert os.getpriority(os.PRIO_PROCESS, sleeper) == 0


def test_the_weight_ends_though_the_thread_has_executed_a_program(niceness, ordinary_nice):  # noqa: ARG001
    """By execve(2) a thread takes the id and the start of its leader, and keeps its nice value."""
    with subprocess.Popen(
        [sys.executable, "-c", EXECUTES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            thread = int(process.stdout.readline())
            niceness.follow([wanted(thread, -10)], 0.0)
            process.stdin.write("\n")
            process.stdin.flush()
            until(lambda: name_of(process.pid) == "sleep")
            assert os.getpriority(os.PRIO_PROCESS, process.pid) == -10
            niceness.forget({process.pid}, 1.0)
            assert os.getpriority(os.PRIO_PROCESS, process.pid) == 0
        finally:
            process.kill()
