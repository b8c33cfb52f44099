"""``temper restore`` and the real instances of tracefs that a killed agent has left."""

import json
import subprocess
import sys

import pytest

from temper_core import Restored, remove_tracing_instances, tracefs_mounts
from temper_core.restoring.tracing_instances import IN_USE
from tests.own_tracefs import OWN_MOUNTS, skip_without_tracefs
from tests.patience import PATIENCE_S


def test_an_orphan_is_removed_and_those_of_others_are_left(tmp_path):
    skip_without_tracefs()
    scene = [sys.executable, "-m", "tests.core.restoring.tracing_scene", str(tmp_path)]

    ran = subprocess.run(
        [*OWN_MOUNTS, *scene], check=False, capture_output=True, text=True, timeout=PATIENCE_S
    )

    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "would_remove": True,
        "is_left_by_dry_run": True,
        "is_told": True,
        "is_gone": True,
        "is_held_left": True,
        "why_held_is_left": [IN_USE],
        "is_other_left": True,
        "is_other_told": False,
    }


@pytest.fixture
def proc(tmp_path):
    """A /proc that shows the given mounts."""

    def show(*lines):
        path = tmp_path / "proc/self/mountinfo"
        path.parent.mkdir(parents=True)
        path.write_text("\n".join(lines))
        return tmp_path / "proc"

    return show


def test_only_whole_mounts_of_tracefs_count(proc):
    root = proc(
        "25 1 0:7 / /sys/kernel/tracing rw shared:8 - tracefs tracefs rw",
        "26 1 0:7 /instances/one /srv/one rw - tracefs tracefs rw",
        "27 1 0:7 / /mnt/with\\040space rw master:1 - tracefs none rw",
        "28 1 0:9 / /sys/kernel/debug rw - debugfs tracefs rw",
        "damaged",
    )

    assert [str(path) for path in tracefs_mounts(root)] == [
        "/sys/kernel/tracing",
        "/mnt/with space",
    ]


def test_without_tracefs_there_is_nothing_to_remove(proc, tmp_path):
    assert remove_tracing_instances(proc("1 1 0:1 / / rw - ext4 /dev/vda rw")) == Restored()
    assert remove_tracing_instances(tmp_path / "none") == Restored()
