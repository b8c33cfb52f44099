"""``temper train observe --pod`` on real processes in a real cgroup v2."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from temper_core import InputError, MachineError
from temper_plugin_trainer.commands.train import command
from temper_plugin_trainer.training.bundles import read_bundle
from tests.trainer.training.test_observing import SCRIPT

POD = "shop"
MAIN, SIDECAR, OTHER = "shop-main", "shop-side", "not-shop"
NAMED = f"import pathlib, sys; pathlib.Path('/proc/self/comm').write_text(sys.argv[1])\n{SCRIPT}"
ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


def _root():
    """Return the mount of cgroup v2."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    return next((Path(mount[1]) for mount in mounts if mount[2] == "cgroup2"), None)


@pytest.fixture
def pod():
    """Make the cgroup of a pod with two below it. It is removed with all of its processes."""
    root = _root()
    if root is None or not os.access(root, os.W_OK):
        pytest.skip("no writable cgroup v2 here")
    folder = root / f"temper-train-{os.getpid()}"
    parts = [folder / "main", folder / "main/worker", folder / "side"]
    folder.mkdir()
    for part in parts:
        part.mkdir()
    yield folder
    for part in (*reversed(parts), folder):
        part.rmdir()


@pytest.fixture
def run(pod):
    """Return a function that starts a busy program of a name in a cgroup below the pod's."""
    programs = []

    def start(name, cgroup):
        line = ["sh", "-c", ENTER, str(pod / cgroup), sys.executable, "-c", NAMED, name]
        programs.append(subprocess.Popen(line))
        comm = Path(f"/proc/{programs[-1].pid}/comm")
        while comm.read_text().strip() != name:
            assert programs[-1].poll() is None

    yield start
    for program in programs:
        program.kill()
        program.wait()


@pytest.fixture
def settings(pod, tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(
        f'[server]\nlisten = ""\nsocket = "{tmp_path}/none.sock"\n'
        f'[[workloads]]\nname = "{POD}"\ncgroup = "{pod.name}"\ntier = "critical"\n'
    )
    return path


def observe(settings, output, pod=POD):
    words = ["observe", "--pod", pod, "--seconds", 3.5, "--settings", settings, "-o", output]
    return CliRunner().invoke(command, shlex.split(" ".join(map(str, words))))


def test_every_cgroup_below_the_pods_is_observed_and_none_beside_it(run, settings, tmp_path):
    run(MAIN, "main/worker")
    run(SIDECAR, "side")
    run(OTHER, _root())

    result = observe(settings, tmp_path / "bundle.gz")

    bundle = read_bundle(tmp_path / "bundle.gz")
    # A machine that is busy with other work may not be steady, which is another test's subject.
    not_steady = "the load was not representative: not steady" in result.stderr
    assert result.exit_code == int(not_steady), result.stderr
    assert sorted(thread.comm for thread in bundle.threads) == [MAIN, SIDECAR]
    assert all(thread.run_s > 0.0 and thread.sleeps > 50 for thread in bundle.threads)


def test_a_pod_without_processes_is_one_line_and_leaves_no_file(settings, tmp_path):
    result = observe(settings, tmp_path / "bundle.gz")

    assert isinstance(result.exception, MachineError)
    assert str(result.exception) == (
        "nothing was observed: no thread lived from one sample to the next"
    )
    assert not (tmp_path / "bundle.gz").exists()


def test_a_pod_that_is_misspelled_is_told_with_the_one_that_is_there(run, settings, tmp_path):
    run(MAIN, "main")

    result = observe(settings, tmp_path / "bundle.gz", pod="shob")

    assert isinstance(result.exception, InputError)
    assert "no pod is called 'shob'; did you mean shop?" in str(result.exception)
    assert not (tmp_path / "bundle.gz").exists()
