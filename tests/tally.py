"""Counts the tests that no step of a run has run.

As a pytest plugin it appends the outcome of each test to the file that ``TEMPER_TALLY`` names, one
JSON object a line. As a program (``python -m tests.tally FOLDER [TARGET...]``) it compares the
files of a folder with all tests that there are. The targets are those left out on purpose. It also
counts the guests that ``vm/run`` has booted meanwhile, and those that were lost, and names the
files whose tests took longest.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests.heavy import FOLDERS, TESTS, target_of

GUESTS = "guests"
"""The file of a folder to which ``vm/run`` appends a line per guest (``TEMPER_VM_TALLY``)."""
NAMED = 20
SLOWEST = 12
NOT_REACHED = "no step came to it"


class Tally:
    """Appends the outcome of each test to a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._setup_s: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        is_skipped = report.skipped and not hasattr(report, "wasxfail")
        if report.when == "setup" and report.passed:
            self._setup_s[report.nodeid] = report.duration
        elif report.when != "teardown":
            seconds = self._setup_s.pop(report.nodeid, 0.0) + report.duration
            record = {
                "test": report.nodeid,
                "skipped": _reason_of(report) if is_skipped else "",
                "seconds": round(seconds, 2),
            }
            with self._path.open("a") as file:
                file.write(json.dumps(record) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    # Taken out of the environment: a pytest that a test starts is none of the steps.
    path = os.environ.pop("TEMPER_TALLY", "")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Tally(Path(path)))


def _reason_of(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return "skipped"


class Collected:
    """All tests that there are, each with the target that it is left to."""

    def __init__(self) -> None:
        self.targets: dict[str, str] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.targets = {item.nodeid: target_of(item) or "test" for item in items}


def collect() -> Mapping[str, str]:
    """Return all tests, those of the slow groups of faults too."""
    collected, output = Collected(), StringIO()
    arguments = ["--collect-only", "-q", "-p", "no:cacheprovider", "--all-faults"]
    folders = [str(TESTS), *sorted(map(str, FOLDERS))]  # their options are known only if named
    with redirect_stdout(output):
        status = pytest.main([*arguments, *folders], plugins=[collected])
    if status:
        raise SystemExit(f"tests: the collection failed\n{output.getvalue()[-2000:]}")
    return collected.targets


def read(folder: Path) -> Mapping[str, str]:
    """Return why each test of the folder's files was skipped; empty for one that a step ran."""
    reasons: dict[str, str] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            name, reason = record["test"], record["skipped"]
            reasons[name] = reasons.get(name, reason) and reason
    return reasons


def compare(
    targets: Mapping[str, str], reasons: Mapping[str, str], left_out: frozenset[str]
) -> list[str]:
    """Return the lines that tell what ran, what was left out and what no step ran."""
    missed = {name for name in targets if reasons.get(name, NOT_REACHED)}
    deliberate = {name for name in missed if targets[name] in left_out}
    lost = missed - deliberate
    by_target = Counter(targets[name] for name in deliberate)
    parts = "".join(f", {by_target[name]} of make {name}" for name in sorted(by_target))
    counts = f"{len(targets)} collected, {len(targets) - len(missed)} ran"
    causes = Counter(reasons.get(name, NOT_REACHED) for name in sorted(lost))
    unreached = sorted(name for name in lost if name not in reasons)
    return [
        f"tests    {counts}, {len(deliberate)} left out on purpose{parts}",
        f"tests    {len(lost)} that no step ran",
        *(f"           {count:>5} {cause}" for cause, count in causes.most_common()),
        *(f"                 {name}" for name in unreached[:NAMED]),
    ]


def count_guests(folder: Path) -> list[str]:
    """Return the line that tells how many guests were lost, none where no guest booted."""
    path = folder / GUESTS
    lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
    outcomes = Counter(outcome for outcome, _, _ in lines)
    enabled = sum(int(times) for _, times, _ in lines)
    lost = ", ".join(f"{outcomes[name]} {name}" for name in ("broken", "died", "late"))
    counts = f"{len(lines)} booted, schedulers enabled {enabled} times, {lost}"
    return [f"guests   {counts}"] if lines else []


def slowest(folder: Path) -> list[str]:
    """Return the lines that name the files whose tests took longest in one step."""
    seconds: Counter[tuple[str, str]] = Counter()
    for path in folder.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            record = json.loads(line)
            seconds[path.stem, record["test"].partition("::")[0]] += record["seconds"]
    return [
        f"slowest  {taken:>5.0f} s {name} (make {step})"
        for (step, name), taken in seconds.most_common(SLOWEST)
    ]


def main(arguments: list[str]) -> None:
    folder, left_out = Path(arguments[0]), frozenset(arguments[1:])
    counts = compare(collect(), read(folder), left_out)
    lines = [*counts, *count_guests(folder), *slowest(folder)]
    print(*lines, sep="\n")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
