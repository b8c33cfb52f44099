"""Leaves instances in the real tracefs, and has ``temper restore`` look at them: ``-m ... FOLDER``.

Prints what has become of them as JSON.
"""

import fcntl
import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner

import temper_core.launch
from temper_core import tracefs_mounts
from temper_core.cli.restore import command
from temper_core.node.cgroups import detect_cgroups
from temper_core.scheduler.host.roots import Roots
from tests.core.node.trees import make_hierarchy
from tests.core.restoring.conftest import Host


@contextmanager
def instance(name):
    """Yield an instance that records, and remove it if nobody has."""
    path = tracefs_mounts()[0] / "instances" / name
    path.mkdir()
    try:
        (path / "events/sched/sched_process_exit/enable").write_text("1")
        yield path
    finally:
        if path.exists():
            path.rmdir()


def restore(made, *options):
    done = CliRunner().invoke(command, ["--settings", str(made.path), "--output", "json", *options])
    return json.loads(done.stdout)


def main(folder):
    made = Host(folder)
    Roots.of = staticmethod(lambda _settings: made.roots)
    cgroups = detect_cgroups(folder / "no-proc", make_hierarchy(folder / "cgroup"))
    temper_core.launch.detect_cgroups = lambda: cgroups
    number = os.getpid()
    with (
        instance(f"temper-{number}-0a0b0c") as orphan,
        instance(f"temper-{number}-0d0e0f") as held,
        instance(f"somebody-else-{number}") as other,
    ):
        lock = os.open(held, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        dry = restore(made, "--dry-run")
        is_left_by_dry_run = orphan.exists()
        done = restore(made)
        seen = {
            "would_remove": str(orphan) in dry["removed"],
            "is_left_by_dry_run": is_left_by_dry_run,
            "is_told": str(orphan) in done["removed"],
            "is_gone": not orphan.exists(),
            "is_held_left": held.exists(),
            "why_held_is_left": [each["why"] for each in done["left"] if each["path"] == str(held)],
            "is_other_left": other.exists(),
            "is_other_told": str(other) in json.dumps([dry, done]),
        }
        os.close(lock)
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
