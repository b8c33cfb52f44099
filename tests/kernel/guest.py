"""Walks in the guest, and what became of them."""

import json
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from attrs import frozen

CHECKOUT = Path(__file__).parents[2]
DEMO = CHECKOUT / "examples/demo"
FAULTS = Path(__file__).parent / "faults"
PLAYED = CHECKOUT / "build/faults"
VM_RUN = CHECKOUT / "vm/run"
BUILD_ENGINE = CHECKOUT / "vm/build-engine"
GROUP_S = 3600
_CLAIMS = runpy.run_path(str(DEMO / "claims.py"))
LIFE: Mapping[str, str] = _CLAIMS["LIFE"]
SATURATION: Mapping[str, str] = _CLAIMS["SATURATION"]


@frozen
class Outcome:
    """Whether a claim of the walk held, and by what it was judged."""

    holds: bool
    measured: str


@frozen
class Walked:
    """A walk that has ended: what it printed, and which claims it came to."""

    exit_code: int
    output: str
    outcomes: Mapping[str, Outcome]


@frozen
class Fault:
    """A case of the fault suite, and the boot it belongs to."""

    group: str
    cpus: int
    id: str
    claim: str


@cache
def known_faults() -> Sequence[Fault]:
    """Return every case, as the guest's part tells them."""
    listed = subprocess.run(
        [sys.executable, FAULTS, "--list"],
        env={**os.environ, "PYTHONPATH": str(DEMO)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [Fault(**json.loads(line)) for line in listed.stdout.splitlines()]


def play_faults(group: str) -> Walked:
    """Boot a guest and play all faults of a group in it; the report stays in build/faults."""
    share = PLAYED / group
    shutil.rmtree(share, ignore_errors=True)
    share.mkdir(parents=True)
    cpus = next(fault.cpus for fault in known_faults() if fault.group == group)
    machine = [VM_RUN, "--cpus", str(cpus), "--timeout", str(GROUP_S), "--share", share]
    engine = subprocess.run([BUILD_ENGINE], stdout=subprocess.PIPE, text=True, check=True)
    python = [f"PYTHONPATH={CHECKOUT}:{DEMO}", sys.executable]
    play = [FAULTS, "--group", group, "--engine", engine.stdout.strip()]
    ended = subprocess.run(
        [*machine, "--", "env", *python, *play, "--report", "/share/report.jsonl"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    (share / "output").write_text(ended.stdout)
    return Walked(ended.returncode, ended.stdout, read_outcomes(share / "report.jsonl"))


def walk(share: Path, name: str, cpus: int) -> Walked:
    """Boot a guest and take the walk of that name in it; takes some minutes."""
    ended = subprocess.run(
        [DEMO / "run", "--walk", name, "--report", "/share/report.jsonl"],
        env={**os.environ, "DEMO_SHARE": str(share), "DEMO_CPUS": str(cpus)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return Walked(ended.returncode, ended.stdout, read_outcomes(share / "report.jsonl"))


def read_outcomes(report: Path) -> Mapping[str, Outcome]:
    """Return the outcomes that a report holds, by claim."""
    lines = report.read_text().splitlines() if report.exists() else []
    told = [json.loads(line) for line in lines]
    return {line["claim"]: Outcome(line["holds"], line["measured"]) for line in told}
