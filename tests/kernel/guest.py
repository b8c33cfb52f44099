"""Walks in the guest, and what became of them."""

import json
import os
import runpy
import subprocess
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

CHECKOUT = Path(__file__).parents[2]
DEMO = CHECKOUT / "examples/demo"
VM_RUN = CHECKOUT / "vm/run"
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
    return Walked(ended.returncode, ended.stdout, _read_outcomes(share / "report.jsonl"))


def _read_outcomes(report: Path) -> Mapping[str, Outcome]:
    lines = report.read_text().splitlines() if report.exists() else []
    told = [json.loads(line) for line in lines]
    return {line["claim"]: Outcome(line["holds"], line["measured"]) for line in told}
