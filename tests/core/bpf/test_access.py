import errno
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve

from temper_core.bpf.access import (
    AccessCode,
    BpfPrivileges,
    classify,
    explain_bpf_error,
    probe,
    read_circumstances,
)
from temper_core.bpf.skeleton import Skeleton
from temper_core.errors import BpfError

ANOTHER = Path(__file__).parent / "as_another.py"
ROOT = Path(__file__).parents[3]
SYS_ADMIN, PERFMON, BPF = 1 << 21, 1 << 38, 1 << 39
ALL_WELL = BpfPrivileges(
    capabilities=BPF | PERFMON,
    seccomp=0,
    is_host_user_namespace=True,
    has_btf=True,
    lockdown="none",
    kernel=(6, 18),
    machine="x86_64",
)
REFUSALS = (errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOENT, errno.E2BIG, errno.ESRCH)


@pytest.mark.parametrize(
    ("reason", "changes", "code"),
    [
        (errno.EPERM, {"capabilities": 0}, AccessCode.NO_CAP_BPF),
        (errno.EPERM, {"capabilities": PERFMON}, AccessCode.NO_CAP_BPF),
        (errno.EINVAL, {"capabilities": BPF}, AccessCode.NO_CAP_PERFMON),
        (errno.EPERM, {"capabilities": BPF}, AccessCode.NO_CAP_PERFMON),
        (errno.EPERM, {"seccomp": 2}, AccessCode.SECCOMP),
        (errno.ENOSYS, {"seccomp": 2}, AccessCode.SECCOMP),
        (errno.EPERM, {"seccomp": 2, "capabilities": 0}, AccessCode.NO_CAP_BPF),
        (errno.ENOSYS, {}, AccessCode.NO_SYSTEM_CALL),
        (errno.ENOSYS, {"capabilities": 0}, AccessCode.NO_SYSTEM_CALL),
        (errno.EPERM, {"is_host_user_namespace": False}, AccessCode.USER_NAMESPACE),
        (errno.EPERM, {"lockdown": "confidentiality"}, AccessCode.LOCKDOWN),
        (errno.EINVAL, {"lockdown": "confidentiality"}, AccessCode.LOCKDOWN),
        (errno.EPERM, {"lockdown": "integrity"}, AccessCode.REFUSED),
        (errno.EINVAL, {"has_btf": False}, AccessCode.NO_BTF),
        (errno.ENOENT, {"has_btf": False}, AccessCode.NO_BTF),
        (errno.ENOENT, {"kernel": (6, 1)}, AccessCode.KERNEL_TOO_OLD),
        (errno.ENOENT, {}, AccessCode.KERNEL_TOO_OLD),
        (errno.E2BIG, {"kernel": (5, 4)}, AccessCode.KERNEL_TOO_OLD),
        (errno.EINVAL, {"kernel": (5, 10)}, AccessCode.KERNEL_TOO_OLD),
        (errno.EINVAL, {}, AccessCode.REFUSED),
        (errno.EPERM, {}, AccessCode.REFUSED),
        (errno.EACCES, {"seccomp": 2}, AccessCode.REFUSED),
        (errno.ENOMEM, {"capabilities": 0}, AccessCode.REFUSED),
        (errno.EPERM, {"machine": "riscv64"}, AccessCode.MACHINE),
        (0, {"machine": "riscv64"}, AccessCode.MACHINE),
        (0, {}, AccessCode.DAMAGED),
    ],
)
def test_a_refusal_is_told_apart_by_what_else_is_known(reason, changes, code):
    assert classify(reason, evolve(ALL_WELL, **changes)) is code


@pytest.mark.parametrize("reason", REFUSALS)
def test_the_rights_of_an_administrator_count_as_both(reason):
    found = evolve(ALL_WELL, capabilities=SYS_ADMIN)

    assert classify(reason, found) is classify(reason, ALL_WELL)


@pytest.mark.parametrize("reason", REFUSALS)
def test_a_missing_capability_comes_before_all_else(reason):
    found = evolve(ALL_WELL, capabilities=0, seccomp=2, has_btf=False, lockdown="confidentiality")

    assert classify(reason, found) is AccessCode.NO_CAP_BPF


def test_the_circumstances_are_read_from_proc_and_sys(tmp_path):
    for path, text in {
        "self/status": "Name:\ttemper\nCapEff:\t000000c000000000\nSeccomp:\t2\n",
        "self/uid_map": "         0     100000      65536\n",
        "sys/kernel/osrelease": "6.1.0-18-amd64\n",
        "kernel/security/lockdown": "none integrity [confidentiality]\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    found = read_circumstances(proc_root=str(tmp_path), sys_root=str(tmp_path))

    assert found == BpfPrivileges(
        capabilities=BPF | PERFMON,
        seccomp=2,
        is_host_user_namespace=False,
        has_btf=False,
        lockdown="confidentiality",
        kernel=(6, 1),
        machine=platform.machine(),
    )


def test_what_cannot_be_read_does_not_count_as_an_obstacle(tmp_path):
    found = read_circumstances(proc_root=str(tmp_path), sys_root=str(tmp_path))

    assert found.is_host_user_namespace
    assert (found.seccomp, found.lockdown, found.kernel) == (0, "", (6, 7))


def test_the_probe_leaves_nothing_behind(bpf_allowed, descriptors):
    before = descriptors()

    access = probe()

    assert access == bpf_allowed
    assert descriptors() == before
    assert access.is_allowed
    assert (access.code, access.remedy) == ("allowed", "")


@pytest.mark.parametrize("code", [each for each in AccessCode if each is not AccessCode.ALLOWED])
def test_every_refusal_has_a_remedy_in_the_manual(code):
    manual = (ROOT / "docs" / "bpf.md").read_text()

    assert f"`{code}`" in manual


def test_a_refusal_of_any_object_can_be_explained(load):
    with pytest.raises(BpfError) as raised:
        load("unknown_function")

    access = explain_bpf_error(raised.value)

    assert access.code is AccessCode.KERNEL_TOO_OLD
    assert access.reason == (
        "this kernel lacks a part of BPF that is needed"
        " (cannot load the BPF object: No such file or directory)"
    )
    assert access.remedy.startswith("use Linux 6.7 or newer")


def test_the_verifiers_last_words_are_part_of_the_reason(load):
    with pytest.raises(BpfError) as raised:
        load("unknown_field")

    access = explain_bpf_error(raised.value)

    assert access.code is AccessCode.REFUSED
    assert access.reason.endswith(raised.value.log.splitlines()[-1] + ")")


def test_a_damaged_object_is_not_the_kernels_fault():
    with pytest.raises(BpfError) as raised:
        Skeleton.load(b"no object")

    assert explain_bpf_error(raised.value).code is AccessCode.DAMAGED


def answer(*command):
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]} here")
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or done.stderr


def as_user_with(*capabilities):
    wanted = ",".join(["-all", *(f"+{each}" for each in capabilities)])
    return answer(
        "setpriv",
        *("--reuid", "65534", "--clear-groups", "--no-new-privs", "--bounding-set", wanted),
        *("--inh-caps", wanted, "--ambient-caps", wanted, sys.executable, str(ANOTHER)),
    )


@pytest.fixture
def everybody_may_run_this(bpf_allowed):
    """Skip where another user cannot reach this Python or this checkout."""
    assert bpf_allowed
    tried = answer(
        *("setpriv", "--reuid", "65534", "--clear-groups", sys.executable),
        *("-c", f"import temper_core; print(open({str(ANOTHER)!r}).read(0) == '')"),
    )
    if tried != "True":
        pytest.skip("another user cannot read this checkout, or not run this Python")


@pytest.mark.usefixtures("everybody_may_run_this")
@pytest.mark.parametrize(
    ("capabilities", "code"),
    [
        ([], "no_cap_bpf"),
        (["perfmon"], "no_cap_bpf"),
        (["bpf"], "no_cap_perfmon"),
        (["bpf", "perfmon"], "allowed"),
        (["sys_admin"], "allowed"),
    ],
)
def test_the_probe_names_the_capability_that_a_real_user_lacks(capabilities, code):
    assert as_user_with(*capabilities) == code


@pytest.mark.usefixtures("bpf_allowed")
@pytest.mark.parametrize("error", [errno.EPERM, errno.ENOSYS])
def test_the_probe_sees_a_real_seccomp_filter_behind_the_refusal(error):
    assert answer(sys.executable, str(ANOTHER), "filtered", str(error)) == "seccomp"


@pytest.mark.usefixtures("bpf_allowed")
def test_the_probe_sees_that_its_capabilities_end_with_its_user_namespace():
    said = answer("unshare", "--user", "--map-root-user", sys.executable, str(ANOTHER))
    if said.startswith("unshare:"):
        pytest.skip(f"no user namespaces here: {said}")

    assert said == "user_namespace"
