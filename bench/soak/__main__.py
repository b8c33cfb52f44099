"""Run an agent under churn of pods and judge its growth: ``make soak MINUTES=20``.

python -m bench.soak [--minutes M] [--out FOLDER] [--pods N] [--threads N] [--every S]

Needs root and cgroup v2. The agent has every installed plugin, and only observes. It is scraped
every 15 s, its observation is read every 5 s, and a trace is captured every minute.

With --enforce it enforces, by a stand-in for the engine if there is no --engine. Then a pod has a
profile on trial every minute, the engine is killed every four minutes, and safe mode is asked for
every five. ``bench/soak/run`` boots a guest for that with the real engine.

Exit with 1 where a measure grows by more than it may, and with 3 where the agent ended.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from bench.enforcing.stand_in import inside, write_engine
from bench.ladder.agent import Json, to_toml
from bench.ladder.loads import command
from bench.soak.churn import Churn, podlist, python_tenant, unified_tree
from bench.soak.disturbing import Disturber
from bench.soak.load import Asked, Askers, capture, read, read_json, start_lanes
from bench.soak.report import plots, rows, table
from bench.soak.sampling import sample
from temper_core.console import read_settings

TEMPER = Path(sys.executable).with_name("temper")
STARTED_WITHIN_S = 60.0
SAMPLE_EVERY_S = 3.0
ENFORCING_WITHIN_S = 1500.0
PODS, SAFE_MODE = "pods.json", "safe-mode"
LEAST_MINUTES = 3
"""Shorter runs do not fill the blocks from which slopes are computed."""
ENDED = 3


@frozen
class Agent:
    """A running agent."""

    process: "subprocess.Popen[bytes]"
    settings: Path
    address: str

    @property
    def state(self) -> Path:
        """The directory of its state."""
        return self.settings.with_name("state")

    def wait_until_enforcing(self) -> None:
        """Wait until the agent enforces; raise SystemExit where it does not."""
        deadline = time.monotonic() + ENFORCING_WITHIN_S
        while read_json(self.address, "/safe-mode").get("mode") != "enforcing":
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit(f"soak: not enforcing: {read_json(self.address, '/safe-mode')}")
            time.sleep(1)


@contextmanager
def agent_running(directory: Path, options: argparse.Namespace) -> Iterator[Agent]:
    """Run an agent; raise SystemExit where it does not start."""
    settings, log = directory / "agent.toml", directory / "log"
    (directory / PODS).write_text(podlist([]))
    engine, under = options.engine, list[str]()
    if options.enforce and not engine:
        engine, under = write_engine(directory), inside(directory, unified_tree())
    settings.write_text(settings_text(directory, engine))
    with log.open("w") as file:
        words = [*under, TEMPER, "agent", "--settings", settings]
        process = subprocess.Popen(words, stderr=file)
    try:
        yield Agent(process, settings, _address_in(log, process))
    finally:
        process.terminate()
        process.wait()


def settings_text(directory: Path, engine: Path | None) -> str:
    """Return the settings of an agent that keeps all its files in *directory*."""
    settings: Json = {
        "run_directory": f"{directory}/run",
        "state_directory": f"{directory}/state",
        "server": {"listen": "127.0.0.1:0"},
        "safe_mode": {"file": f"{directory}/{SAFE_MODE}"},
        "scheduler": {"enforce": False},
    }
    if engine:
        # The emulator must be waited for.
        scheduling = {"engine": str(engine), "start_deadline_s": 1500.0, "loop_deadline_s": 240.0}
        pods = {"source": "file", "file": f"{directory}/{PODS}"}
        settings |= {"scheduler": scheduling, "pods": pods}
    return to_toml(settings)


def _address_in(log: Path, process: "subprocess.Popen[bytes]") -> str:
    deadline = time.monotonic() + STARTED_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        for line in log.read_text().splitlines():
            if '"agent_started"' in line:
                return str(json.loads(line)["address"])
        time.sleep(0.2)
    raise SystemExit(f"soak: the agent did not start: {log.read_text()[-2000:]}")


def record(agent: Agent, seconds: float, target: Path) -> None:
    """Write a sample every 3 s to *target*; raise SystemExit where the agent ends."""
    began, tree = time.monotonic(), unified_tree()
    with target.open("w") as file:
        while (at_s := time.monotonic() - began) < seconds:
            if agent.process.poll() is not None:
                print(f"soak: the agent ended with code {agent.process.returncode}")
                raise SystemExit(ENDED)
            line = sample(agent.process.pid, agent.state, at_s, tree).as_line()
            file.write(json.dumps(line) + "\n")
            file.flush()
            time.sleep(SAMPLE_EVERY_S)


def run(options: argparse.Namespace) -> None:
    """Run the agent under churn, and write the records."""
    with (
        tempfile.TemporaryDirectory() as name,
        agent_running(directory := Path(name), options) as agent,
        Churn(options.pods, tenant(options), options.every, directory / PODS) as churn,
    ):
        asked = asked_of(agent)
        if options.enforce:
            agent.wait_until_enforcing()
            asked |= disturbed(agent, directory, churn)
        start_lanes(agent.address)
        with Askers(asked) as askers:
            record(agent, 60 * options.minutes, options.out / "samples.jsonl")
        print(f"{churn.begun} pods were begun; answered: {dict(askers.answered)}", end="")
        print(f"; failed: {dict(askers.failed)}; load average: {os.getloadavg()}", end="")
        print(f"; at the end: {read_json(agent.address, '/safe-mode')}\n")


def tenant(options: argparse.Namespace) -> list[str]:
    """Return the program of each pod."""
    if not options.load:
        return python_tenant(options.threads)
    naps = {"threads": options.threads, "pause_us": 50_000, "life_ms": 1_000}
    return command(options.load, "nap", naps)


def asked_of(agent: Agent) -> Asked:
    """Return what every agent is asked, and how often."""
    return {
        "/metrics": (15.0, lambda: read(agent.address, "/metrics")),
        "/observe": (5.0, lambda: read(agent.address, "/observe")),
        "capture": (60.0, lambda: capture(TEMPER, agent.settings)),
    }


def disturbed(agent: Agent, directory: Path, churn: Churn) -> Asked:
    """Return what is done to an enforcing agent, and how often."""
    settings = read_settings(agent.settings)
    disturber = Disturber(agent.process.pid, settings, directory / SAFE_MODE, churn)
    return {
        "trial": (60.0, disturber.try_a_profile),
        "killed engine": (240.0, disturber.kill_engine),
        "safe mode": (300.0, disturber.ask_for_safe_mode),
    }


def judge(folder: Path) -> int:
    """Print the table and write the plots; return the exit code."""
    lines = (folder / "samples.jsonl").read_text().splitlines()
    judged = rows([json.loads(line) for line in lines])
    for name, drawn in plots(judged).items():
        (folder / name).write_text(drawn)
    print(*table(judged), sep="\n")
    return 1 if any(row.verdict == "grows" for row in judged) else 0


def main() -> int:
    """Run and judge, or only judge what an earlier run has recorded."""
    parser = argparse.ArgumentParser(description="Does an agent grow while pods come and go?")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--out", type=Path, default=Path("build/soak"))
    parser.add_argument("--pods", type=int, default=12)
    parser.add_argument("--threads", type=int, default=8, help="of each pod")
    parser.add_argument("--every", type=float, default=2, help="seconds from pod to pod")
    parser.add_argument("--enforce", action="store_true", help="by a stand-in without --engine")
    parser.add_argument("--engine", type=Path, help="the scx_layered to enforce with")
    parser.add_argument("--load", type=Path, help="the program of ladder/load.c, for the pods")
    parser.add_argument("--judge", action="store_true", help="only judge the records in --out")
    options = parser.parse_args()
    if options.minutes < LEAST_MINUTES:
        parser.error(f"--minutes is {options.minutes:g}, and has to be {LEAST_MINUTES} or more")
    if not options.judge:
        options.out.mkdir(parents=True, exist_ok=True)
        run(options)
    return judge(options.out)


if __name__ == "__main__":
    sys.exit(main())
