"""What an instance of tracefs records, held against the BPF recorder and the kernel's own count.

tracefs is mounted in a mount namespace of the test's own.
"""

import json
import subprocess
import sys

import pytest

from tests.own_tracefs import OWN_MOUNTS, skip_without_tracefs
from tests.patience import PATIENCE_S

RUN_TIME_SHARE = 0.02
"""The kernel counts run time elsewhere in a switch."""
COUNT_SHARE = 0.05
"""Recorders begin and end one after another, and tracefs counts names among its losses."""


def scene(*words):
    """Return what a scene has seen."""
    command = [*OWN_MOUNTS, sys.executable, "-m", "tests.tracer.capture.backend_scenes", *words]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.fixture(scope="session", autouse=True)
def tracefs():
    """Skip with the reason where no tracefs can be mounted."""
    skip_without_tracefs()


@pytest.mark.usefixtures("bpf")
@pytest.mark.parametrize("which", ["agreement", "selection"])
def test_it_agrees_with_the_bpf_recorder_and_with_schedstat(which):
    found = scene(which, "bpf", "tracefs")

    kernel, tracefs, bpf = found["kernel"], found["seen"]["tracefs"], found["seen"]["bpf"]
    assert (tracefs["lost"], bpf["lost"]) == (0, 0)
    assert tracefs["runs"] == bpf["runs"] == kernel["runs"]
    for each in (tracefs, bpf):
        if each["run_ns"] is not None:  # a hidden thread's switches are missing on some machines
            assert each["run_ns"] == pytest.approx(kernel["run_ns"], rel=RUN_TIME_SHARE)
    for kind, count in bpf["kinds"].items():
        assert tracefs["kinds"][kind] == pytest.approx(count, rel=COUNT_SHARE, abs=5), kind
    assert tracefs["is_in_order"]
    assert tracefs["tgids"] == bpf["tgids"]


def test_threads_are_named_and_new_ones_followed():
    seen = scene("agreement", "tracefs")["seen"]["tracefs"]

    assert seen["sleeper"].startswith("python")
    assert seen["child"] == "renamed-once"


@pytest.mark.usefixtures("bpf")
def test_events_without_room_are_counted_by_cpu_and_the_oldest_are_kept():
    seen = scene("losses")

    lost = seen["lost_by_cpu"][str(seen["cpu"])]
    assert lost > 0
    assert seen["cpus"] == [seen["cpu"]]
    assert seen["lost_by_other"] == 0
    assert seen["kept"] + lost >= seen["every"] * (1 - COUNT_SHARE)  # nothing is lost uncounted


def test_an_instance_of_a_killed_process_stops_and_is_removed_by_the_next():
    seen = scene("killed")

    assert seen["is_on"]
    assert not seen["is_on_after"]
    assert seen["kib_after"] < 64 < seen["kib"]  # the kernel has freed the buffers
    assert not seen["while_alive"]
    assert seen["would_remove"]
    assert not seen["is_left"]
    assert seen["is_live_left"]
    assert not seen["is_own_left"]


def test_auto_takes_it_without_the_capabilities_for_bpf_and_says_why(tmp_path):
    entry = scene("captured", str(tmp_path), "auto", "bpf,perfmon,sys_admin")

    assert entry["state"] == "finished", entry
    assert entry["backend"] == "tracefs"
    assert "CAP_BPF" in entry["refused"]["bpf"]
    assert entry["read"] == {"events": entry["events"], "threads": entry["threads"], "cut": ""}
    assert entry["events"] > 0
    assert entry["left"]["instances"] == []


def test_nothing_is_left_of_a_capture_whose_helper_is_killed(tmp_path):
    seen = scene("killed_helper", str(tmp_path), "tracefs")

    assert seen["during"] >= 1
    assert seen["state"] == "failed"
    assert seen["left"] == {"files": [], "instances": [], "processes": []}


def test_the_doctor_makes_an_instance_where_tracefs_is_mounted():
    assert scene("checks")["tracefs"] == ["ok", "an instance can be made in /sys/kernel/tracing"]
