"""Measures one point of a real server, under whatever schedules the node."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from attrs import frozen

from bench.ladder.agent import Agent, Json
from bench.ladder.kernel import PROC
from bench.ladder.loads import Server, command
from bench.ladder.pods import running
from bench.ladder.points import (
    SPINNERS_SETTLE_S,
    LoadFailed,
    Places,
    Reading,
    counted,
    of_threads,
)
from bench.ladder.servers import Answers, Installed, RealServer, Task
from bench.ladder.spreads import summary

STARTED_S, ASK_S = 240.0, 0.2
SETTLE_S = 5.0
"""The agent finds the server's threads, and sets their hints, in this time."""
LAST_LOOK_S = 0.3
"""Before the client's end: a server may end a thread, or a process, when its client leaves."""
END_S = 30.0
MIGRATIONS = "se.nr_migrations"

Threads = Mapping[int, Json]


@frozen
class Site:
    """Where servers run: the places of all points, and the programs that are installed."""

    places: Places
    installed: Installed


def caller(client: list[str]) -> list[str]:
    """Return the command of a client that stands for callers on other machines.

    It is of a real-time class and bound to the last CPU, so no scheduler under test lets it wait,
    and it displaces nothing on the CPUs of a fence, which begins with the first.
    """
    last = str((os.cpu_count() or 1) - 1)
    return ["taskset", "-c", last, "chrt", "-f", "1", *client]


def measure_server(site: Site, agent: Agent, size: Server, server: RealServer, place: Json) -> Json:
    """Run the server and its client at the level and seed of *place*. Return the record.

    Raise LoadFailed where one of them ends or does not answer.
    """
    places, directory = site.places, site.places.directory / "server"
    with ExitStack() as programs:
        process = programs.enter_context(serving(site, server, directory))
        programs.enter_context(background(places, place["level"]))
        client = programs.enter_context(_calling(server, directory, size, place["seed"]))
        threads = serving_threads(process.pid, server.is_serving)
        before = Reading.take(places, agent)
        time.sleep(max(0.0, size.seconds - LAST_LOOK_S))
        shortly_before = serving_threads(process.pid, server.is_serving)
        answers = _answers(client, server)
        after = Reading.take(places, agent)
        at_the_end = serving_threads(process.pid, server.is_serving)
        seen = {"threads": served(threads, {**shortly_before, **at_the_end})}
        layers = agent.layer_of("api")
    if not seen["threads"]:
        raise LoadFailed("the server has no thread that serves")
    return {
        **place,
        **_latencies(answers),
        **of_threads(seen, layers, {}),
        **counted(before, after),
    }


@contextmanager
def serving(site: Site, server: RealServer, directory: Path) -> "Iterator[subprocess.Popen[str]]":
    """Run the server in its pod until it answers and the agent has found its threads."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    cgroup, log = site.places.server, directory.with_suffix(".log")
    site.places.counts.unlink(missing_ok=True)
    command_line = [str(each) for each in server.serve(site.installed, directory)]
    with running(cgroup, command_line, log) as process:
        try:
            _wait_until_ready(server, directory, process, log)
            time.sleep(SETTLE_S)
            yield process
        finally:
            (cgroup / "cgroup.kill").write_text("1")
            _wait_until_empty(cgroup)


@contextmanager
def background(places: Places, threads: int) -> Iterator[None]:
    """Have that many busy threads in the best-effort pod."""
    if not threads:
        yield
        return
    places.counts.unlink(missing_ok=True)
    options = {"threads": threads, "counts": str(places.counts)}
    with running(places.background, command(places.load, "spin", options)):
        time.sleep(SPINNERS_SETTLE_S)
        yield


def _wait_until_ready(
    server: RealServer, directory: Path, process: "subprocess.Popen[str]", log: Path
) -> None:
    until = time.monotonic() + STARTED_S
    while subprocess.run(server.ready(directory), capture_output=True, check=False).returncode:
        if time.monotonic() > until or process.poll() is not None:
            raise LoadFailed(f"the server does not answer: {log.read_text()[-1000:]}")
        time.sleep(ASK_S)


def _wait_until_empty(cgroup: Path) -> None:
    until = time.monotonic() + END_S
    while (cgroup / "cgroup.procs").read_text() and time.monotonic() < until:
        time.sleep(ASK_S)


@contextmanager
def _calling(
    server: RealServer, directory: Path, size: Server, seed: int
) -> "Iterator[subprocess.Popen[str]]":
    """Run the client outside of both pods. Yield it when its requests begin."""
    line = caller([str(each) for each in server.call(directory, size, seed)])
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as client:
        try:
            output = client.stdout
            if output is None or not any(server.begins in each for each in output):
                raise LoadFailed(f"the client has not begun, exit code {client.poll()}")
            yield client
        finally:
            client.kill()


def _answers(client: "subprocess.Popen[str]", server: RealServer) -> Answers:
    printed = client.stdout.read() if client.stdout else ""
    if client.wait():
        raise LoadFailed(f"the client ended with {client.returncode}: {printed[-1000:]}")
    answers = server.answers(printed)
    if not answers.latencies_ms:
        raise LoadFailed(f"no request was answered: {printed[-1000:]}")
    return answers


def _latencies(answers: Answers) -> Json:
    late = answers.client_late_ms
    return {
        "requests": len(answers.latencies_ms),
        "unanswered": answers.unanswered,
        "client_late_ms": None if late is None else round(late, 3),
        "total_ms": summary(answers.latencies_ms),
        "wait_ms": {},
        "service_ms": {},
    }


def serving_threads(pid: int, is_serving: Callable[[Task], bool], proc: Path = PROC) -> Threads:
    """Return what the kernel has counted of each thread that serves, of a process or its children.

    Times are in ns, by ``/proc/PID/task/TID/schedstat``. Migrations are -1 on a kernel without
    ``/proc/PID/task/TID/sched``.
    """
    counts = {}
    for each in (pid, *_children(proc / str(pid))):
        with suppress(OSError):  # the process or the thread has ended
            title = (proc / str(each) / "cmdline").read_bytes().replace(b"\0", b" ")
            for task in (proc / str(each) / "task").iterdir():
                comm, leads = (task / "comm").read_text().strip(), int(task.name) == each
                if is_serving(Task(comm, leads, each != pid, title.decode(errors="replace"))):
                    counts[int(task.name)] = _counts(task)
    return counts


def _children(process: Path) -> list[int]:
    """Return the processes that the main thread of a process has started."""
    return [
        int(each) for each in (process / "task" / process.name / "children").read_text().split()
    ]


def _counts(task: Path) -> Json:
    run_ns, delay_ns, *_ = map(int, (task / "schedstat").read_text().split())
    return {"run_ns": run_ns, "delay_ns": delay_ns, "migrations": _migrations(task / "sched")}


def _migrations(path: Path) -> int:
    if path.exists():
        for line in path.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == MIGRATIONS:
                return int(value)
    return -1


def served(before: Threads, after: Threads) -> list[Json]:
    """Return what the threads that were there at both times did in between."""
    return [
        {
            "kind": "server",
            "tid": tid,
            "run_ns": after[tid]["run_ns"] - was["run_ns"],
            "delay_ns": after[tid]["delay_ns"] - was["delay_ns"],
            "migrations": _difference(was["migrations"], after[tid]["migrations"]),
            "work_by_cpu": {},
        }
        for tid, was in before.items()
        if tid in after
    ]


def _difference(before: int, after: int) -> int:
    return -1 if min(before, after) < 0 else after - before
