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

import pytest
from attrs import frozen

CHECKOUT = Path(__file__).parents[2]
DEMO = CHECKOUT / "examples/demo"
FAULTS = Path(__file__).parent / "faults"
PLAYED = CHECKOUT / "build/faults"
VM_RUN = CHECKOUT / "vm/run"
BUILD_ENGINE = CHECKOUT / "vm/build-engine"
PYTHON = ("env", f"PYTHONPATH={CHECKOUT}:{DEMO}", sys.executable)
"""The interpreter, for a program of the guest's that imports the tests' and the demonstration's."""
GROUP_S = 3600
_CLAIMS = runpy.run_path(str(DEMO / "claims.py"))
LIFE: Mapping[str, str] = _CLAIMS["LIFE"]
SATURATION: Mapping[str, str] = _CLAIMS["SATURATION"]
TRACED: Mapping[str, str] = _CLAIMS["TRACED"]
ATTACH_AND_SWAP: Mapping[str, str] = {**_CLAIMS["ATTACH"], **_CLAIMS["SWAP"], **_CLAIMS["STOP"]}


@frozen
class Outcome:
    """Whether a claim of the walk held, and by what it was judged."""

    holds: bool
    measured: str


@frozen
class Walked:
    """A walk that has ended: what it printed, which claims it came to, and its directory.

    ``gave_up`` is why it ended before its last claim, empty if it did not say so.
    """

    exit_code: int
    output: str
    outcomes: Mapping[str, Outcome]
    share: Path
    gave_up: str = ""


@frozen
class Fault:
    """A case of the fault suite, and the boot it belongs to."""

    group: str
    cpus: int
    id: str
    claim: str
    takes_minutes: bool


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


def play_faults(faults: Sequence[Fault]) -> Walked:
    """Boot a guest and play faults of one group in it. The report stays in build/faults."""
    group, cpus = faults[0].group, faults[0].cpus
    share = PLAYED / group
    shutil.rmtree(share, ignore_errors=True)
    share.mkdir(parents=True)
    machine = ("--cpus", str(cpus), "--timeout", str(GROUP_S))
    names = (fault.id for fault in faults)
    walked = walk_in_guest(share, machine, (*PYTHON, FAULTS, "--group", group, *names))
    (share / "output").write_text(walked.output)
    return walked


def walk(share: Path, name: str, cpus: int) -> Walked:
    """Boot a guest and take the demonstration's walk of that name in it; takes some minutes."""
    environment = {"DEMO_SHARE": str(share), "DEMO_CPUS": str(cpus)}
    return _walked(share, DEMO / "run", "--walk", name, **environment)


def walk_in_guest(
    share: Path, machine: Sequence[str], program: Sequence[str | Path], **environment: str
) -> Walked:
    """Boot a guest by options of ``vm/run``, and walk there by a program that takes an engine."""
    built = subprocess.run([BUILD_ENGINE], stdout=subprocess.PIPE, text=True, check=True)
    engine = ("--engine", built.stdout.strip())
    return _walked(
        share, VM_RUN, *machine, "--share", share, "--", *program, *engine, **environment
    )


def _walked(share: Path, *command: str | Path, **environment: str) -> Walked:
    ended = subprocess.run(
        [*command, "--report", "/share/report.jsonl"],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    report = share / "report.jsonl"
    lines = report.read_text().splitlines() if report.exists() else []
    told = [json.loads(line) for line in lines]
    outcomes = {
        line["claim"]: Outcome(line["holds"], line["measured"]) for line in told if "claim" in line
    }
    gave_up = "; ".join(line["gave_up"] for line in told if "gave_up" in line)
    return Walked(ended.returncode, ended.stdout, outcomes, share, gave_up)


def assert_held(claim: str, claims: Mapping[str, str], walked: Walked) -> None:
    """Fail where the walk did not come to a claim, or it did not hold.

    All that was printed is part of the first failure only.
    """
    outcome = walked.outcomes.get(claim)
    if outcome is None:
        first = next(name for name in claims if name not in walked.outcomes)
        printed = f"\n{walked.output}" if claim == first else ""
        reason = walked.gave_up or f"it ended with exit code {walked.exit_code}"
        pytest.fail(f"the walk did not come to: {claims[claim]}: {reason}{printed}", pytrace=False)
    assert outcome.holds, f"not so: {claims[claim]}\n{outcome.measured}\n\n{walked.output}"
