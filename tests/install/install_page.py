"""Writes the last result of the installations into docs/install.md: ``python -m`` this module."""

import json
import platform
import subprocess
import sys
from datetime import UTC, datetime

from tests.install.report import PATH
from tests.install.tools import ROOT, run, uv

PAGE = ROOT / "docs/install.md"
MARK = "<!-- written by tests/install/install_page.py from here on -->\n"
HEAD = (
    "| what is installed | by | versions | Python | result | packages | commands | seconds |",
    "| --- | --- | --- | --- | --- | --: | --: | --: |",
)


def main():
    """Replace what is below the mark; exit with 1 where a case failed or none was run."""
    told = [json.loads(line) for line in PATH.read_text().splitlines()] if PATH.exists() else []
    prose = PAGE.read_text().partition(MARK)[0]
    PAGE.write_text(prose + MARK + "\n".join(lines(told)) + "\n")
    sys.exit(0 if told and all(case["holds"] for case in told) else 1)


def lines(told):
    """Yield the lines below the mark."""
    green = sum(case["holds"] for case in told)
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    system = f"{platform.machine()}, Linux {platform.release().partition('-')[0]}"
    tool = run(uv(), "--version").stdout.partition(" (")[0]
    yield from ("", "## The last run", "")
    yield f"{when} UTC, commit `{commit()}`, {system}, {tool}:"
    yield from (f"{green} of {len(told)} cases hold.", "", *HEAD)
    yield from (row(case) for case in told)


def row(case):
    """Tell one case in one row."""
    *subject, end, python = case["case"].rsplit("-", 2)
    result = "holds" if case["holds"] else "**fails**"
    figures = (case.get("packages", "-"), case.get("subcommands", "-"), f"{case['took_s']:.0f}")
    words = (*what(case["test"], subject[0] if subject else ""), end, python, result, *figures)
    return f"| {' | '.join(map(str, words))} |"


def what(test, subject):
    """Return what a case installs, and by which tool."""
    if test == "test_the_agent_with_all_plugins":
        return "`temper-agent[all]`", {"pip": "pip", "pipx": "pipx", "uv": "uv tool"}[subject]
    return f"`{subject or 'temper-agent'}`", "uv pip"


def commit():
    """Return the commit that is checked out, and whether anything differs from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main()
