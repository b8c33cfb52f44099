"""Writes the last result of the fault suite into docs/fault-suite.md: ``python -m`` this module."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tests.kernel.guest import CHECKOUT, PLAYED, Fault, known_faults

PAGE = CHECKOUT / "docs/fault-suite.md"
MARK = "<!-- written by tests/kernel/fault_page.py from here on -->\n"
RUNS_KEPT = 5
Outcome = Mapping[str, Any]


def main() -> None:
    """Replace what is below the mark; exit with 1 where not every fault was green."""
    outcomes = {fault: outcome_of(fault) for fault in known_faults()}
    prose, _, told = PAGE.read_text().partition(MARK)
    runs = [line for line in told.splitlines() if line.startswith("| 2")]
    text = "\n".join([*history([run_line(outcomes), *runs][:RUNS_KEPT]), *tables(outcomes)])
    PAGE.write_text(f"{prose}{MARK}{text}\n")
    sys.exit(0 if all(outcome.get("holds") for outcome in outcomes.values()) else 1)


def outcome_of(fault: Fault) -> Outcome:
    """Return what became of a fault; nothing where it was not played."""
    report = PLAYED / fault.group / "report.jsonl"
    for line in report.read_text().splitlines() if report.exists() else ():
        told: Outcome = json.loads(line)
        if told["claim"] == fault.id:
            return told
    return {}


def run_line(outcomes: Mapping[Fault, Outcome]) -> str:
    """Tell the whole run in one row."""
    green = sum(bool(outcome.get("holds")) for outcome in outcomes.values())
    minutes = sum(outcome.get("took_s", 0) for outcome in outcomes.values()) / 60
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    return f"| {when} | `{commit()}` | {len(outcomes)} | {green} | {minutes:.0f} min |"


def history(runs: list[str]) -> Iterator[str]:
    """Yield the table of the last runs, newest first."""
    yield from ("", "## The last full runs", "")
    yield from (
        "| UTC | commit | cases | green | in the guests |",
        "| --- | --- | --- | --- | --- |",
    )
    yield from runs


def tables(outcomes: Mapping[Fault, Outcome]) -> Iterator[str]:
    """Yield one table per group, of the newest run."""
    for group in dict.fromkeys(fault.group for fault in outcomes):
        yield from ("", f"## {group}", "")
        yield from ("| case | what is claimed | result | safe after |", "| --- | --- | --- | --- |")
        yield from (row(fault, told) for fault, told in outcomes.items() if fault.group == group)


def row(fault: Fault, outcome: Outcome) -> str:
    """Tell one fault in one row."""
    result = "not played" if not outcome else "green" if outcome["holds"] else "**RED**"
    safe_s = outcome.get("safe_s")
    safe = "-" if safe_s is None else f"{safe_s:.2f} s"
    return f"| `{fault.id}` | {fault.claim} | {result} | {safe} |"


def commit() -> str:
    """Return the commit that is checked out, and whether anything differs from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    return subprocess.run(
        command, cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
