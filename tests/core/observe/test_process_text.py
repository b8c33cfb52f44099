import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.observe.process_text import (
    LONGEST_PATH,
    NS_PER_TICK,
    SchedStat,
    engine_path,
    parse_cgroup,
    parse_schedstat,
    parse_stat,
)

REAL = Path("/proc/self/stat").read_bytes()
AFTER_NAME = REAL[REAL.rindex(b")") :]


def test_a_real_stat_line_says_what_the_other_files_say():
    line = parse_stat(Path("/proc/self/stat").read_bytes())

    assert line.comm == Path("/proc/self/comm").read_text().removesuffix("\n")
    assert not line.is_kthread
    assert line.cpu in os.sched_getaffinity(0)
    times = os.times()
    assert line.cpu_ticks * NS_PER_TICK <= (times.user + times.system) * 1e9 + 2 * NS_PER_TICK


@settings(max_examples=60)
@given(st.text(max_size=15))
def test_any_name_is_read_whole_whatever_is_in_it(name):
    content = b"17 (" + name.encode("utf-8", "replace") + AFTER_NAME

    line = parse_stat(content)

    assert line.comm == name.encode("utf-8", "replace").decode()
    assert line.start_ticks == parse_stat(REAL).start_ticks


@pytest.mark.parametrize(
    "name", [b") R 1 1", b"a b", b"((", b"))", b"x\ny", b"", b") (S", b"(sd-pam)"]
)
def test_parentheses_blanks_and_newlines_do_not_shift_the_fields(name):
    line = parse_stat(b"17 (" + name + AFTER_NAME)

    assert line == parse_stat(REAL)._replace(comm=name.decode(), cpu_ticks=line.cpu_ticks)


def test_a_name_that_is_cut_inside_a_letter_is_shown_with_a_mark():
    line = parse_stat(b"17 (caf\xc3" + AFTER_NAME)

    assert line.comm == "caf\N{REPLACEMENT CHARACTER}"
    line.comm.encode("utf-8")


@settings(max_examples=60)
@given(st.binary(max_size=80) | st.integers(0, len(REAL)).map(lambda end: REAL[:end]))
def test_a_stat_line_is_read_or_refused_with_a_value_error(content):
    try:
        line = parse_stat(content)
    except ValueError:
        return

    assert line.cpu >= 0


@pytest.mark.parametrize(
    ("shown", "name"),
    [
        ("kworker/0:1-events", "kworker/0:1"),
        ("kworker/u16:3+flush-254:0", "kworker/u16:3"),
        ("kworker/1:0H-kblockd", "kworker/1:0H"),
        ("kworker/R-rcu_gp", "kworker/R-rcu_g"),
        ("ksoftirqd/0", "ksoftirqd/0"),
    ],
)
def test_what_a_kworker_works_on_is_no_part_of_its_name(fake_proc, shown, name):
    line = parse_stat(fake_proc.stat_line(5, shown, 1, 0, flags=0x200000))

    assert line.is_kthread
    assert line.comm == name


def test_a_process_of_people_may_call_itself_kworker(fake_proc):
    line = parse_stat(fake_proc.stat_line(5, "kworker/0:1-x", 1, 0))

    assert line.comm == "kworker/0:1-x"


@settings(max_examples=30)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_schedstat_gives_run_time_and_wait(run, delay, slices):
    assert parse_schedstat(b"%d %d %d\n" % (run, delay, slices)) == SchedStat(run, delay)


@pytest.mark.parametrize("content", [b"", b"1 2", b"1 2 3 4", b"a b c", b"\0\0"])
def test_a_schedstat_of_another_form_is_refused(content):
    with pytest.raises(ValueError):  # noqa: PT011 - int() and unpacking word it differently
        parse_schedstat(content)


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (b"0::/kubepods.slice/pod1.slice\n", "kubepods.slice/pod1.slice/"),
        (b"0::/\n", "/"),
        (b"0::/a (deleted)\n", "a/"),
        (b"0::/a:b/c\n", "a:b/c/"),
        (b"3:cpu,cpuacct:/docker/1\n0::/\n", "docker/1/"),
        (b"3:cpuset:/x\n2:cpuacct,cpu:/y\n0::/\n", "y/"),
        (b"3:cpu:/y\n2:name=systemd:/z\n0::/\n", "z/"),
        (b"3:cpu,cpuacct:/docker/1\n0::/system.slice\n", "system.slice/"),
        (b"3:cpu:/\n1:name=systemd:/user.slice\n0::/\n", "user.slice/"),
        (b"4:cpu:/only/v1\n", "only/v1/"),
        (b"3:cpuset:/x\n", "x/"),
        (b"3:cpu:/\n2:memory:/\n0::/\n", "/"),
        (b"3:freezer:/x\n", "/"),
        (b"", ""),
        (b"nonsense\n::\n0:\n", ""),
    ],
)
def test_a_cgroup_is_the_unified_one_or_what_v1_tells(content, path):
    assert parse_cgroup(content) == path


OWN = "kubepods.slice/kubepods-burstable.slice/kubepods-pod1.slice/cri-1.scope"


@pytest.mark.parametrize(
    ("shown", "path"),
    [
        ("/", f"{OWN}/"),
        ("/child", f"{OWN}/child/"),
        (
            "/../../kubepods-pod2.slice/cri-2.scope",
            "kubepods.slice/kubepods-burstable.slice/kubepods-pod2.slice/cri-2.scope/",
        ),
        ("/../../../kubepods-besteffort.slice/x", "kubepods.slice/kubepods-besteffort.slice/x/"),
        ("/../../../../system.slice/ssh.service", "system.slice/ssh.service/"),
        ("/../../../..", "/"),
        ("/../../../../../..", "/"),
    ],
)
def test_a_path_from_a_cgroup_namespace_is_that_of_the_host(shown, path):
    assert parse_cgroup(f"0::{shown}\n".encode(), OWN) == path


@settings(max_examples=60)
@given(st.binary(max_size=60))
def test_no_content_of_a_cgroup_file_is_too_odd(content):
    path = parse_cgroup(content)

    assert path == "" or path.endswith("/")


@settings(max_examples=60)
@given(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=30))
def test_the_engines_spelling_is_its_own_fixed_point(path):
    spelt = engine_path(path)

    assert spelt == "/" or (spelt.endswith("/") and not spelt.startswith("/"))
    assert " (deleted)" in path or engine_path(spelt) == spelt


def test_in_place_of_a_path_that_is_too_long_it_is_the_nearest_one_above():
    above = "/".join(["user.slice", "\U0001f600" * 250, "x" * 250])

    assert len(above) == LONGEST_PATH
    assert engine_path(f"/{above}") == f"{above}/"
    assert engine_path(f"/{above}/y") == f"{above}/"
    assert engine_path(f"/{above}y") == f"{above.rpartition('/')[0]}/"
