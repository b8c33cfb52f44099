import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.observe.cgroup_limits import (
    NO_LIMITS,
    ROUND_S,
    LimitsReader,
    Quota,
    parse_cpus,
    parse_quota,
)
from temper_core.observe.cgroup_roots import CgroupRoots

POD = "kubepods/pod1/"


def write(root, path=POD, **files):
    folder = root / path
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)


def limits_of(roots, cpus=4):
    reader = LimitsReader(roots, lambda: cpus)
    reader.follow([POD])
    return reader.of(POD)


def test_quota_weight_and_cpus_are_those_of_the_files(tmp_path):
    write(tmp_path, cpu__max="150000 100000\n", cpu__weight="250\n")
    write(tmp_path, cpuset__cpus__effective="0-1\n")

    limits = limits_of(CgroupRoots(str(tmp_path)))

    assert (limits.quota, limits.quota_cores) == (Quota(150_000, 100_000), 1.5)
    assert (limits.weight, limits.cpuset) == (250, (0, 1))


def test_what_is_the_kernels_default_is_not_asked_for(tmp_path):
    write(tmp_path, cpu__max="max 100000\n", cpu__weight="100\n")
    write(tmp_path, cpuset__cpus__effective="0-3\n")

    assert limits_of(CgroupRoots(str(tmp_path))) == NO_LIMITS


def test_the_v1_controllers_of_a_hybrid_host_say_the_same(tmp_path):
    names = ("v2", "cpu", "cpuacct", "memory", "cpuset")
    roots = CgroupRoots(*(str(tmp_path / name) for name in names))
    quota = {"cpu__cfs_quota_us": "50000\n", "cpu__cfs_period_us": "100000\n"}
    write(tmp_path / "cpu", cpu__shares="2048\n", **quota)
    write(tmp_path / "cpuset", cpuset__effective_cpus="2,3\n")

    limits = limits_of(roots)

    assert (limits.quota_cores, limits.weight, limits.cpuset) == (0.5, 200, (2, 3))


def test_no_quota_on_v1_is_none(tmp_path):
    quota = {"cpu__cfs_quota_us": "-1\n", "cpu__cfs_period_us": "100000\n"}
    write(tmp_path, cpu__shares="1024\n", **quota)

    assert limits_of(CgroupRoots("", cpu=str(tmp_path))) == NO_LIMITS


def test_the_quotas_of_containers_are_found_below_their_pod(tmp_path):
    write(tmp_path, cpu__max="max 100000\n")
    write(tmp_path, f"{POD}free", cpu__max="max 100000\n")
    write(tmp_path, f"{POD}tight", cpu__max="20000 100000\n")

    limits = limits_of(CgroupRoots(str(tmp_path)))

    assert limits.quotas_below == ((f"{POD}tight/", Quota(20_000, 100_000)),)
    assert limits.quota is None


def test_every_cgroup_is_read_again_within_one_round(tmp_path):
    paths = [f"pod{n}/" for n in range(5)]
    reader = LimitsReader(CgroupRoots(str(tmp_path)), lambda: 4)
    reader.follow(paths)
    for path in paths:
        write(tmp_path, path, cpu__weight="50\n")

    reader.look(ROUND_S / 5)
    early = [reader.of(path).weight for path in paths]
    for _ in range(4):
        reader.look(ROUND_S / 5)

    assert early.count(50) == 1
    assert [reader.of(path).weight for path in paths] == [50] * 5


def test_one_that_is_followed_anew_is_read_at_once_and_the_others_wait(tmp_path):
    reader = LimitsReader(CgroupRoots(str(tmp_path)), lambda: 4)
    reader.follow([POD])
    write(tmp_path, cpu__weight="50\n")
    write(tmp_path, "other/", cpu__weight="70\n")

    reader.follow([POD, "other/"])

    assert (reader.of(POD).weight, reader.of("other/").weight) == (None, 70)
    reader.follow([])
    assert reader.of("other/") == NO_LIMITS


def test_a_real_cgroups_quota_and_shares_are_what_was_written():
    root = Path("/sys/fs/cgroup/cpu")
    if not os.access(root / "cgroup.procs", os.W_OK):
        pytest.skip("no writable CPU controller of cgroup v1 here")
    folder = root / f"temper-limits-{os.getpid()}"
    folder.mkdir()
    (folder / "cpu.cfs_quota_us").write_text("25000")
    (folder / "cpu.shares").write_text("512")
    reader = LimitsReader(CgroupRoots("", cpu=str(root)), os.cpu_count)

    reader.follow([f"{folder.name}/"])

    folder.rmdir()
    limits = reader.of(f"{folder.name}/")
    assert (limits.quota_cores, limits.weight) == (0.25, 50)


@settings(max_examples=60)
@given(st.binary(max_size=30) | st.from_regex(rb"[0-9]{1,6} [0-9]{1,6}\n?", fullmatch=True))
def test_any_bytes_are_a_quota_or_refused_with_a_value_error(content):
    try:
        quota = parse_quota(content)
    except ValueError:
        return

    assert quota is None or quota.cores >= 0


@settings(max_examples=60)
@given(st.sets(st.integers(0, 8191), max_size=20))
def test_a_list_of_cpus_is_read_back(cpus):
    text = ",".join(str(cpu) for cpu in cpus)

    assert parse_cpus(text.encode() + b"\n") == tuple(sorted(cpus))


@settings(max_examples=60)
@given(st.binary(max_size=20))
def test_any_bytes_are_a_list_of_cpus_or_refused_with_a_value_error(content):
    try:
        cpus = parse_cpus(content)
    except ValueError:
        return

    assert all(0 <= cpu < 8192 for cpu in cpus)


@pytest.mark.parametrize("content", [b"3-1", b"a", b"1-", b"9999", b"1 2", b"0-8192"])
def test_what_is_no_list_of_cpus_is_refused(content):
    with pytest.raises(ValueError, match="CPUs"):
        parse_cpus(content)


def test_ranges_are_spelt_out():
    assert parse_cpus(b"0-2,5,7-8\n") == (0, 1, 2, 5, 7, 8)
