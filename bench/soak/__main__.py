"""Run the observing agent under churn and judge its growth: ``make soak MINUTES=20``.

python -m bench.soak [--minutes M] [--out FOLDER] [--pods N] [--threads N] [--every S]

Needs root and cgroup v2. The agent has every installed plugin. It is scraped every 15 s, its
observation is read every 5 s, and a trace is captured every minute. Exit with 1 where a measure
grows by more than it may, and with 3 where the agent ended.
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

from bench.soak.churn import Churn
from bench.soak.load import Askers, capture, read
from bench.soak.report import plots, rows, table
from bench.soak.sampling import sample

TEMPER = Path(sys.executable).with_name("temper")
STARTED_WITHIN_S = 60.0
SAMPLE_EVERY_S = 3.0
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


@contextmanager
def observing(directory: Path) -> Iterator[Agent]:
    """Run an agent that only observes; raise SystemExit where it does not start."""
    settings, log = directory / "agent.toml", directory / "log"
    settings.write_text(
        f'run_directory = "{directory}/run"\nstate_directory = "{directory}/state"\n'
        '[server]\nlisten = "127.0.0.1:0"\n'
    )
    command = [TEMPER, "agent", "--observe-only", "--settings", settings]
    with log.open("w") as file:
        process = subprocess.Popen(command, stderr=file)
    try:
        yield Agent(process, settings, _address_in(log, process))
    finally:
        process.terminate()
        process.wait()


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
    began = time.monotonic()
    with target.open("w") as file:
        while (at_s := time.monotonic() - began) < seconds:
            if agent.process.poll() is not None:
                print(f"soak: the agent ended with code {agent.process.returncode}")
                raise SystemExit(ENDED)
            line = sample(agent.process.pid, agent.state, at_s).as_line()
            file.write(json.dumps(line) + "\n")
            file.flush()
            time.sleep(SAMPLE_EVERY_S)


def run(options: argparse.Namespace) -> None:
    """Run the agent under churn, and write the records."""
    with tempfile.TemporaryDirectory() as name, observing(Path(name)) as agent:
        asked = {
            "/metrics": (15.0, lambda: read(agent.address, "/metrics")),
            "/observe": (5.0, lambda: read(agent.address, "/observe")),
            "capture": (60.0, lambda: capture(TEMPER, agent.settings)),
        }
        with Churn(options.pods, options.threads, options.every) as churn, Askers(asked) as askers:
            record(agent, 60 * options.minutes, options.out / "samples.jsonl")
        print(f"{churn.begun} pods were begun; answered: {dict(askers.answered)}", end="")
        print(f"; failed: {dict(askers.failed)}; load average: {os.getloadavg()}\n")


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
