"""Preflight on made-up nodes, one thing wrong at a time, and on the real one."""

import errno
import os
import shutil
import struct
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from temper_core.engine.installed import InstalledEngine, find_installed
from temper_core.errors import EngineError
from temper_core.records.checks import CheckState
from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.preflight import foreign_scheduler, node_checks
from temper_core.scheduler.preflight.node_checks import own_engine
from temper_core.scheduler.preflight.preflight import run_preflight, verdict
from temper_core.settings import Settings
from tests.patience import PATIENCE_S

STRUCT, ENUM, TAG, ENUM64 = 4, 6, 17, 19


def btf(*types: tuple[str, int]) -> bytes:
    """Make up the kernel's BTF with these types, of these kinds (linux/btf.h)."""
    names, records = b"\0", b""
    for name, kind in types:
        records += struct.pack("<III", len(names), kind << 24, 0)
        names += name.encode() + b"\0"
    sizes = (0, len(records), len(records), len(names))
    return struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, *sizes) + records + names


@pytest.fixture
def node(node):
    (node.folder / "sys/kernel/btf/vmlinux").write_bytes(
        btf(("task_struct", STRUCT), ("scx_dsq_id_flags", ENUM64), ("bpf_kfunc", TAG))
    )
    return node


def find(name: str) -> InstalledEngine:
    return InstalledEngine(Path("/", name), "1.1.4")


def stat_of(start: int) -> str:
    return f"321 (scx) (odd) S 1 {'0 ' * 17}{start} 0 0\n"


def look(node, settings: Settings | None = None, **options):
    options.setdefault("find", find)
    checks = run_preflight(node.roots, settings or Settings(), **options)
    return {check.name: check for check in checks}, verdict(checks)


def test_a_node_that_has_everything_may_enforce(node):
    checks, hold = look(node)

    assert {check.state for check in checks.values()} == {"ok"}
    assert hold is None


WRONG = [
    ("btf", "sys/kernel/btf/vmlinux", None),
    ("cgroup_v2", "cgroup/cgroup.controllers", None),
    ("kernel_config", "boot/config-6.18.15-test", None),
    ("cpus_online", "sys/devices/system/cpu/possible", "0-7\n"),
    ("cpus_contiguous", "sys/devices/system/cpu/online", "0-1,3\n"),
    ("cpu_count", "sys/devices/system/cpu/online", "0-512\n"),
    ("isolcpus", "proc/cmdline", "quiet isolcpus=2-3\n"),
    ("isolcpus", "proc/cmdline", "isolcpus=nohz,domain,2-3\n"),
    ("isolcpus", "sys/devices/system/cpu/isolated", "2-3\n"),
    ("bpf_jit", "proc/sys/net/core/bpf_jit_enable", "0\n"),
    ("privileges", "proc/self/uid_map", "0 100000 65536\n"),
    ("memory", "cgroup/memory.high", "268435456\n"),
    ("lockdown", "sys/kernel/security/lockdown", "none integrity [confidentiality]\n"),
    ("privileges", "proc/self/status", "CapEff:\t0000000000000000\n"),
    ("privileges", "proc/self/status", "CapEff:\t000000ffffdfffff\n"),
    ("memory", "proc/meminfo", "MemAvailable: 400000 kB\n"),
    ("memory", "cgroup/memory.max", "268435456\n"),
    ("static_cpu_manager", "kubelet/cpu_manager_state", '{"policyName": "static"}'),
]


@pytest.mark.parametrize(("name", "path", "text"), WRONG)
def test_each_thing_that_is_wrong_fails_its_own_check_with_a_remedy(node, name, path, text):
    if text is None:
        node.remove(path)
    else:
        node.put(path, text)

    checks, hold = look(node)

    assert checks[name].state == "failed"
    assert checks[name].remedy
    assert (hold.mode, hold.reason) == ("safe_mode", "preflight")
    assert name in hold.detail


@pytest.mark.parametrize(("index", "state"), [(3, "ok"), (2, "failed")])
def test_more_caches_than_the_engine_has_room_for_fail_their_check(node, index, state):
    node.put("sys/devices/system/cpu/online", "0-69\n")
    for cpu in range(70):
        folder = f"sys/devices/system/cpu/cpu{cpu}"
        node.put(f"{folder}/topology/physical_package_id", "0\n")
        node.put(f"{folder}/cache/index2/shared_cpu_list", f"{cpu}\n")
        node.put(
            f"{folder}/cache/index{index}/shared_cpu_list", f"{cpu if index == 2 else cpu // 35}\n"
        )

    checks, _ = look(node)

    assert checks["topology_size"].state == state


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to another user")
def test_an_engine_that_another_user_may_change_is_warned_of(node, tmp_path):
    binary = tmp_path / "scx_layered"
    binary.touch()
    os.chown(binary, 65534, -1)

    checks, hold = look(node, find=lambda _: InstalledEngine(binary, "1.1.4"))

    assert (checks["engine"].state, hold) == ("warning", None)
    assert "user 65534 owns" in checks["engine"].detail


def test_more_numa_nodes_than_the_engine_has_room_for_fail_their_check(node):
    for number in range(33):
        node.put(f"sys/devices/system/node/node{number}/cpulist", "\n")

    checks, _ = look(node)

    assert checks["topology_size"].state == "failed"
    assert "33 NUMA nodes" in checks["topology_size"].detail


HARMLESS = [
    ("isolcpus", "proc/cmdline", "isolcpus=nohz,2-3\n", "ok"),
    ("isolcpus", "cgroup/cpuset.cpus.isolated", "2-3\n", "warning"),
    ("kernel_version", "proc/sys/kernel/osrelease", "6.13.7\n", "warning"),
    ("kernel_version", "proc/sys/kernel/osrelease", "6.12.1\n", "ok"),
    ("kernel_version", "proc/sys/kernel/osrelease", "custom\n", "unknown"),
    ("btf_prototypes", "proc/sys/kernel/osrelease", "custom\n", "unknown"),
    ("bpf_jit", "proc/sys/net/core/bpf_jit_enable", "1\n", "ok"),
    ("privileges", "proc/self/uid_map", "0 0 4294967295\n", "ok"),
    ("privileges", "proc/self/status", "CapEff:\t000001ffff7fffff\n", "warning"),
    ("privileges", "proc/self/status", "Name:\tx\n", "unknown"),
    ("memory", "proc/meminfo", "MemTotal: 1 kB\n", "unknown"),
    ("cgroup_index", "proc/sys/fs/inotify/max_user_watches", "239\n", "warning"),
    ("cgroup_index", "proc/sys/fs/inotify/max_user_watches", "240\n", "ok"),
    ("cgroup_index", "cgroup/cgroup.stat", "nr_descendants 16385\n", "warning"),
    ("cgroup_index", "cgroup/cgroup.stat", "nr_dying_descendants 1\n", "unknown"),
    ("memory", "cgroup/memory.max", "max\n", "ok"),
    ("cpus_online", "sys/devices/system/cpu/online", "garbage\n", "unknown"),
    ("static_cpu_manager", "kubelet/cpu_manager_state", '{"policyName": "none"}', "ok"),
    ("static_cpu_manager", "kubelet/cpu_manager_state", "{", "unknown"),
    ("static_cpu_manager", "kubelet/cpu_manager_state", "[]", "unknown"),
]


@pytest.mark.parametrize(("name", "path", "text", "state"), HARMLESS)
def test_what_does_not_stand_in_the_way_is_told_all_the_same(node, name, path, text, state):
    node.put("proc/config.gz", "")
    node.put(path, text)

    checks, hold = look(node)

    assert checks[name].state == state
    assert hold is None


@pytest.mark.parametrize(
    ("release", "types", "state"),
    [
        ("6.18.15", (), "ok"),
        ("7.2.12", (("bpf_kfunc", TAG),), "ok"),
        ("7.2.12", (("bpf_kfunc", STRUCT),), "warning"),
        ("7.2.12", (), "warning"),
    ],
)
def test_the_kernels_own_types_show_whether_an_old_pahole_made_them(node, release, types, state):
    node.put("proc/config.gz", "")
    node.put("proc/sys/kernel/osrelease", f"{release}\n")
    (node.folder / "sys/kernel/btf/vmlinux").write_bytes(btf(("task_struct", STRUCT), *types))

    checks, hold = look(node)

    assert checks["btf_prototypes"].state == state
    assert hold is None


@pytest.mark.parametrize(
    ("content", "state"),
    [
        (btf(("scx_dsq_id_flags", ENUM64)), "ok"),
        (btf(("scx_dsq_id_flags", ENUM)), "warning"),
        (btf(("scx_dsq_id_flags_too", ENUM)), "ok"),
        (b"", "unknown"),
        (b"\x9f\xeb" + b"\xff" * 40, "unknown"),
    ],
)
def test_constants_that_were_cut_in_the_kernels_types_are_told(node, content, state):
    (node.folder / "sys/kernel/btf/vmlinux").write_bytes(content)

    checks, hold = look(node)

    assert checks["btf_enums"].state == state
    assert hold is None


def test_isolated_partitions_do_not_keep_the_engine_away_from_7_1_on(node):
    node.put("proc/config.gz", "")
    node.put("sys/devices/system/cpu/isolated", "2-3\n")
    node.put("proc/sys/kernel/osrelease", "7.0.9\n")
    assert look(node)[0]["isolcpus"].state == "failed"

    node.put("proc/sys/kernel/osrelease", "7.1.0\n")

    assert look(node)[0]["isolcpus"].state == "warning"


def test_a_kernel_configuration_that_libbpf_does_not_look_for_is_one_copy_away(node):
    node.remove("boot/config-6.18.15-test")
    kept = node.put("usr/lib/modules/6.18.15-test/config", "CONFIG_SCHED_CLASS_EXT=y\n")

    remedy = look(node)[0]["kernel_config"].remedy

    assert remedy.startswith(f"cp {kept} {node.roots.boot}/config-6.18.15-test ")


def test_memory_that_the_agents_own_engine_holds_already_is_not_missed(node):
    node.put("proc/meminfo", "MemAvailable: 400000 kB\n")
    assert look(node)[0]["memory"].state == "failed"

    assert look(node, own_engine=4711)[0]["memory"].state == "ok"


def test_a_service_that_keeps_another_scheduler_is_found_though_none_is_seen(node):
    node.put("cgroup/system.slice/scx.service/cgroup.events", "populated 0\nfrozen 0\n")
    assert look(node)[1] is None

    node.put("cgroup/system.slice/scx.service/cgroup.events", "populated 1\nfrozen 0\n")
    checks, hold = look(node)

    assert hold.reason == "foreign_scheduler"
    assert checks["foreign_scheduler"].detail.startswith("scx.service is active")


def test_another_scheduler_is_foreign_though_the_agents_engine_lives(node):
    node.attach("lavd_1.0.19")

    checks, hold = look(node, own_engine=4711)

    assert hold.reason == "foreign_scheduler"
    assert checks["foreign_scheduler"].detail.startswith("lavd_1.0.19 is attached")


def test_an_engine_that_is_held_back_behind_a_gate_is_not_foreign(node):
    node.put("proc/321/comm", "scx_layered\n")
    node.put("proc/321/cmdline", "scx_layered\0f:/x\0")
    node.put("proc/321/mountinfo", "24 31 0:22 / /sys rw - sysfs sysfs rw\n")
    assert look(node)[1].reason == "foreign_scheduler"

    state = node.roots.sched_ext / "state"
    node.put("proc/321/mountinfo", f"55 24 0:26 /temper/engine-2.gate {state} rw - tmpfs t rw\n")

    assert look(node)[1] is None


def test_a_kernel_without_sched_ext_means_observing_whatever_else_is_wrong(node):
    node.roots.sched_ext.rename(node.folder / "gone")
    node.remove("cgroup/cgroup.controllers")

    checks, hold = look(node)

    assert checks["sched_ext"].state == "failed"
    assert (hold.mode, hold.reason) == ("observe_only", "no_sched_ext")


def test_a_hybrid_host_is_called_by_its_name(node):
    node.remove("cgroup/cgroup.controllers")
    node.put("cgroup/unified/cgroup.controllers", "\n")

    assert "hybrid" in look(node)[0]["cgroup_v2"].detail


def test_the_tightest_memory_limit_on_the_way_to_the_root_counts(node):
    node.put("proc/self/cgroup", "1:name=systemd:/x\n0::/kubepods/pod1/agent\n")
    node.put("cgroup/kubepods/pod1/agent/memory.max", "max\n")
    node.put("cgroup/kubepods/pod1/memory.max", "134217728\n")

    assert "128 MiB" in look(node)[0]["memory"].detail


def test_the_static_cpu_manager_may_be_overridden(node):
    node.put("kubelet/cpu_manager_state", '{"policyName": "static"}')
    settings = Settings()
    allowed = attrs.evolve(
        settings, scheduler=attrs.evolve(settings.scheduler, allow_static_cpu_manager=True)
    )

    checks, hold = look(node, allowed)

    assert checks["static_cpu_manager"].state == "warning"
    assert hold is None


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("proc/4711/comm", "kubelet\n"),
        ("proc/self/environ", "PATH=/bin\0KUBERNETES_SERVICE_HOST=10.0.0.1\0"),
    ],
    ids=["a kubelet runs", "in a pod"],
)
def test_a_kubelets_policy_that_cannot_be_seen_is_not_told_to_be_well(node, path, text):
    node.put(path, text)

    checks, hold = look(node)

    check = checks["static_cpu_manager"]
    assert check.state == "unknown"
    assert "cannot be seen from here" in check.detail
    assert "temper k8s doctor" in check.remedy
    assert hold is None


def test_a_missing_engine_is_told_in_the_finders_words(node):
    def missing(_name: str) -> InstalledEngine:
        raise EngineError("there is no such program on PATH")

    checks, hold = look(node, find=missing)

    assert checks["engine"].detail == "there is no such program on PATH"
    assert hold.reason == "preflight"


def test_an_engine_that_vanishes_while_it_is_looked_for_is_missing(node, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: str(node.folder / name))

    checks, hold = look(node, find=find_installed)

    assert checks["engine"].state == "failed"
    assert "No such file" in checks["engine"].detail
    assert hold.reason == "preflight"


def test_an_engine_that_is_not_known_is_a_warning(node):
    def newer(name: str) -> InstalledEngine:
        return InstalledEngine(Path(name), "9.0.0", "9.0.0 is not known; taken for 1.1.4")

    checks, hold = look(node, find=newer)

    assert checks["engine"].state == "warning"
    assert hold is None


def test_an_attached_scheduler_is_foreign_unless_the_agents_engine_lives(node):
    node.attach("layered_1.1.4")

    _, hold = look(node)
    checks, ours = look(node, own_engine=4711)

    assert hold.reason == "foreign_scheduler"
    assert ours is None
    assert "4711" in checks["foreign_scheduler"].detail


@pytest.mark.parametrize(
    ("comm", "cmdline", "is_foreign"),
    [
        ("scx_loader", "scx_loader\0", True),
        ("scx_lavd", "scx_lavd\0--performance\0", True),
        ("scx_layered", "scx_layered\0--monitor\x001\0", False),
        ("scx_layered", "scx_layered\0--version\0", False),
        ("bash", "bash\0", False),
    ],
)
def test_schedulers_and_their_loader_are_found_among_the_processes(node, comm, cmdline, is_foreign):
    node.put("proc/321/comm", f"{comm}\n")
    node.put("proc/321/cmdline", cmdline)

    _, hold = look(node)

    assert (hold is not None and hold.reason == "foreign_scheduler") == is_foreign


@pytest.mark.parametrize(
    ("capabilities", "is_foreign"),
    [
        ("000001ffffffffff", True),
        ("0000008000000000", True),  # CAP_BPF alone
        ("0000000000000000", False),
        ("00000000a80425fb", False),  # root in a container
    ],
)
def test_a_process_without_the_rights_of_a_scheduler_holds_nothing_up(
    node, capabilities, is_foreign
):
    node.put("proc/321/comm", "scx_lavd\n")
    node.put("proc/321/cmdline", "scx_lavd\0--performance\0")
    node.put("proc/321/status", f"Name:\tscx_lavd\nCapEff:\t{capabilities}\n")

    _, hold = look(node)

    assert (hold is not None and hold.reason == "foreign_scheduler") == is_foreign


@pytest.mark.parametrize(
    ("status", "is_foreign"),
    [
        ("Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n", True),
        ("Uid:\t970\t970\t970\t970\nGid:\t970\t970\t970\t970\n", True),  # User= of a unit
        ("Uid:\t65534\t0\t0\t0\nGid:\t65534\t65534\t65534\t65534\n", False),  # su waits
        ("Uid:\t0\t0\t0\t0\nGid:\t1000\t1000\t1000\t1000\n", False),  # sudo waits
    ],
)
def test_a_setuid_program_named_as_a_scheduler_holds_nothing_up(node, status, is_foreign):
    node.put("proc/321/comm", "scx_lavd\n")
    node.put("proc/321/cmdline", "scx_lavd\0--performance\0")
    node.put("proc/321/status", f"Name:\tscx_lavd\n{status}CapEff:\t000001ffffffffff\n")

    _, hold = look(node)

    assert (hold is not None and hold.reason == "foreign_scheduler") == is_foreign


@pytest.mark.parametrize(
    ("loaded", "own_maps", "is_foreign"),
    [((), (), False), ((7,), (), True), ((7,), (7,), False), ((7, 8), (7,), True)],
)
def test_a_scheduler_without_objects_in_the_kernel_holds_nothing_up(
    node, monkeypatch, loaded, own_maps, is_foreign
):
    monkeypatch.setattr(foreign_scheduler, "struct_ops_ids", lambda: frozenset(loaded))
    node.put("proc/321/comm", "scx_lavd\n")
    node.put("proc/321/cmdline", "scx_lavd\0--performance\0")
    for map_id in own_maps:
        node.put(f"proc/99/fdinfo/{map_id}", f"pos:\t0\nmap_type:\t26\nmap_id:\t{map_id}\n")

    check = foreign_scheduler.foreign_scheduler(node.roots, own_engine=99)

    assert (check.state is CheckState.FAILED) == is_foreign


NAMED_AS_SCHEDULER = """
import ctypes, os, sys, time
user, has_namespace = map(int, sys.argv[1:])
if user:
    os.setuid(user)
library = ctypes.CDLL(None, use_errno=True)
if has_namespace and library.unshare(0x10000000):  # CLONE_NEWUSER
    sys.exit(os.strerror(ctypes.get_errno()))
library.prctl(15, b"scx_anything")  # PR_SET_NAME
print("ready", flush=True)
time.sleep(600)
"""
ALL_USERS = "0 0 4294967295"


@contextmanager
def program_named(path, user=0, *, has_namespace=False):
    """Run a copy of this Python at *path*, whose first thread is named as a scheduler."""
    shutil.copy(Path(sys.executable).resolve(), path)
    command = [path, "-c", NAMED_AS_SCHEDULER, str(user), str(int(has_namespace))]
    environment = {**os.environ, "PYTHONHOME": sys.base_prefix}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def is_scheduler(process):
    return process.pid in [pid for pid, _ in foreign_scheduler.scheduler_processes(Roots(), None)]


needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="starting a process of another user needs root"
)


@needs_root
@pytest.mark.parametrize(("user", "is_foreign"), [(65_534, False), (0, True)])
def test_a_real_process_counts_by_its_rights(tmp_path, user, is_foreign):
    with program_named(tmp_path / "scx_any", user) as process:
        assert is_scheduler(process) == is_foreign


@needs_root
def test_a_program_that_only_calls_itself_a_scheduler_is_none(tmp_path):
    with program_named(tmp_path / "other") as process:
        assert not is_scheduler(process)


@needs_root
def test_a_link_to_a_program_of_root_is_no_scheduler(tmp_path):
    link = tmp_path / "scx_rusty"
    link.symlink_to(shutil.which("sleep"))

    with subprocess.Popen([link, "600"]) as process:
        comm, deadline = Path(f"/proc/{process.pid}/comm"), time.monotonic() + PATIENCE_S
        while comm.read_text() != "scx_rusty\n" and time.monotonic() < deadline:
            time.sleep(0.01)
        name, found = comm.read_text(), is_scheduler(process)
        process.kill()

    assert (name, found) == ("scx_rusty\n", False)


@needs_root
@pytest.mark.parametrize("users", [None, ALL_USERS])
def test_rights_in_a_user_namespace_of_its_own_do_not_count(tmp_path, users):
    with program_named(tmp_path / "scx_any", has_namespace=True) as process:
        proc = Path("/proc") / str(process.pid)
        if users:
            (proc / "uid_map").write_text(users)
        assert int((proc / "status").read_text().partition("CapEff:")[2].split()[0], 16) >> 21 & 1

        assert not is_scheduler(process)


def test_no_name_of_a_mount_is_one_of_resctrl(node):
    """Users may mount FUSE, and choose its name. The kernel escapes blanks in it, and no others."""
    node.put("evil/mon_data/x/y", "")
    node.put("proc/mounts", f"a\x1f{node.folder}/evil\x1fresctrl\x0b{node.folder} fuse rw 0 0\n")
    assert look(node)[0]["resctrl"].state == "ok"


def test_no_name_of_a_process_ends_the_check_for_schedulers(node):
    name = "scx_\x0bCapEff:z"
    status = f"Name:\t{name}\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nCapEff:\t0\n"
    (node.folder / "proc/900").mkdir(parents=True)
    (node.folder / "proc/900/comm").write_text(name, newline="")
    (node.folder / "proc/900/status").write_text(status, newline="")
    assert look(node)[0]["foreign_scheduler"].state == "ok"


def test_a_check_that_ends_by_an_error_has_failed(node, monkeypatch):
    def mounts(_roots, _kind):
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))

    monkeypatch.setattr(node_checks, "_mounts", mounts)
    check = look(node)[0]["resctrl"]
    assert (check.state, "File name too long" in check.detail) == ("failed", True)


def test_resctrl_must_be_readable_where_it_is_mounted(node):
    node.put("proc/mounts", f"resctrl {node.folder}/resctrl resctrl rw 0 0\n")
    monitor = node.put("resctrl/mon_data/mon_L3_00/mbm_total_bytes", "1\n")
    assert look(node)[0]["resctrl"].state == "ok"

    monitor.unlink()

    assert look(node)[0]["resctrl"].state == "failed"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting read-only needs root")
@pytest.mark.parametrize("name", ["scx", "run", "node"])
def test_a_read_only_runtime_directory_is_refused(node, tmp_path, name):
    folder = tmp_path / "readonly"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=4k", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("mounting is not permitted here")
    try:
        roots = attrs.evolve(node.roots, **{name: folder / name})
        checks = {one.name: one for one in run_preflight(roots, Settings(), find=find)}
    finally:
        subprocess.run(["umount", str(folder)], check=True)

    assert checks["runtime_directory"].state == "failed"


def test_the_agents_engine_is_known_by_its_pid_file_while_it_lives(node):
    node.put("run/engine.pid", "321 9876\n")
    assert own_engine(node.roots) is None

    node.put("proc/321/status", "Name:\tscx_layered\nState:\tS (sleeping)\n")
    node.put("proc/321/stat", stat_of(9876))
    assert own_engine(node.roots) == 321
    node.put("proc/321/status", "Name:\tscx_layered\nState:\tZ (zombie)\n")

    assert own_engine(node.roots) is None


@pytest.mark.parametrize("note", ["321\n", "321 9875\n", "321 \n", "-1 9876\n", "x 9876\n", ""])
def test_a_process_that_got_the_engines_id_later_is_not_the_agents_engine(node, note):
    node.put("proc/321/status", "Name:\tscx_layered\nState:\tS (sleeping)\n")
    node.put("proc/321/stat", stat_of(9876))

    node.put("run/engine.pid", note)

    assert own_engine(node.roots) is None


def test_a_scheduler_that_was_killed_and_cannot_go_yet_is_not_foreign(node):
    node.put("proc/321/comm", "scx_layered\n")
    node.put("proc/321/cmdline", "scx_layered\0f:/x\0")
    node.put("proc/321/status", "State:\tD (disk sleep)\nSigPnd:\t0000000000000000\n")
    assert look(node)[1].reason == "foreign_scheduler"

    node.put("proc/321/status", "State:\tD (disk sleep)\nSigPnd:\t0000000000000100\n")

    assert look(node)[1] is None


def test_the_real_machine_can_be_looked_at():
    checks = run_preflight(Roots(), Settings(), find=find)

    names = [check.name for check in checks]
    assert len(set(names)) == len(names)
    assert all(check.remedy for check in checks if check.state == "failed")
