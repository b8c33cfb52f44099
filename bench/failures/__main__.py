"""Plays failures under load, as root: ``python -m bench.failures --load PATH --engine PATH ...``.

Failures that follow one another share an agent where they have the same settings. The request
server and the busy threads of the ladder (``bench/ladder``) run from before the failure until after
it. Each failure appends one JSON line to the records. ``bench/failures/run`` boots guests in
virtual time for it.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.failures.engine_files import EngineFile, digest
from bench.failures.failures import FAILURES, PROFILE
from bench.failures.record import FORMAT, Played, record_of
from bench.failures.scheduling_trace import recorded
from bench.failures.stage import Stage, staged
from bench.failures.watch import SchedulerWatch
from bench.ladder.__main__ import CANNOT, machine
from bench.ladder.agent import Json, NotInTime, merged
from bench.ladder.arms import Arm
from bench.ladder.kernel import lacks
from bench.ladder.loads import LOADS, Server, command
from bench.ladder.node import Node, Programs
from bench.ladder.pods import Cgroups, running
from bench.ladder.points import BEGIN, SPINNERS_SETTLE_S, LoadFailed, Places

LOAD = "weight"
LONGEST_S = 3000.0
AROUND_S = 6.0
"""The load runs this long before the failure, and after an engine enforces again."""
TRACED_S = 0.5
"""A trace goes on this long after an engine enforces again."""
PRIORITY = 1
SETTINGS = {
    # The emulator must be waited for, and a failure must not wait for the next look.
    "scheduler": {"start_deadline_s": 1500.0, "loop_deadline_s": 240.0, "backoff_s": 1.0},
}


def play(stage: Stage, name: str, options: argparse.Namespace) -> Played:
    """Have the failure happen under load. Return what was seen."""
    told = {"engine": stage.enforcing.ask("/observe?top=1").get("engine", "")}
    plan = stage.enforcing.plan_hash()
    stage.marks.clear()
    file = options.trace and options.trace / f"{name}.trace"
    with (
        recorded(file) as trace,
        SchedulerWatch() as watch,
        loaded(stage.node.places, options) as server,
    ):
        time.sleep(AROUND_S)
        FAILURES[name].play(stage)
        if trace:
            time.sleep(TRACED_S)
            trace.stop()
        time.sleep(AROUND_S)
        server.send_signal(signal.SIGTERM)
        seen = json.loads(server.stdout.readline() if server.stdout else "")
    said = stage.say().get("detail") or ""
    plans = {"plan": plan, "plan_after": stage.enforcing.plan_hash(), "said": said}
    return Played({**told, **plans}, stage.marks, watch.changes, seen, time.monotonic())


def arm_of(settings: Mapping[str, Any]) -> Arm:
    """Return the arm of an agent with settings of a failure's own."""
    return Arm(settings=merged(SETTINGS, settings))


def by_settings(names: Sequence[str]) -> Iterator[tuple[Arm, list[str]]]:
    """Yield failures that follow one another and can share an agent, with its arm."""
    for settings, group in groupby(names, key=lambda name: FAILURES[name].settings):
        yield arm_of(settings), list(group)


@contextmanager
def loaded(places: Places, options: argparse.Namespace) -> "Iterator[subprocess.Popen[str]]":
    """Run busy threads and the request server. Yield the server when its requests begin."""
    load, level = LOADS[LOAD], options.level
    size = Server(LONGEST_S, options.period_us)
    places.counts.unlink(missing_ok=True)
    spin = command(places.load, load.mode, load.background(level, places.counts))
    arguments = {**size.arguments(load, level, options.seed), "arrivals": 1}
    with running(places.background, spin):
        time.sleep(SPINNERS_SETTLE_S)
        with running(places.server, command(places.load, "serve", arguments)) as server:
            read = server.stdout.readline() if server.stdout else ""
            if read != BEGIN:
                raise LoadFailed(f"the load printed {read!r}, exit code {server.poll()}")
            yield server


def main() -> int:
    """Play the failures. Return the exit code: 0, or 3 where the machine cannot."""
    options = parser().parse_args()
    missing = list(lacks(options.cgroup_root))
    for line in missing:
        print(f"failures: this machine lacks {line}", file=sys.stderr)
    if missing:
        return CANNOT
    # The scheduler under test does not delay the driver. What it starts is ordinary again.
    policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
    os.sched_setscheduler(0, policy, os.sched_param(PRIORITY))
    cgroups = Cgroups(options.cgroup_root)
    engine = EngineFile(options.directory, options.engine)
    try:
        programs = Programs(options.load, engine.path, options.temper)
        node = Node.made(cgroups, programs, options.directory, options.request)
        with options.records.open("a") as records:
            for arm, names in by_settings(options.failures):
                with staged(node, arm, engine, PROFILE) as stage:
                    tell(f"enforcing, {stage.enforcing.layers()}")
                    for name in names:
                        tell(f"{name}: {FAILURES[name].summary}")
                        played = play(stage, name, options)
                        record = {**origin(options), **record_of(name, played)}
                        records.write(json.dumps(record) + "\n")
                        records.flush()
                        tell(f"{name}: {record['timeline']}, worst {record['worst']}")
    except (NotInTime, LoadFailed) as problem:
        print(f"failures: {problem}", file=sys.stderr)
        return 1
    finally:
        cgroups.remove()
    return 0


def origin(options: argparse.Namespace) -> Json:
    """Return what a record says of machine, engine and load."""
    return {
        **machine(),
        "format": FORMAT,
        "kernel_notes_sha256": sha256(Path("/sys/kernel/notes").read_bytes()).hexdigest(),
        "clock": "virtual" if options.virtual_time else "real",
        "engine_sha256": digest(options.engine),
        "load": LOAD,
        "level": options.level,
        "seed": options.seed,
        "period_us": options.period_us,
    }


def tell(line: str) -> None:
    """Print a line of progress."""
    print(f"# {time.monotonic():.0f} {line}", file=sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m bench.failures", description=__doc__)
    made.add_argument("--load", type=Path, required=True, help="the program of ladder/load.c")
    made.add_argument("--engine", type=Path, required=True, help="the scx_layered to run")
    made.add_argument("--records", type=Path, required=True, help="file to append records to")
    made.add_argument("--temper", type=Path, default=Path(sys.executable).parent / "temper")
    made.add_argument("--cgroup-root", type=Path, default=Path("/sys/fs/cgroup"))
    made.add_argument("--directory", type=Path, default=Path("/run/failures"), help="for its files")
    made.add_argument("--failures", type=_failures, default=list(FAILURES))
    made.add_argument("--level", type=int, default=8, help="busy threads in another pod")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--period-us", type=int, default=8000, help="mean time between requests")
    made.add_argument("--request", type=int, default=1500, help="of the server's pod, millicores")
    made.add_argument("--trace", type=Path, help="directory that gets traces of the scheduler")
    made.add_argument("--virtual-time", action="store_true", help="the clock counts instructions")
    return made


def _failures(text: str) -> Sequence[str]:
    names = text.split(",")
    for name in names:
        if name not in FAILURES:
            raise argparse.ArgumentTypeError(f"{name}: none of {', '.join(FAILURES)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
