"""Run the commands of the README's first pages in order, and print a row with each one's time.

``bench/readme/run`` makes the machine and calls it there, so it uses the standard library alone.
"""

import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

HOME = Path("/srv")
CHECKOUT = HOME / "temper"
AGENT_LOG = HOME / "run.log"
READY = "http://127.0.0.1:9100/readyz"
LIMIT_S = 300.0
PACKAGES = re.compile(r"`(apt install [^`]*)`")
SECTION = re.compile(r"^## Five minutes$(.*?)^## ", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^ {4}\$ (.*?)(?: {2,}#.*)?$", re.MULTILINE)
STARTS_AGENT = "make run &"
NEEDS_CLUSTER = "kubectl "
WORKED = (0, 1, 3)
"""Exit codes of commands that worked: 1 with findings, 3 on a machine that cannot enforce."""


def main() -> int:
    """Follow the README; return 1 where a step did not do what it is for."""
    readme = (HOME / "README.md").read_text()
    print("| step | seconds | exit code | first line |\n| --- | --: | --: | --- |", flush=True)
    packages = f"{_one(PACKAGES, readme)} --yes --no-install-recommends"
    worked = [_run(packages, HOME), _run("git clone --quiet temper.git temper", HOME)]
    with AGENT_LOG.open("wb") as log:
        agent = subprocess.Popen(
            ["make", "run"], cwd=CHECKOUT, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            worked.append(_is_ready())
            worked += [_run(command, CHECKOUT) for command in _commands(readme)]
        finally:
            agent.terminate()
            agent.wait()
    return 0 if all(worked) else 1


def _one(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    if not found:
        sys.exit(f"steps: nothing fits {pattern.pattern}")
    return found[1]


def _commands(readme: str) -> Iterator[str]:
    """Yield the commands as root types them, with the settings of the agent that runs."""
    settings = _one(re.compile(r"settings: ([^;]+);"), AGENT_LOG.read_text())
    for command in COMMAND.findall(_one(SECTION, readme)):
        if command != STARTS_AGENT and not command.startswith(NEEDS_CLUSTER):
            here = command.replace("sudo ", "").replace("FILE", settings)
            yield here.replace("./server", "sleep 1")


def _is_ready() -> bool:
    start = time.monotonic()
    while time.monotonic() < start + LIMIT_S:
        try:
            with urllib.request.urlopen(READY, timeout=1):
                _print_row(STARTS_AGENT, time.monotonic() - start, "-", "ready")
                return True
        except OSError:
            time.sleep(0.1)
    _print_row(STARTS_AGENT, LIMIT_S, "-", AGENT_LOG.read_text().strip().splitlines()[-1])
    return False


def _run(command: str, folder: Path) -> bool:
    start = time.monotonic()
    ended = subprocess.run(
        ["timeout", str(LIMIT_S), "bash", "-o", "pipefail", "-c", command],
        check=False,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = [line for line in ended.stdout.splitlines() if line.strip()]
    _print_row(command, time.monotonic() - start, str(ended.returncode), lines[0] if lines else "")
    return ended.returncode in WORKED


def _print_row(step: str, seconds: float, exit_code: str, line: str) -> None:
    cells = (f"`{step}`", f"{seconds:.1f}", exit_code, line[:90])
    print("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
