"""Plays a scene of ``backend_scenes`` in a process that has tracefs mounted, and judges it."""

import json
import os
import subprocess
import sys

import pytest

from tests.own_tracefs import OWN_MOUNTS

SCENE_S = 600
RUN_TIME_SHARE = 0.02
"""The kernel counts run time elsewhere in a switch."""
COUNT_SHARE = 0.05
"""Recorders begin and end one after another, and tracefs counts names among its losses."""


def scene(*words, prefix=OWN_MOUNTS, path=""):
    """Return what a scene has seen. *path* is put before PATH."""
    command = [*prefix, sys.executable, "-m", "tests.tracer.capture.backend_scenes", *words]
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"} if path else None
    ran = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=SCENE_S, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def assert_counts_agree(found, name, *, run_time_share=RUN_TIME_SHARE):
    """Hold the load as the recorder *name* has seen it against the BPF recorder and the kernel."""
    kernel, seen, bpf = found["kernel"], found["seen"][name], found["seen"]["bpf"]
    assert seen["runs"] == bpf["runs"] == kernel["runs"], found
    for each in (seen, bpf):
        if each["run_ns"] is not None:  # a hidden thread's switches are missing on some machines
            assert each["run_ns"] == pytest.approx(kernel["run_ns"], rel=run_time_share)
    for kind, count in bpf["kinds"].items():
        assert seen["kinds"][kind] == pytest.approx(count, rel=COUNT_SHARE, abs=5), kind
    for fact in ("states", "woken_by", "woken_on", "prios"):
        assert seen[fact] == bpf[fact], (fact, seen[fact], bpf[fact])


def assert_agrees(found, name, **options):
    """Do so, with what a trace of Perfetto does not tell: processes, losses and the order."""
    seen, bpf = found["seen"][name], found["seen"]["bpf"]
    assert (seen["lost"], bpf["lost"]) == (0, 0)
    assert_counts_agree(found, name, **options)
    assert seen["is_in_order"]
    assert seen["tgids"] == bpf["tgids"]
    assert seen["selected"] == bpf["selected"] == found["selected"]


def assert_losses_are_counted(seen):
    """Fail unless each event of a storm is kept or counted as lost."""
    lost = seen["lost_by_cpu"][str(seen["cpu"])]
    assert lost > 0
    assert seen["of_others"] == 0
    assert seen["lost_by_other"] == 0
    assert seen["kept"] + lost >= seen["every"] * (1 - COUNT_SHARE)
