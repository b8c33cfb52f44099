"""Writes the last result on real nodes into docs/kubernetes-node.md: ``python -m`` this module."""

import json
import subprocess
from datetime import UTC, datetime

from tests.kubernetes.node.real_node import DRIVERS, REPORTS, ROOT

PAGE = ROOT / "docs/kubernetes-node.md"
MARK = "<!-- written by tests/kubernetes/node/node_page.py from here on -->\n"


def main():
    """Replace what is below the mark by what the last run told."""
    told = {driver: _report(driver) for driver in DRIVERS}
    prose = PAGE.read_text().partition(MARK)[0]
    PAGE.write_text(prose + MARK + "\n".join(_lines(told)) + "\n")


def _report(driver):
    path = REPORTS / f"{driver}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _lines(told):
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    yield from ("", "## The last run", "", f"{when} UTC, commit `{_commit()}`.", "")
    yield from ("| | " + " | ".join(DRIVERS) + " |", "| --- | --- | --- |")
    for claim in dict.fromkeys(claim for driver in DRIVERS for claim in told[driver]):
        measured = " | ".join(told[driver].get(claim, "-") for driver in DRIVERS)
        yield f"| {claim} | {measured} |"


def _commit():
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
