import os

from bench.ladder.report import report
from bench.ladder.serving import caller, served, serving_threads


def make_thread(task, tid, comm, schedstat, migrations=None):
    thread = task / str(tid)
    thread.mkdir(parents=True, exist_ok=True)
    (thread / "comm").write_text(f"{comm}\n")
    (thread / "schedstat").write_text(schedstat)
    if migrations is not None:
        (thread / "sched").write_text(f"se.nr_migrations    :     {migrations}\n")


def make_process(proc, pid, title, children=""):
    main = proc / str(pid) / "task" / str(pid)
    main.mkdir(parents=True, exist_ok=True)
    (main / "children").write_text(children)
    (proc / str(pid) / "cmdline").write_bytes(title)


def test_only_threads_that_serve_are_counted(tmp_path):
    task = tmp_path / "7/task"
    make_thread(task, 7, "server", "100 20 3\n", migrations=4)
    make_thread(task, 8, "helper", "900 90 9\n")

    make_process(tmp_path, 7, b"server")

    counts = serving_threads(7, lambda task: task.leads, tmp_path)

    assert counts == {7: {"run_ns": 100, "delay_ns": 20, "migrations": 4}}


def test_migrations_are_unknown_without_the_kernels_count(tmp_path):
    make_thread(tmp_path / "7/task", 7, "server", "100 20 3\n")

    make_process(tmp_path, 7, b"server")

    counts = serving_threads(7, lambda _: True, tmp_path)

    assert counts[7]["migrations"] == -1


def test_children_that_serve_are_told_by_their_title(tmp_path):
    for pid in (7, 8, 9):
        make_thread(tmp_path / f"{pid}/task", pid, "server", f"{pid} 2 3\n")
    make_process(tmp_path, 7, b"server", children="8 9 10 ")  # 10 has ended
    make_process(tmp_path, 8, b"server:\0for a client")
    make_process(tmp_path, 9, b"server: cleaner")

    counts = serving_threads(7, lambda task: task.is_child and "client" in task.title, tmp_path)

    assert {tid: each["run_ns"] for tid, each in counts.items()} == {8: 8}


def test_what_threads_did_is_a_difference_of_those_that_stayed():
    before = {
        7: {"run_ns": 100, "delay_ns": 20, "migrations": 4},
        8: {"run_ns": 1, "delay_ns": 1, "migrations": -1},
        9: {"run_ns": 1, "delay_ns": 1, "migrations": 0},
    }
    after = {
        7: {"run_ns": 150, "delay_ns": 25, "migrations": 6},
        8: {"run_ns": 3, "delay_ns": 1, "migrations": -1},
    }

    seven, eight = served(before, after)

    assert (seven["run_ns"], seven["delay_ns"], seven["migrations"]) == (50, 5, 2)
    assert eight["migrations"] == -1


def test_the_client_is_real_time_and_on_the_last_cpu():
    line = caller(["client"])

    assert line == ["taskset", "-c", str((os.cpu_count() or 1) - 1), "chrt", "-f", "1", "client"]


def test_what_a_server_cannot_tell_is_no_figure(make_record):
    unknown = {"unanswered": None, "client_late_ms": None, "wait_ms": {}, "load": "redis"}
    records = [make_record(arm, **unknown) for arm in ("stock", "tiers")]
    for each in records:
        del each["threads"]["client"]

    assert "| 8 | tiers | 1 | 2.00 | 8.00 | 12.00 | - | - |" in report(records)
