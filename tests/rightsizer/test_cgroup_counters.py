"""The files of a container's cgroup: where they are looked for, and how often."""

import os

import pytest

from temper_plugin_rightsizer.node.cgroup_counters import STALLS, CgroupFiles

OF_V2 = {
    "cpu.stat": "usage_usec 9\nnr_periods 8\nnr_throttled 2\nthrottled_usec 7000\n",
    "memory.stat": "anon 5\ninactive_file 100\nworkingset_refault_file 3\n",
    "memory.events": "low 0\nhigh 4\nmax 6\noom 1\noom_kill 2\noom_group_kill 9\n",
    "memory.current": "1100\n",
}
OF_V1 = {
    "cpu": {"cpu.stat": "nr_periods 8\nnr_throttled 2\nthrottled_time 7000000\n"},
    "memory": {
        "memory.stat": "cache 5\ninactive_file 1\ntotal_cache 9\ntotal_inactive_file 100\n",
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        "memory.usage_in_bytes": "1100\n",
        "memory.failcnt": "6\n",
    },
}
PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\nfull avg10=0.00 total=3\n"


def put(folder, files):
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(content)


def put_v2(root, path):
    put(root / path, OF_V2 | {f"{each}.pressure": PRESSURE for each in STALLS})


def put_v1(root, path):
    for controller, files in OF_V1.items():
        put(root / controller / path, files)
    put(root / "unified" / path, {f"{each}.pressure": PRESSURE for each in STALLS})


def counted(counters):
    return (
        counters.working_set_bytes,
        *(counters.periods, counters.throttled_periods, counters.throttled_us),
        *(counters.max, counters.oom_kill, counters.stalled_us["memory", "full"]),
    )


@pytest.mark.parametrize("layout", [put_v2, put_v1])
def test_both_hierarchies_have_the_same_counters(tmp_path, layout):
    layout(tmp_path, "x")

    assert counted(CgroupFiles(tmp_path).read("x")) == (1000, 8, 2, 7000, 6, 2, 3)


def test_only_v2_tells_how_often_memory_was_reclaimed_and_oom_was_near(tmp_path):
    put_v2(tmp_path, "x")
    counters = CgroupFiles(tmp_path).read("x")

    assert (counters.high, counters.oom) == (4, 1)


@pytest.mark.parametrize(("first", "second"), [(put_v1, put_v2), (put_v2, put_v1)])
def test_a_cgroup_in_the_other_hierarchy_is_found_after_all(tmp_path, first, second):
    first(tmp_path, "x")
    second(tmp_path, "y")
    files = CgroupFiles(tmp_path)
    seen = [counted(files.read(path)) for path in ("x", "y", "x")]

    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize(("layout", "opens"), [(put_v2, 7), (put_v1, 8)])
def test_each_file_is_opened_once_where_it_was_found_before(tmp_path, monkeypatch, layout, opens):
    for path in ("x", "y"):
        layout(tmp_path, path)
    files = CgroupFiles(tmp_path)
    files.read("x")
    opened = []
    real = os.open

    def counting(path, *rest):
        opened.append(path)
        return real(path, *rest)

    monkeypatch.setattr(os, "open", counting)
    files.read("y")

    assert len(opened) == opens


def test_a_cgroup_that_is_gone_has_no_counters(tmp_path):
    put_v2(tmp_path, "x")
    files = CgroupFiles(tmp_path)
    files.read("x")

    gone = files.read("gone")

    assert (gone.working_set_bytes, gone.periods, gone.stalled_us) == (-1, 0, {})
    assert files.first_process("gone") is None
