"""Every backend beside the BPF recorder; run by pytest in a guest with bcc and Perfetto.

``PERFETTO`` is where Perfetto's programs are. ``test_trace_backends.py`` boots the guest.
"""

import errno
import os

import pytest

from tests.tracer.capture.scenes import (
    assert_agrees,
    assert_counts_agree,
    assert_losses_are_counted,
    scene,
)

EMULATED = 0.1
"""An emulated switch takes long between the kernel's reading of the clock and the recorder's: 40 µs
on a busy host, where a run takes 0.65 ms."""
NOTHING = {"files": [], "instances": [], "processes": []}


def test_the_object_for_old_kernels_agrees_with_schedstat():
    found = scene("plain_object")
    found["seen"]["bpf"] = found["seen"].pop("plain")

    assert_agrees(found, "bpf", run_time_share=EMULATED)
    assert found["seen"]["bpf"]["child"] == "renamed-once"


@pytest.mark.parametrize("which", ["agreement", "selection"])
def test_all_see_the_same_load(which):
    found = scene(which, "bpf", "tracefs", "bcc")

    for name in ("tracefs", "bcc"):
        assert_agrees(found, name, run_time_share=EMULATED)
        if which == "agreement":
            assert found["seen"][name]["sleeper"].startswith("python")
            assert found["seen"][name]["child"] == "renamed-once"


@pytest.mark.parametrize("backend", ["tracefs", "bcc"])
def test_events_without_room_are_counted(backend):
    assert_losses_are_counted(scene("losses", backend))


def test_perfetto_sees_it_too(tmp_path):
    found = scene("whole_node", str(tmp_path), path=os.environ["PERFETTO"])

    assert found["entry"]["state"] == "finished", found
    assert found["entry"]["ended_by"] == "asked"
    assert found["entry"]["lost"] == 0
    assert_counts_agree(found, "perfetto", run_time_share=EMULATED)
    assert found["left"]["instances"] == []
    assert set(found["left"]["processes"]) == {"python"}  # the load's own
    assert {name.rpartition("/")[2] for name in found["others"]} == {"producer", "consumer"}
    assert set(found["others"].values()) == {errno.EACCES}, "another user may not connect"


@pytest.mark.parametrize("backend", ["bpf", "tracefs", "perfetto", "bcc"])
def test_nothing_is_left_of_a_capture_whose_helper_is_killed(backend, tmp_path):
    seen = scene("killed_helper", str(tmp_path), backend, path=os.environ["PERFETTO"])

    assert seen["state"] == "failed"
    assert seen["left"] == NOTHING
    assert seen["programs_left"] == 0
    if backend in {"bpf", "bcc"}:
        assert seen["during"]["programs"] >= 11
    else:
        assert seen["during"]["instances"] == 1


def test_the_doctor_finds_all():
    states = {name: state for name, (state, _) in scene("checks").items()}

    assert states["tracefs"] == states["bcc"] == "ok"
