"""Which tier is opened, and what is said of those that are not."""

import errno
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from temper_core.bpf.access import probe
from temper_core.errors import BpfError, MachineError
from temper_core.observe.threads import ProcThreads
from temper_core.observe.tiers import first_that_works, open_reader

ANOTHER = Path(__file__).parent / "as_another.py"
ROOT = Path(__file__).parents[4]
ALL_CAPABILITIES = "CapEff:\t000001ffffffffff\nSeccomp:\t0\n"


@pytest.fixture(scope="session", autouse=True)
def bpf_allowed():
    access = probe()
    if not access.is_allowed:
        pytest.skip(access.reason)


def as_another(*arguments, prefix=()):
    if prefix and shutil.which(prefix[0]) is None:
        pytest.skip(f"there is no {prefix[0]} here")
    ran = subprocess.run(
        [*prefix, sys.executable, ANOTHER, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


@pytest.mark.parametrize("tier", ["bpf", "bpf-iter", "proc"])
def test_the_tier_that_is_asked_for_is_opened(tier):
    opened = open_reader(tier)

    rows = opened.reader.snapshot(0)
    opened.reader.close()

    assert (opened.reader.tier, opened.reason) == (tier, "")
    assert rows.threads_seen > 1


def test_the_best_tier_is_opened_without_a_reason():
    opened = open_reader()
    opened.reader.close()

    assert (opened.reader.tier, opened.reason) == ("bpf", "")


@pytest.mark.parametrize(
    ("without", "lacks"),
    [("-bpf,-sys_admin", "lacks CAP_BPF"), ("-perfmon,-sys_admin", "lacks CAP_PERFMON")],
)
def test_without_a_capability_proc_is_read_and_the_capability_named(without, lacks):
    tier, reason, sees = as_another("auto", prefix=("setpriv", f"--bounding-set={without}"))

    assert (tier, sees) == ("proc", "True")
    assert reason.startswith("bpf and bpf-iter: this process ")
    assert lacks in reason


@pytest.mark.parametrize("answer", [errno.EPERM, errno.ENOSYS])
def test_behind_a_seccomp_filter_proc_is_read_and_the_filter_named(answer):
    tier, reason, sees = as_another("auto", str(answer))

    assert (tier, sees) == ("proc", "True")
    assert reason.startswith("bpf and bpf-iter: a seccomp filter keeps bpf(2) from this process")


@pytest.mark.parametrize("tier", ["bpf", "bpf-iter"])
def test_a_tier_that_is_asked_for_and_cannot_work_is_an_error_of_one_line(tier):
    refused, line = as_another(tier, prefix=("setpriv", "--bounding-set=-bpf,-sys_admin"))

    assert refused == "refused"
    assert line.startswith(f"observe.tier '{tier}' cannot be used here: this process lacks CAP_BPF")
    assert line.endswith("run it as root, or give it the capabilities BPF and PERFMON")


@pytest.fixture
def machine(tmp_path):
    """Make a /proc and a /sys that tell of a kernel of some release, with or without BTF."""

    def make(release="6.18.0", *, has_btf=True):
        for path, text in (("status", ALL_CAPABILITIES), ("uid_map", "0 0 4294967295")):
            (tmp_path / "proc/self").mkdir(parents=True, exist_ok=True)
            (tmp_path / "proc/self" / path).write_text(text)
        (tmp_path / "proc/sys/kernel").mkdir(parents=True)
        (tmp_path / "proc/sys/kernel/osrelease").write_text(release)
        (tmp_path / "sys/kernel/btf").mkdir(parents=True)
        if has_btf:
            (tmp_path / "sys/kernel/btf/vmlinux").touch()
        return {"proc_root": str(tmp_path / "proc"), "sys_root": str(tmp_path / "sys")}

    return make


def refusing(reason, log=""):
    def opener():
        raise BpfError("cannot load the BPF object", reason, log)

    return opener


def test_on_an_old_kernel_the_iterator_is_used_and_the_kernel_named(machine):
    openers = {"bpf": refusing(errno.ENOENT), "bpf-iter": ProcThreads}

    opened = first_that_works("auto", openers, **machine("6.1.0"))

    assert isinstance(opened.reader, ProcThreads)
    assert opened.reason.startswith("bpf: this kernel lacks a part of BPF that is needed")
    assert "6.7" in opened.reason


def test_without_btf_that_is_what_is_said(machine):
    openers = {
        "bpf": refusing(errno.EINVAL),
        "bpf-iter": refusing(errno.EINVAL),
        "proc": ProcThreads,
    }

    opened = first_that_works("auto", openers, **machine(has_btf=False))

    assert opened.reason.startswith("bpf and bpf-iter: the kernel has no type information")


def test_two_tiers_with_two_reasons_both_have_their_say(machine):
    openers = {
        "bpf": refusing(errno.ENOENT),
        "bpf-iter": refusing(errno.EACCES, "r1 !"),
        "proc": ProcThreads,
    }

    opened = first_that_works("auto", openers, **machine())

    assert "bpf: this kernel lacks" in opened.reason
    assert "bpf-iter: the kernel refused the BPF object" in opened.reason


def test_where_nothing_works_every_reason_is_told(machine):
    openers = {"bpf": refusing(errno.ENOENT), "bpf-iter": refusing(errno.EINVAL)}

    with pytest.raises(MachineError, match=r"observe\.tier 'auto' cannot be used here") as caught:
        first_that_works("auto", openers, **machine(has_btf=False))

    assert caught.value.exit_code == 3
