"""Real helper processes: what they are given, and what becomes of those that misbehave."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
from pathlib import Path

import attrs
import pytest
from structlog.testing import capture_logs

from temper_core import HelperBounds, InputError, MachineError, PluginError
from temper_core.instruments.helper_family import HelperFamily, read_stat
from temper_core.instruments.helper_processes import HelperProcesses

MIB = 1024 * 1024
FOLDER = Path(__file__).parent / "plugin"
NEVER_S = 60.0
SMALL = HelperBounds(memory_bytes=64 * MIB, seconds=NEVER_S)


@pytest.fixture
def helpers(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    found = HelperProcesses()
    yield found
    found.close()


@pytest.fixture
def outcome(helpers):
    """Run one helper to its end; returns its result, or why there is none."""

    def run(function, argument=None, **bounds):
        helper = helpers.start(
            "trainer", f"heavy_work:{function}", argument, attrs.evolve(SMALL, **bounds)
        )
        try:
            return helper.result(NEVER_S)
        except PluginError as error:
            return error.reason.removeprefix(f"helper heavy_work:{function} ")

    return run


def names_in(path):
    return sorted(each.name for each in Path(path).iterdir())


def is_gone(pid):
    """Whether a process has ended; nobody may have reaped it yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def wait_until(condition, seconds=NEVER_S):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def pids_in(file):
    wait_until(lambda: file.exists() and file.read_text().endswith("]"))
    return json.loads(file.read_text())


def test_a_helper_returns_what_its_function_does(outcome):
    assert outcome("twice", 21) == {"twice": 42}


def test_a_result_can_be_asked_for_more_than_once_and_waited_for(helpers):
    helper = helpers.start("trainer", "heavy_work:hang", None, SMALL)

    with pytest.raises(TimeoutError, match="heavy_work:hang of trainer still runs"):
        helper.result(0.05)
    is_running = helper.is_running()
    helper.stop()
    helper.stop()

    for _ in range(2):
        with pytest.raises(PluginError, match="was stopped"):
            helper.result(NEVER_S)
    assert (is_running, helper.is_running()) == (True, False)
    assert is_gone(helper.pid)


def test_it_stands_back_in_a_session_of_its_own_with_nothing_of_the_agents(outcome, monkeypatch):
    monkeypatch.setenv("A_SECRET", "token")
    spare = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(spare, True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        found = outcome("standing")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(spare)

    assert (found["niceness"], found["policy"], found["oom"]) == (19, os.SCHED_BATCH, 1000)
    assert found["session"] == found["pid"]
    assert found["stdin"] == "/dev/null"
    assert len(found["descriptors"]) == 5  # 0 to 2, the result's pipe, and the listing itself
    assert (found["blocked"], found["ignored"]) == ([], [])
    assert found["umask"] == 0o077
    assert found["secret"] is None
    assert found["modules"] == []


def test_one_that_eats_memory_fails_at_its_bound(outcome):
    assert outcome("eat_memory") == "ran out of its 64 MiB of memory"


def test_one_that_takes_memory_that_the_kernel_does_not_count_is_ended(outcome):
    assert outcome("eat_shared_memory") == "took more than its 64 MiB of memory"


@pytest.mark.parametrize("function", ["spin", "spin_on"])
def test_one_that_spins_is_ended_at_its_bound_of_cpu_time(outcome, function):
    assert outcome(function, cpu_s=1) == "used more than its 1 s of CPU time"


def test_one_that_hangs_is_ended_at_its_bound_of_time(outcome):
    assert outcome("hang", seconds=0.5) == "has not ended within 0.5 s"


def test_one_that_is_killed_is_told_apart(helpers):
    helper = helpers.start("trainer", "heavy_work:hang", None, SMALL)
    os.kill(helper.pid, signal.SIGKILL)

    with pytest.raises(PluginError, match="was ended by SIGKILL, sent by another process"):
        helper.result(NEVER_S)


@pytest.mark.parametrize(
    ("function", "argument", "reason"),
    [
        ("raise_one", "no such\n  thing", "raised ValueError: no such thing"),
        ("leave", 3, "raised SystemExit: 3"),
        ("leave_at_once", 3, "ended with exit code 3 and without a result; its last output: these"),
        ("leave_at_once", 0, "ended with exit code 0 and without a result; its last output: these"),
        ("crash", None, "was ended by SIGSEGV"),
        ("not_a_number", None, "raised ValueError: Out of range float values"),
        ("no_json", None, "raised TypeError: Object of type object is not JSON serializable"),
        ("deep", None, "raised RecursionError"),
        ("missing", None, "raised AttributeError: module 'heavy_work' has no attribute 'missing'"),
        ("write_garbage", "garbage", "wrote no valid result into its pipe"),
        ("write_garbage", '{"result": NaN}', "wrote no valid result into its pipe"),
        ("write_garbage", '["result"]', "wrote no valid result into its pipe"),
        ("write_garbage", "[" * 100_000, "wrote no valid result into its pipe"),
        ("write_without_end", None, "wrote more than the 1048576 bytes that its result may have"),
    ],
)
def test_why_there_is_no_result_is_told(outcome, function, argument, reason):
    assert outcome(function, argument).startswith(reason)


def test_a_module_that_is_not_there_is_named(helpers):
    helper = helpers.start("trainer", "no.such_module:function", None, SMALL)

    with pytest.raises(PluginError, match="raised ModuleNotFoundError: No module named 'no'"):
        helper.result(NEVER_S)


def test_a_result_that_is_too_large_is_refused_by_its_size(outcome):
    assert outcome("huge", 990, result_bytes=1024) == "x" * 990
    reason = "returned 2014 bytes of JSON; it may return 1024"
    assert outcome("huge", 2000, result_bytes=1024) == reason


def test_one_that_prints_megabytes_is_read_and_returns(outcome):
    assert outcome("print_a_lot", 20 * MIB) == "done"


def test_what_it_has_started_ends_with_it(outcome, tmp_path):
    file = tmp_path / "pids"

    with capture_logs() as logs:
        assert outcome("start_others", str(file)) == "started"

    assert [is_gone(pid) for pid in pids_in(file)] == [True] * 3
    wait_until(lambda: any(entry["event"] == "helper_ended" for entry in logs))
    assert logs[-1]["processes_ended"] >= 1  # the kernel ends those that were only forked


def test_what_it_has_started_ends_when_it_is_stopped(helpers, tmp_path):
    file = tmp_path / "pids"
    helper = helpers.start("trainer", "heavy_work:start_others_and_hang", str(file), SMALL)
    pids = pids_in(file)

    helpers.stop_all("trainer")

    assert [is_gone(pid) for pid in (*pids, helper.pid)] == [True] * 4


def test_all_helpers_end_for_a_restoration(helpers, tmp_path):
    file = tmp_path / "pids"
    helper = helpers.start("trainer", "heavy_work:start_others_and_hang", str(file), SMALL)
    pids = pids_in(file)

    assert helpers.end_all("was stopped: the host is restored")

    assert [is_gone(pid) for pid in (*pids, helper.pid)] == [True] * 4
    with pytest.raises(PluginError, match="the host is restored"):
        helper.result(NEVER_S)
    assert not helpers.end_all("was stopped: the host is restored")


def test_one_that_forks_without_end_is_ended_with_all_its_children(outcome):
    reason = outcome("fork_without_end", memory_bytes=256 * MIB)

    assert reason in (
        "had more than 32 processes",
        "took more than its 256 MiB of memory",
    )


def test_so_many_run_at_once_and_one_may_start_when_another_has_ended(helpers):
    first, _ = (helpers.start("one", "heavy_work:hang", None, SMALL) for _ in range(2))
    with pytest.raises(MachineError, match="2 helper processes of one run already"):
        helpers.start("one", "heavy_work:hang", None, SMALL)
    for _ in range(2):
        helpers.start("two", "heavy_work:hang", None, SMALL)
    with pytest.raises(MachineError, match=r"4 helper processes run; \[plugin_host\] helpers"):
        helpers.start("three", "heavy_work:hang", None, SMALL)

    first.stop()
    with pytest.raises(PluginError):
        first.result(NEVER_S)
    third = helpers.start("three", "heavy_work:twice", 1, SMALL)

    assert third.result(NEVER_S) == {"twice": 2}


def test_their_memory_together_is_bounded_by_what_they_may_take(helpers):
    helpers.start("one", "heavy_work:hang", None, attrs.evolve(SMALL, memory_bytes=400 * MIB))

    with pytest.raises(MachineError, match=r"would have 528 MiB of memory together.* allows 512"):
        helpers.start("two", "heavy_work:hang", None, attrs.evolve(SMALL, memory_bytes=128 * MIB))


def test_an_operator_may_forbid_them_all():
    with pytest.raises(MachineError, match="allows 0 at once"):
        HelperProcesses(most=0).start("one", "heavy_work:hang", None, SMALL)


@pytest.mark.parametrize(
    ("entry_point", "argument", "reason"),
    [
        ("heavy_work", None, "is not an entry point"),
        ("os; import sys:x", None, "is not an entry point"),
        ("heavy_work:twice", float("inf"), "is not JSON"),
        ("heavy_work:twice", {1, 2}, "is not JSON"),
        ("heavy_work:twice", "x" * 17 * MIB, "16777216 at most"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(helpers, entry_point, argument, reason):
    with pytest.raises(InputError, match=reason):
        helpers.start("trainer", entry_point, argument, SMALL)


def test_a_large_argument_arrives_whole(outcome):
    text = "x" * 3 * MIB

    assert outcome("twice", text, result_bytes=8 * MIB) == {"twice": text * 2}


def test_what_helpers_cost_is_added_up_by_instrument(helpers, outcome):
    outcome("spin", cpu_s=1)
    helpers.start("pages", "heavy_work:hang", None, SMALL)
    wait_until(lambda: helpers.costs()["pages"].memory_bytes > MIB)

    costs = helpers.costs()

    assert 0.8 <= costs["trainer"].cpu_s < 2.5
    assert (costs["trainer"].running, costs["trainer"].memory_bytes) == (0, 0)
    assert costs["pages"].running == 1


def test_after_the_end_none_runs_and_none_starts(helpers):
    helper = helpers.start("trainer", "heavy_work:hang", None, SMALL)

    helpers.close()
    helpers.close()

    assert is_gone(helper.pid)
    with pytest.raises(PluginError, match="the agent ends"):
        helper.result()
    with pytest.raises(MachineError, match="the agent ends"):
        helpers.start("trainer", "heavy_work:hang", None, SMALL)


def test_nothing_is_left_open_by_helpers_that_have_ended(outcome):
    outcome("twice", 1)
    before = len(names_in("/proc/self/fd"))

    for _ in range(5):
        outcome("twice", 1)
        outcome("leave_at_once", 1)

    assert len(names_in("/proc/self/fd")) == before


AGENT = """
import signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
from temper_core import HelperBounds
from temper_core.instruments.helper_family import HelperFamily, read_stat
from temper_core.instruments.helper_processes import HelperProcesses

helpers = HelperProcesses()
started = []
# As instruments do: from a thread that has ended long before the agent.
thread = threading.Thread(target=lambda: started.append(
    helpers.start("trainer", sys.argv[2], sys.argv[3], HelperBounds())))
thread.start()
thread.join()
print(started[0].pid, file=sys.stderr, flush=True)
time.sleep(600)
"""


@pytest.fixture
def agent(tmp_path):
    """Start an agent with a helper; returns it, the helper's pid and a file of its own."""
    agents = []

    def start(function):
        file = tmp_path / "pids"
        command = [sys.executable, "-c", textwrap.dedent(AGENT), str(FOLDER)]
        child = subprocess.Popen(
            [*command, f"heavy_work:{function}", str(file)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        agents.append(child)
        return child, int(child.stderr.readline()), file

    yield start
    for child in agents:
        child.kill()
        child.wait()
        child.stderr.close()


def test_a_helper_outlives_the_thread_that_asked_for_it_but_no_agent_that_is_killed(agent):
    child, helper, _ = agent("hang")
    time.sleep(0.3)
    lived = not is_gone(helper)

    child.kill()

    assert lived
    wait_until(lambda: is_gone(helper))


def test_what_a_helper_has_forked_ends_with_an_agent_that_is_killed(agent):
    child, helper, file = agent("start_others_and_hang")
    forked, daemon, program = pids_in(file)

    child.kill()

    try:
        wait_until(lambda: all(is_gone(pid) for pid in (helper, forked, daemon)))
    finally:
        # A program that it has started in a session of its own is the container's to end.
        os.kill(program, signal.SIGKILL)


def test_ctrl_c_on_the_agents_terminal_does_not_reach_a_helper(agent):
    child, helper, _ = agent("hang")

    assert os.getpgid(helper) != os.getpgid(child.pid)
    assert os.getsid(helper) == helper


def test_an_environment_without_end_takes_no_memory(tmp_path):
    """A process can place its environment around gigabytes of its memory (prctl(2))."""
    (tmp_path / "7").mkdir()
    fields = ["S", "1", "7", "7", *["0"] * 15, "100", *["0"] * 30]
    (tmp_path / "7/stat").write_text(f"7 (x) {' '.join(fields)}\n")
    with (tmp_path / "7/environ").open("wb") as file:
        file.truncate(64 << 20)
    family = HelperFamily(pid=5, mark="m", start_ticks=1, proc=tmp_path)
    assert read_stat(tmp_path, 7).start_ticks == 100

    tracemalloc.start()
    try:
        others = list(family.others())
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        family.close()

    assert others == []
    assert most_bytes < 4 << 20
