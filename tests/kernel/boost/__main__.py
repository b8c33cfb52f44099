"""Runs in the guest as root: ``python tests/kernel/boost --engine PATH``.

A program of the critical tier has a boosted group. Its threads' nice values are read from the
kernel while the engine runs, and after each way in which it or the agent may end.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "profiles"))
sys.path.insert(0, str(Path(__file__).parents[3] / "examples/demo"))

import agent as demo_agent
import kernel
from outcomes import Report

CGROUP = Path("/sys/fs/cgroup/boost-test")
PROFILES = demo_agent.DIRECTORY / "profiles"
RECORD = Path("/run/temper/niceness.json")
BOOST_NICE = -5
OWN_NICE = 4
FOLLOWED_S = 30.0
ENDED_S = 120.0
PROFILE_FILE = """
schema_version = 1
id = "boosting"
[fingerprint]
processes = ["never-by-name"]
[[thread_groups]]
name = "io"
treatment = "boost"
match = [{ comm_prefix = "io_" }]
"""
SETTINGS = """
[scheduler]
engine = "{engine}"
start_deadline_s = 240.0
quiet_s = 1.0
min_interval_s = 1.0

[pods]
source = "local"
units = false
poll_s = 1.0

[[workloads]]
name = "boosted"
cgroup = "{cgroup}"
tier = "critical"
profile = "boosting"
cpu_request = "1"

[profiles]
directory = "{profiles}"

[server]
listen = "{address}"
"""
ENTER = 'echo $$ > "$0/cgroup.procs"; exec "$@"'
PROGRAM = """
import os, sys, threading, time
def live(name):
    open("/proc/thread-self/comm", "w").write(name)
    tids[name] = threading.get_native_id()
    while True:
        time.sleep(0.01)
tids = {}
for name in ("io_1", "io_own", "web"):
    threading.Thread(target=live, args=(name,), daemon=True).start()
while len(tids) < 3:
    time.sleep(0.01)
print(tids["io_1"], tids["io_own"], tids["web"], flush=True)
for line in sys.stdin:
    pid = os.fork()
    if not pid:
        time.sleep(600)
        os._exit(0)
    print(pid, flush=True)
"""


class Program:
    """A program in its cgroup: a thread of the group, one with its own nice value, one of none."""

    def __init__(self) -> None:
        CGROUP.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", ENTER, CGROUP, sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.io, self.own, self.web = map(int, self._line().split())
        os.setpriority(os.PRIO_PROCESS, self.own, OWN_NICE)

    def nices(self) -> tuple[int, int, int]:
        """Return the nice values of the three threads."""
        return tuple(os.getpriority(os.PRIO_PROCESS, tid) for tid in (self.io, self.own, self.web))

    def is_boosted(self) -> bool:
        """Whether the group's thread is boosted, and no other."""
        return self.nices() == (BOOST_NICE, OWN_NICE, 0)

    def is_ordinary(self) -> bool:
        """Whether no thread is boosted, and the own nice value is as it was."""
        return self.nices() == (0, OWN_NICE, 0) and not RECORD.exists()

    def fork(self) -> int:
        """Have the program's main thread fork. Return the child's id."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return int(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def judge(report: Report, name: str, holds: Callable[[], bool], program: Program) -> None:
    """Claim that *holds* becomes true soon, with the nice values as evidence."""
    try:
        took_s = kernel.wait_until(name, holds, FOLLOWED_S)
    except kernel.NotInTime:
        report.claim(name, False, f"nice values {program.nices()}, record {RECORD.exists()}")
    else:
        report.claim(name, True, f"nice values {program.nices()} after {took_s:.2f} s")


def safe_mode(wish: str) -> None:
    """Request safe mode, or withdraw the request, by the command."""
    demo_agent.temper("safe-mode", wish, "--reason", "test", "--settings", str(demo_agent.SETTINGS))


def enforcing(report: Report, name: str, program: Program) -> demo_agent.Agent:
    """Start an agent, wait until it enforces, and claim that it boosts."""
    agent = demo_agent.Agent()
    agent.wait_for("enforcing")
    judge(report, name, program.is_boosted, program)
    return agent


def walk(engine: Path, report: Report) -> None:
    """Boost, and end that in every way."""
    PROFILES.mkdir(parents=True)
    (PROFILES / "boosting.toml").write_text(PROFILE_FILE)
    given = {"profiles": PROFILES, "address": demo_agent.ADDRESS, "cgroup": CGROUP.name}
    demo_agent.SETTINGS.write_text(SETTINGS.format(engine=engine, **given))
    program = Program()
    agent = enforcing(report, "boosted", program)
    groups = agent.ask("/explain?pod=boosted").get("groups", ())
    told = [group["becomes"] for group in groups]
    report.claim("told", any("nice value -5" in text for text in told), str(told))
    child = os.getpriority(os.PRIO_PROCESS, program.fork())
    report.claim("child", child == 0, f"nice value {child}")
    safe_mode("on")
    judge(report, "safe_mode", program.is_ordinary, program)
    safe_mode("off")
    agent.wait_for("enforcing")
    judge(report, "boosted_again", program.is_boosted, program)
    for pid in kernel.engines():
        os.kill(pid, 9)
    judge(report, "engine_killed", program.is_ordinary, program)
    agent.wait_for("enforcing")
    kernel.wait_until("the thread is boosted again", program.is_boosted, ENDED_S)
    agent.kill()
    time.sleep(1)
    report.claim("record", RECORD.exists(), f"{RECORD}: {RECORD.exists()}")
    agent = demo_agent.Agent()
    judge(report, "next_agent", program.is_ordinary, program)
    agent.wait_for("enforcing")
    kernel.wait_until("the thread is boosted again", program.is_boosted, ENDED_S)
    agent.stop()
    judge(report, "stopped", program.is_ordinary, program)
    agent = enforcing(report, "boosted_by_the_last", program)
    agent.kill()
    report.tell(demo_agent.temper("restore", "--settings", str(demo_agent.SETTINGS)))
    judge(report, "restored", program.is_ordinary, program)


def main() -> None:
    """Walk. The exit code is 1 if a claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    report = Report(options.report)
    try:
        walk(options.engine, report)
    except kernel.NotInTime as missed:
        report.claim("in_time", False, str(missed))
        sys.stdout.write(demo_agent.last_words() + "\n")
    sys.exit(1 if report.failed else 0)


main()
