"""What an instance of tracefs records, held against the BPF recorder and the kernel's own count.

tracefs is mounted in a mount namespace of the test's own.
"""

import pytest

from tests.own_tracefs import skip_without_tracefs
from tests.tracer.capture.scenes import assert_agrees, assert_losses_are_counted, scene


@pytest.fixture(scope="session", autouse=True)
def tracefs():
    """Skip with the reason where no tracefs can be mounted."""
    skip_without_tracefs()


@pytest.mark.usefixtures("bpf")
@pytest.mark.parametrize("which", ["agreement", "selection"])
def test_it_agrees_with_the_bpf_recorder_and_with_schedstat(which):
    assert_agrees(scene(which, "bpf", "tracefs"), "tracefs")


def test_threads_are_named_and_new_ones_followed():
    seen = scene("agreement", "tracefs")["seen"]["tracefs"]

    assert seen["sleeper"].startswith("python")
    assert seen["child"] == "renamed-once"


@pytest.mark.usefixtures("bpf")
def test_events_without_room_are_counted_by_cpu_and_the_oldest_are_kept():
    assert_losses_are_counted(scene("losses", "tracefs"))


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

    assert seen["during"]["instances"] >= 1
    assert seen["state"] == "failed"
    assert seen["left"] == {"files": [], "instances": [], "processes": []}


def test_the_doctor_makes_an_instance_where_tracefs_is_mounted():
    assert scene("checks")["tracefs"] == ["ok", "an instance can be made in /sys/kernel/tracing"]
