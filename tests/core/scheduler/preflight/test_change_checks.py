"""What keeps steering or the warm swap away: on made-up nodes, and by trying it on this one."""

import os
import subprocess
from pathlib import Path

import attrs
import pytest

from temper_core.bpf import access
from temper_core.scheduler import pre_exec_script
from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.preflight.change_checks import pinned_pods, steering, warm_swap
from temper_core.scheduler.preflight.preflight import look_closely, verdict
from temper_core.settings import Settings

ROOT = os.geteuid() == 0


def settings(**scheduler: object) -> Settings:
    return Settings(scheduler=attrs.evolve(Settings().scheduler, **scheduler))


@pytest.fixture
def bpf_folder(tmp_path):
    """A BPF file system of the test's own, which goes with it."""
    folder = tmp_path / "bpf"
    folder.mkdir()
    mount = ["mount", "-t", "bpf", "bpf", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("no BPF file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_nothing_of_this_ever_keeps_the_engine_away(node):
    node.put("proc/meminfo", "MemAvailable: 1 kB\n")

    checks = look_closely(node.roots, settings(steering_pin="/nowhere/at/all/hints"))

    names = [check.name for check in checks]
    assert names == ["steering", "warm_swap", "pinned_pods", "conflicting_software"]
    assert verdict(checks) is None
    assert all(check.remedy for check in checks if check.state == "warning")


def test_what_the_settings_turn_off_is_no_finding(node):
    chosen = settings(steering="static", warm_swap=False)

    assert steering(node.roots, chosen).state == "ok"
    assert warm_swap(node.roots, chosen).state == "ok"


def test_a_pin_that_is_on_no_bpf_file_system_means_static_mode(node):
    check = steering(node.roots, settings(steering_pin=str(node.folder / "temper/hints")))

    assert check.detail == f"static mode: {node.folder} is not on a BPF file system"
    assert check.remedy == "mount -t bpf -o mode=700 bpf /sys/fs/bpf"


def test_a_pid_namespace_of_its_own_means_static_mode(node):
    link = node.folder / "proc/self/ns/pid"
    link.parent.mkdir()
    link.symlink_to("pid:[4026532177]")

    check = steering(node.roots, settings())

    assert (check.state, check.detail) == (
        "warning",
        "static mode: this process has a pid namespace of its own",
    )
    assert "hostPID" in check.remedy


def test_a_mounted_bpf_file_system_leaves_it_to_what_the_kernel_allows(bpf_folder):
    before = set(bpf_folder.iterdir())

    check = steering(Roots(), settings(steering_pin=str(bpf_folder / "temper/hints")))

    found = access.probe()
    told = f"static mode: {found.reason}" if not found.is_allowed else "by hints; "
    assert check.detail.startswith(told)
    assert set(bpf_folder.iterdir()) == before


def test_a_pin_directory_that_somebody_else_owns_is_refused(bpf_folder):
    folder = bpf_folder / "temper"
    (folder / "theirs").mkdir(parents=True)
    os.chown(folder, 12345, 12345)

    check = steering(Roots(), settings(steering_pin=str(folder / "hints")))

    assert check.detail.startswith(f"static mode: {folder} is not a directory of this user")


def test_an_empty_pin_directory_of_somebody_else_is_no_finding(bpf_folder):
    folder = bpf_folder / "temper"
    folder.mkdir()
    os.chown(folder, 12345, 12345)

    check = steering(Roots(), settings(steering_pin=str(folder / "hints")))

    assert "not a directory of this user" not in check.detail


def test_a_bpf_file_system_that_only_root_may_enter_is_told(bpf_folder):
    pin = bpf_folder / "temper/hints"
    bpf_folder.chmod(0o700)

    os.seteuid(65534)
    try:
        check = steering(Roots(), settings(steering_pin=str(pin)))
    finally:
        os.seteuid(0)

    assert check.detail.startswith("static mode: ")
    assert check.detail.endswith("Permission denied")
    assert check.remedy == "run the agent as root"


def test_a_read_only_bpf_file_system_is_called_so(bpf_folder):
    subprocess.run(["mount", "-o", "remount,ro", str(bpf_folder)], check=True)

    check = steering(Roots(), settings(steering_pin=str(bpf_folder / "temper/hints")))

    assert check.detail == f"static mode: {bpf_folder} is read-only"


@pytest.mark.skipif(not ROOT, reason="mounting needs root")
def test_a_gate_is_tried_for_real_and_leaves_nothing(node):
    before = Path("/proc/self/mountinfo").read_text()

    check = warm_swap(node.roots, settings())

    gate = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True)
    assert (check.state == "ok") == (gate.returncode == 0)
    assert Path("/proc/self/mountinfo").read_text() == before


def test_a_gate_that_cannot_be_mounted_means_cold_restarts(node, monkeypatch):
    refusing = node.put("launcher.py", "import sys\nsys.exit('temper: no mount namespace')\n")
    monkeypatch.setattr(pre_exec_script, "__file__", str(refusing))

    check = warm_swap(node.roots, settings())

    assert (check.state, check.detail) == ("warning", "cold restarts: no mount namespace")
    assert "CAP_SYS_ADMIN" in check.remedy


@pytest.mark.parametrize(
    ("path", "text", "told"),
    [
        ("proc/meminfo", "MemAvailable: 716800 kB\n", "700 MiB are available"),
        ("cgroup/memory.max", f"{600 << 20}\n", "this cgroup may use 600 MiB"),
    ],
)
def test_two_engines_need_more_memory_than_one(node, path, text, told):
    node.put(path, text)

    check = warm_swap(node.roots, settings())

    assert check.detail == f"cold restarts: {told}; two engines and the agent need 704 MiB"


def test_beside_an_engine_that_runs_only_the_next_ones_memory_counts(node):
    node.put("proc/meminfo", "MemAvailable: 409600 kB\n")

    check = warm_swap(node.roots, settings(), own_engine=4711)

    assert "memory" not in check.remedy
    node.put("proc/meminfo", "MemAvailable: 102400 kB\n")
    assert "100 MiB are available" in warm_swap(node.roots, settings(), own_engine=4711).detail


def test_a_cgroup_that_is_kept_to_all_cpus_is_not_kept_to_some(node):
    node.put("sys/devices/system/cpu/online", "0-7\n")
    node.put("cgroup/kubepods/cpuset.cpus", "0-7\n")
    node.put("cgroup/kubepods/pod1/cpuset.cpus", "\n")
    assert pinned_pods(node.roots).state == "ok"

    node.put("cgroup/kubepods/pod1/cpuset.cpus", "0-3\n")

    assert pinned_pods(node.roots).detail.startswith("1 of 2 cgroups of pods")


def test_pods_that_are_kept_to_some_cpus_are_counted(node):
    node.put("cgroup/kubepods.slice/cpuset.cpus", "\n")
    node.put("cgroup/kubepods.slice/pod1/cpuset.cpus", "\n")
    node.put("cgroup/system.slice/cpuset.cpus", "0-1\n")
    assert pinned_pods(node.roots).state == "ok"

    node.put("cgroup/kubepods.slice/pod1/container/cpuset.cpus", "2-3\n")

    check = pinned_pods(node.roots)
    assert check.state == "warning"
    assert check.detail.startswith("1 of 3 cgroups of pods")
