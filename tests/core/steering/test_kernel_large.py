"""Processes with more threads than a hook takes along; the next walk does the rest."""

from collections import Counter

from temper_core.steering.kernel import KernelRule, Policy
from tests.core.steering.processes import DEFAULT, hints_of, number, threads_of

AT_ONCE = 256
THREADS = tuple(f"t{place}" for place in range(400))
ALL = len(THREADS) + 1


def renamed(process, name):
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "renamed\n"


def counts(kernel, process):
    return Counter(hints_of(kernel, process).values())


def test_a_large_process_that_is_renamed_is_right_after_one_walk(kernel, sleepers):
    kernel.set_table({}, (KernelRule(60, process="java"),), DEFAULT)
    process = sleepers("python", *THREADS)
    kernel.walk()
    before = kernel.counted.postponed

    renamed(process, "java")
    at_once, postponed = counts(kernel, process), kernel.counted.postponed - before
    walked = kernel.walk()

    assert at_once == {60: AT_ONCE, DEFAULT: ALL - AT_ONCE}
    assert postponed == ALL - AT_ONCE
    assert counts(kernel, process) == {60: ALL}
    assert (walked.written, walked.corrected) == (ALL - AT_ONCE, 0)


def test_a_large_process_that_is_moved_is_right_after_one_walk(kernel, make_cgroup, sleepers):
    pod, other = make_cgroup("a"), make_cgroup("b")
    kernel.set_table({number(pod): Policy((), 40), number(other): Policy((), 41)}, (), DEFAULT)
    process = sleepers("python", *THREADS, cgroup=pod)
    kernel.walk()
    before = kernel.counted.postponed

    (other / "cgroup.procs").write_text(str(process.pid))
    at_once, postponed = counts(kernel, process), kernel.counted.postponed - before
    walked = kernel.walk()

    assert at_once == {41: AT_ONCE, 40: ALL - AT_ONCE}
    assert postponed == ALL - AT_ONCE
    assert counts(kernel, process) == {41: ALL}
    assert (walked.written, walked.corrected) == (ALL - AT_ONCE, 0)


def test_after_a_walk_has_done_the_rest_changes_of_others_are_counted_again(
    kernel, sleepers, poison
):
    kernel.set_table({}, (KernelRule(60, process="java"),), DEFAULT)
    process = sleepers("python", *THREADS)
    renamed(process, "java")
    kernel.walk()
    poison(process.pid, 7)

    walked = kernel.walk()

    assert (walked.written, walked.corrected) == (1, 1)


def test_who_does_not_go_by_its_process_is_left_alone_when_that_is_renamed(kernel, sleepers):
    kernel.set_table({}, (KernelRule(60, comm="java"),), DEFAULT)
    process = sleepers("python", *THREADS)
    before = kernel.counted.postponed

    renamed(process, "java")

    assert hints_of(kernel, process)["java"] == 60
    assert kernel.counted.postponed == before


def test_threads_in_a_cgroup_of_their_own_follow_a_leader_whose_cgroup_knows_no_processes(
    kernel, make_cgroup, sleepers
):
    make_cgroup("t")
    inside, other = make_cgroup("t/a"), make_cgroup("t/b")
    for folder in (inside, other):
        (folder / "cgroup.type").write_text("threaded")
    rules = (KernelRule(60, process="java"),)
    kernel.set_table({number(other): Policy(rules, 41)}, (), DEFAULT)
    above, beside = (sleepers("py", "one", cgroup=folder) for folder in (inside.parent, inside))
    for process in (above, beside):
        (other / "cgroup.threads").write_text(str(threads_of(kernel, process)["one"].tid))

    renamed(above, "java")
    renamed(beside, "java")

    assert hints_of(kernel, above) == {"java": DEFAULT, "one": 60}
    assert hints_of(kernel, beside) == {"java": DEFAULT, "one": 60}
