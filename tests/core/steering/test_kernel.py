"""The hooks, in the running kernel: what tests read here was given at birth, by no walk."""

import subprocess
from pathlib import Path

from temper_core.records.steering import NO_HINT
from temper_core.steering.kernel import KernelRule, Policy
from tests.core.steering.processes import DEFAULT, STAYS, hints_of, named, number, threads_of


def test_a_fork_is_followed_before_any_walk(kernel, spawn, look):
    kernel.set_table({}, (), 77)

    child = spawn("/bin/sh", "-c", "read line", stdin=subprocess.PIPE)

    assert look(child.pid).hint == 77


def test_a_new_process_has_the_hint_of_its_cgroup(kernel, make_cgroup, spawn, look):
    pod = make_cgroup()
    kernel.set_table({number(pod): Policy((), 40)}, (), DEFAULT)

    found = look(named(spawn(*STAYS, cgroup=pod)))

    assert (found.hint, found.expected, found.cgroup_id) == (40, 40, number(pod))


def test_a_thread_that_names_itself_gets_its_prefixs_hint(kernel, thread, rename, look):
    kernel.set_table({}, (KernelRule(50, comm="vip-"),), DEFAULT)

    rename(thread, "vip-7")

    assert (look(thread).hint, look(thread).comm) == (50, "vip-7")


def test_a_thread_that_takes_another_name_goes_where_that_belongs(kernel, thread, rename, look):
    kernel.set_table({}, (KernelRule(50, comm="vip-"),), DEFAULT)
    rename(thread, "vip-7")

    rename(thread, "v")

    assert look(thread).hint == DEFAULT


def test_an_exec_is_a_rename(kernel, spawn, look):
    kernel.set_table({}, (KernelRule(51, comm="sleep"),), DEFAULT)

    pid = named(spawn("/bin/sh", "-c", "exec sleep 600"))

    assert look(pid).hint == 51


def test_a_process_that_is_renamed_takes_its_threads_along(kernel, sleepers):
    kernel.set_table({}, (KernelRule(60, process="java"),), DEFAULT)
    process = sleepers("python", "a", "b")

    process.stdin.write("java\n")
    process.stdin.flush()
    process.stdout.readline()

    assert hints_of(kernel, process) == {"java": 60, "a": 60, "b": 60}


def test_a_thread_that_is_renamed_takes_nobody_along(kernel, thread, rename, look):
    name = Path("/proc/self/comm").read_text().strip()
    kernel.set_table({}, (KernelRule(60, process="vip"), KernelRule(61, process=name)), DEFAULT)

    rename(thread, "vip")

    assert look(thread).hint == 61


def test_moving_a_process_moves_all_its_threads(kernel, make_cgroup, sleepers):
    pod, other = make_cgroup("a"), make_cgroup("b")
    process = sleepers("two", "one", "three", cgroup=pod)
    rules = (KernelRule(42, comm="one"),)
    kernel.set_table({number(pod): Policy((), 40), number(other): Policy(rules, 41)}, (), DEFAULT)

    (other / "cgroup.procs").write_text(str(process.pid))

    assert hints_of(kernel, process) == {"two": 41, "one": 42, "three": 41}


def test_moving_one_thread_moves_no_other(kernel, make_cgroup, sleepers):
    make_cgroup("t")
    inside, other = make_cgroup("t/a"), make_cgroup("t/b")
    for folder in (inside, other):
        (folder / "cgroup.type").write_text("threaded")
    process = sleepers("two", "one", cgroup=inside.parent)
    kernel.set_table({number(other): Policy((), 41)}, (), DEFAULT)
    kernel.walk()

    (other / "cgroup.threads").write_text(str(threads_of(kernel, process)["one"].tid))

    assert hints_of(kernel, process) == {"two": DEFAULT, "one": 41}


def test_the_hooks_count_what_they_see(kernel, make_cgroup, spawn):
    before = kernel.counted

    pod = make_cgroup("new")
    named(spawn(*STAYS, cgroup=pod))

    after = kernel.counted
    assert after.forks > before.forks
    assert after.renames > before.renames
    assert after.moves > before.moves
    assert after.births > before.births
    assert after.failed == 0


def test_hints_that_the_hooks_change_are_counted(kernel, thread, rename):
    kernel.set_table({}, (KernelRule(50, comm="vip"),), NO_HINT)
    before = kernel.counted.written

    rename(thread, "vip-1")
    rename(thread, "vip-2")

    assert kernel.counted.written == before + 1


def test_cgroups_that_come_and_go_are_noticed(kernel, make_cgroup):
    before = kernel.cgroup_events

    made = make_cgroup("short")
    between = kernel.cgroup_events
    made.rmdir()

    assert before < between < kernel.cgroup_events


def test_hints_of_new_threads_are_those_of_the_table_in_force(kernel, spawn, look):
    hints = []
    for hint in (30, 31):
        kernel.set_table({}, (), hint)
        hints.append(look(named(spawn(*STAYS))).hint)

    assert hints == [30, 31]
