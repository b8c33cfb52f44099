"""Measures an agent that enforces and steers, as root: ``python -m bench.enforcing --load PATH``.

It runs beside an agent that only observes. Both have their defaults and every installed plugin.
Pods of 20 threads run, 5 for 100 threads and 250 for 5,000. All threads wake three times in two
seconds. At each size the agents are measured while nothing changes, and while a container is
replaced every two seconds. Each agent's ``/metrics`` is scraped every 15 s. Each measurement
appends one JSON line for each agent to the records.

``bench/enforcing/run`` boots a guest in virtual time for it. Without ``--engine`` a stand-in takes
the engine's place, which needs no sched_ext.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import gettempdir

from bench.enforcing.account import Reading
from bench.enforcing.stand_in import inside, write_engine
from bench.enforcing.tenants import PROFILE, THREADS_PER_POD, Tenants, tenants
from bench.ladder.__main__ import CANNOT, machine, tell
from bench.ladder.agent import END_S, Agent, Files, Json, NotInTime
from bench.ladder.arms import Arm
from bench.ladder.kernel import SCHED_EXT
from bench.ladder.pods import running
from temper_core.node.cgroups import detect_cgroups

PODS = "pods.json"
# The emulator must be waited for.
WAITING = {"start_deadline_s": 1500.0, "loop_deadline_s": 240.0}
MODES = {"observing": "observe_only", "enforcing": "enforcing"}
LISTEN = {"observing": "127.0.0.1:9178", "enforcing": "127.0.0.1:9177"}
SCRAPE_EVERY_S = 15.0
SETTLE_S = 20.0
CHURNS_S = (0.0, 2.0)
"""Seconds from one replaced container to the next, 0 for none."""

Agents = Mapping[str, Agent]


def measure(agents: Agents, beside: Tenants, churn_s: float, seconds: float) -> Iterator[Json]:
    """Yield what each agent and its engine use for so long, after they have settled."""
    _pass(agents, beside, churn_s, SETTLE_S)
    before = {name: _reading(agent) for name, agent in agents.items()}
    _pass(agents, beside, churn_s, seconds)
    for name, agent in agents.items():
        used = _reading(agent).since(before[name])
        yield {"arm": name, "churn_s": churn_s, **used, **_told(agent)}


def _told(agent: Agent) -> Json:
    seen = agent.ask("/observe?top=1")
    return {
        "mode": seen["mode"],
        "engine": seen.get("engine") or "",
        "tier": seen["observing"]["tier"],
        "threads_seen": seen["overhead"]["threads_seen"],
        "period_s": seen["overhead"]["period_s"],
        "steering": seen["steering"],
    }


def _pass(agents: Agents, beside: Tenants, churn_s: float, seconds: float) -> None:
    """Let time pass: replace containers, and scrape the agents."""
    began = time.monotonic()
    scraped_s, turn = began, 0
    while (left_s := began + seconds - time.monotonic()) > 0:
        time.sleep(min(churn_s or SCRAPE_EVERY_S, left_s))
        if churn_s:
            beside.replace(turn)
            turn += 1
        if time.monotonic() - scraped_s >= SCRAPE_EVERY_S:
            scraped_s = time.monotonic()
            for agent in agents.values():
                agent.read("/metrics")


def _reading(agent: Agent) -> Reading:
    return Reading.take(agent.pid, agent.cgroup, agent.read("/metrics"))


@contextmanager
def _agent(name: str, options: argparse.Namespace) -> Iterator[Agent]:
    """Run one of the agents. The pods are there before, so one engine has all their layers."""
    files = Files(options.directory / name)
    files.directory.mkdir(exist_ok=True)
    engine, under = options.engine, []
    if not engine:
        engine = write_engine(files.directory)
        under = inside(files.directory, options.cgroup_root)
    settings = {
        "scheduler": {**WAITING, "enforce": name == "enforcing"},
        "server": {"listen": LISTEN[name]},
        "pods": {"file": str(options.directory / PODS)},
    }
    files.write(Arm(settings=settings, profile=PROFILE), engine, "")
    cgroup = options.cgroup_root / f"temper-bench-{name}"
    cgroup.mkdir(exist_ok=True)
    words = [*under, str(options.temper), "agent", "--settings", str(files.settings)]
    with running(cgroup, words, files.log) as process:
        agent = Agent(process, cgroup, files.log, LISTEN[name])
        agent.wait_for(MODES[name])
        yield agent
        process.terminate()
        process.wait(END_S)
    cgroup.rmdir()


def measured(options: argparse.Namespace) -> Iterator[Json]:
    """Measure at every size. Yield the records."""
    with ExitStack() as running_now:
        beside = running_now.enter_context(
            tenants(options.cgroup_root, options.load, options.directory / PODS)
        )
        beside.grow(options.threads[0] // THREADS_PER_POD)
        agents = {name: running_now.enter_context(_agent(name, options)) for name in options.arms}
        for size in options.threads:
            beside.grow(size // THREADS_PER_POD)
            for churn_s in CHURNS_S:
                for told in measure(agents, beside, churn_s, options.seconds):
                    yield {"threads": size, "is_stand_in": not options.engine, **told}


def main() -> int:
    """Measure. Return the exit code: 0, or 3 where the machine cannot."""
    options = parser().parse_args()
    if os.geteuid() != 0:
        print("enforcing: this machine lacks root", file=sys.stderr)
        return CANNOT
    if options.engine and not SCHED_EXT.exists():
        print("enforcing: this machine lacks sched_ext", file=sys.stderr)
        return CANNOT
    options.directory.mkdir(parents=True, exist_ok=True)
    clock = "virtual" if options.virtual_time else "real"
    try:
        with options.records.open("a") as records:
            for record in measured(options):
                records.write(json.dumps({**machine(), "clock": clock, **record}) + "\n")
                records.flush()
                tell(outline(record))
    except NotInTime as problem:
        print(f"enforcing: {problem}", file=sys.stderr)
        return 1
    return 0


def outline(record: Json) -> str:
    """Return a record in one line."""
    return (
        f"{record['threads']} threads, churn {record['churn_s']} s, {record['arm']}: agent "
        f"{record['agent_percent']} %, {record['agent_mib']} MiB, engine "
        f"{record['engine_percent']} %, {record['engine_mib']} MiB, BPF {record['bpf_percent']} %, "
        f"{record['threads_seen']} seen, {record['steering']}"
    )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m bench.enforcing", description=__doc__)
    made.add_argument("--load", type=Path, required=True, help="the program of ladder/load.c")
    made.add_argument("--engine", type=Path, help="the scx_layered to run, default a stand-in")
    made.add_argument("--records", type=Path, required=True, help="file to append records to")
    made.add_argument("--temper", type=Path, default=Path(sys.executable).parent / "temper")
    made.add_argument("--cgroup-root", type=Path, default=detect_cgroups().unified)
    # Not below /run, which the stand-in's namespace hides.
    directory = Path(gettempdir()) / "enforcing"
    made.add_argument("--directory", type=Path, default=directory, help="its files")
    made.add_argument("--arms", nargs="+", choices=MODES, default=list(MODES))
    made.add_argument("--threads", nargs="+", type=int, default=[100, 1_000, 5_000])
    made.add_argument("--seconds", type=float, default=60.0, help="of each measurement")
    made.add_argument("--virtual-time", action="store_true", help="the clock counts instructions")
    return made


if __name__ == "__main__":
    sys.exit(main())
