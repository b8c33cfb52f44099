"""Every way an engine ends, from texts recorded on a real kernel."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.scheduler.failure.diagnosis import (
    Diagnosis,
    End,
    EndKind,
    diagnose,
    ejection,
)
from temper_core.scheduler.failure.stalls import realtime_threads
from tests.patience import PATIENCE_S

OPS = "layered_1.1.4_x86_64_unknown_linux_gnu"
STALL_DUMP = """
DEBUG DUMP
================================================================================

kworker/u16:2[40] triggered exit kind 1026:
  runnable task stall (taskset[248] failed to run for 5.508s)

CPU states
----------

CPU 0   : nr_run=1 flags=0x0 cpu_rel=0 ops_qseq=12 pnt_seq=40
          curr=init[1] class=ext_sched_class

  R kworker/0:1[12] -20ms
      scx_state/flags=3/0x9 dsq_flags=0x0 ops_state/qseq=0/0

CPU 3   : nr_run=2 flags=0x0 cpu_rel=0 ops_qseq=12 pnt_seq=40
          curr=hog[240] class=rt_sched_class

  R taskset[248] -5508ms
      scx_state/flags=3/0x9 dsq_flags=0x1 ops_state/qseq=0/0

================================================================================

Error: EXIT: runnable task stall (taskset[248] failed to run for 5.508s)
"""
CONFIG = 'Error: Failed to parse specs[0] ("f:/run/temper/engine-1.json")\n\nCaused by:\n    '

ENDS = [
    (1, f"{CONFIG}unknown variant `Foo`, expected one of `CgroupPrefix`", "config"),
    (1, f"{CONFIG}invalid type: map, expected a sequence at line 1 column 0", "config"),
    (1, "Error: Too many layer specs\n", "config"),
    (1, 'Error: Terminal spec "a" must have an empty match\n', "config"),
    (1, 'Error: Non-terminal spec "a" has NULL matches\n', "config"),
    (1, 'Error: Spec "a" has too long a comm prefix\n', "config"),
    (1, 'Error: Spec "a" has invalid util_range (0.8, 0.2)\n', "config"),
    (1, "Error: No layer spec\n", "config"),
    (1, "Error: HintEquals match cannot be in conjunction with other matches\n", "config"),
    (
        1,
        "Error: Failed to load BPF program\n\nCaused by:\n  Argument list too long (os error 7)\n",
        "verifier_too_large",
    ),
    (
        1,
        "BPF program is too large. Processed 1000001 insn\nError: Failed to load BPF program\n",
        "verifier_too_large",
    ),
    (
        1,
        "Error: Failed to load BPF program\n\nCaused by:\n    Invalid argument (os error 22)\n",
        "kconfig_missing",
    ),
    (
        1,
        "Error: the running kernel's BTF has malformed scx kfunc prototype(s): scx_bpf_x\n",
        "btf_mismatch",
    ),
    (1, "Error: another sched_ext scheduler is already running\n", "foreign_scheduler"),
    (
        1,
        "Error: Failed to attach\n\nCaused by:\n  Device or resource busy (os error 16)\n",
        "foreign_scheduler",
    ),
    (
        1,
        "Error: Failed to load BPF program\n\nCaused by:\n  Cannot allocate memory (os error 12)\n",
        "out_of_memory",
    ),
    (
        1,
        "Error: Failed to load BPF program\n\nCaused by:\n  Permission denied (os error 13)\n",
        "verifier_refused",
    ),
    (
        1,
        "Error: Failed to open BPF object\n\nCaused by:\n  Operation not permitted (os error 1)\n",
        "not_permitted",
    ),
    (1, "Error: sched_ext_ops.dump() missing, kernel too old?\n", "kernel_unsupported"),
    (
        1,
        "Error: Failed to insert cgroup 4711(/a/b) into BPF map. Cgroup map may be full\n",
        "too_many_cgroups",
    ),
    (1, STALL_DUMP, "rt_hog"),
    (1, STALL_DUMP.replace("=rt_sched", "=ext_sched"), "stall"),
    (1, "Error: EXIT: runnable task stall (watchdog failed to check in for 30.0s)\n", "stall"),
    (1, "Error: EXIT: disabled by sysrq-S\n", "sysrq"),
    (1, "Error: EXIT: unregistered from the main kernel (cpu 3 going offline)\n", "hotplug"),
    (0, "EXIT: unregistered from the main kernel\n", "unregistered"),
    (0, "EXIT: unregistered from BPF\n", "unregistered"),
    (1, "Error: EXIT: scx_bpf_error ([x]12 didn't match any layer)\n", "no_layer"),
    (1, "Error: EXIT: scx_bpf_error (something else)\n", "bpf_error"),
    (1, "Error: EXIT: runtime error (Invalid cpuperf target 2000)\n", "perf_target"),
    (1, "Error: EXIT: runtime error (non-existent DSQ 0x2 for x[12])\n", "btf_truncated"),
    (1, "Error: EXIT: runtime error (non-existent DSQ 0x20003 for x[12])\n", "runtime_error"),
    (1, "Error: EXIT: runtime error (RCU CPU stall on CPUs (2))\n", "lockup"),
    (1, "Error: EXIT: unregistered from the main kernel (expected hotplug seq 3)\n", "hotplug"),
    (1, "Error: EXIT: runtime error (soft lockup - CPU 2 stuck)\n", "lockup"),
    (101, "thread 'main' panicked at src/main.rs:3:\nHoles in CPU ids\n", "panic"),
    (134, "", "panic"),
    (-6, "", "panic"),
    (-9, "", "killed"),
    (-15, "", "terminated"),
    (0, "EXIT: unregistered from user space\n", "terminated"),
    (0, "", "terminated"),
    (2, "error: unexpected argument '--xnuma-preemption' found\n", "usage"),
    (255, "error: unexpected argument '--nope' found\n", "usage"),
    (127, "temper: cannot run /x: No such file or directory\n", "launch_failed"),
    (125, "", "launch_failed"),
    (1, "Error: something new\n", "unknown"),
    (77, "", "unknown"),
]


@pytest.mark.parametrize(("exit_code", "errors", "kind"), ENDS)
def test_each_recorded_end_has_its_kind(exit_code, errors, kind):
    diagnosis = diagnose(End(exit_code, errors))

    assert diagnosis.kind == kind
    assert diagnosis.summary
    assert "\n" not in diagnosis.summary


@pytest.mark.parametrize("kind", EndKind)
def test_each_kind_of_end_has_a_remedy_in_one_line(kind):
    diagnosis = Diagnosis(kind, "it ended")

    assert diagnosis.remedy
    assert "\n" not in diagnosis.remedy
    assert Diagnosis(kind, "it ended", remedy="wait").remedy == "wait"


@pytest.mark.parametrize("kind", sorted(set(EndKind) - {EndKind.UNKNOWN}))
def test_each_kind_of_end_is_in_the_manual(kind):
    manual = (Path(__file__).parents[4] / "docs" / "lifecycle.md").read_text()

    assert f"`{kind.value}`" in manual


def test_a_stall_names_who_waited_for_how_long_and_where():
    diagnosis = diagnose(End(1, STALL_DUMP.replace("=rt_sched", "=ext_sched")))

    assert diagnosis.summary == "taskset[248] could not run for 5.508 s on CPU 3"


def test_a_stall_behind_a_real_time_thread_names_that_thread():
    diagnosis = diagnose(End(1, STALL_DUMP))

    assert diagnosis.summary == (
        "taskset[248] could not run for 5.508 s on CPU 3, held by hog[240] (real-time)"
    )
    assert "real-time thread" in diagnosis.remedy


def test_what_a_dump_leaves_out_is_looked_for_on_the_node(tmp_path):
    put_thread(tmp_path, 248, "task (1)", state="R", cpu=3, policy=0)
    put_thread(tmp_path, 250, "elsewhere", state="R", cpu=1, policy=1)
    put_thread(tmp_path, 251, "asleep", state="S", cpu=3, policy=1)
    message = "Error: EXIT: runnable task stall (task (1)[248] failed to run for 31.2s)\n"

    alone = diagnose(End(1, message, proc=tmp_path))
    put_thread(tmp_path, 252, "hog", state="R", cpu=3, policy=2)
    hogged = diagnose(End(1, message, proc=tmp_path))

    assert (alone.kind, alone.summary) == (
        "stall",
        "task (1)[248] could not run for 31.2 s on CPU 3",
    )
    assert hogged.kind == "rt_hog"
    assert hogged.summary == f"{alone.summary}, held by hog[252] (SCHED_RR)"


def test_a_thread_that_got_the_blocked_ones_id_is_not_taken_for_it(tmp_path):
    put_thread(tmp_path, 248, "another", state="R", cpu=3, policy=1)
    message = "Error: EXIT: runnable task stall (taskset[248] failed to run for 31.2s)\n"

    diagnosis = diagnose(End(1, message, proc=tmp_path))

    assert diagnosis.summary == "taskset[248] could not run for 31.2 s"


def put_thread(proc, tid, comm, *, state, cpu, policy):
    """Write /proc/PID/stat and that of its only thread, as proc(5) has them."""
    text = f"{tid} ({comm}) {state} {'0 ' * 35}{cpu} 0 {policy} 0 0 0\n"
    for path in (proc / str(tid) / "stat", proc / str(tid) / "task" / str(tid) / "stat"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
until = time.monotonic() + 5.0
while time.monotonic() < until:
    pass
"""


@contextmanager
def hogging(cpu):
    """Keep a real CPU with a real FIFO thread, for tenths of a second."""
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", HOG, str(cpu)]) as hog:
        try:
            yield hog
        finally:
            hog.kill()


def becomes_realtime(hog):
    while hog.poll() is None:
        if os.sched_getscheduler(hog.pid) == os.SCHED_FIFO:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("name", ["\nEXIT: sysrq-S", "\nEXIT: x (y", "\nError: EXIT: x"], ids=repr)
def test_a_threads_name_forges_no_other_reason(tmp_path, name):
    message = f"Error: EXIT: runnable task stall ({name}[248] failed to run for 31.2s)\n"

    diagnosis = diagnose(End(1, message, proc=tmp_path))

    assert diagnosis.kind == "stall"
    assert "[248] could not run for 31.2 s" in diagnosis.summary


def test_a_threads_name_that_ends_the_message_hides_the_thread_alone(tmp_path):
    message = "Error: EXIT: runnable task stall ()\nEXIT: x (a)\n[248] failed to run for 31.2s)\n"

    assert diagnose(End(1, message, proc=tmp_path)).kind == "stall"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("runnable task stall (taskset[248] failed to run for 5.508s)", "stall"),
        ("runtime error (Invalid cpuperf target 2000)", "perf_target"),
        ("disabled by sysrq-S", "sysrq"),
    ],
)
def test_a_kernel_that_names_the_cpu_of_an_exit_gives_the_same_reason(tmp_path, reason, kind):
    dump = "  R No layer spec[7] -31208ms\n"

    diagnosis = diagnose(End(1, f"{dump}Error: EXIT: {reason} on CPU 3\n", proc=tmp_path))

    assert diagnosis.kind == kind


def test_a_threads_name_in_the_dump_of_an_unknown_exit_blames_no_plan(tmp_path):
    text = "  R No layer spec[7] -31208ms\nError: EXIT: [something new]\n"

    assert not diagnose(End(1, text, proc=tmp_path)).blames_the_plan


def test_a_runnable_threads_name_in_the_dump_is_no_exit_line(tmp_path):
    dump = "  R \nEXIT: sysrq-S[248] -31208ms\n"
    message = "Error: EXIT: runnable task stall (taskset[248] failed to run for 31.2s)\n"

    for text in (dump + message, message + dump):
        assert diagnose(End(1, text, proc=tmp_path)).kind == "stall"


def test_a_cpu_of_thousands_of_digits_ends_nothing(tmp_path):
    message = "Error: EXIT: runnable task stall (taskset[248] failed to run for 31.2s)\n"
    dump = f"CPU {'7' * 5_000} : nr_run=1\n  R taskset[248] -31208ms\n"

    assert diagnose(End(1, dump + message, proc=tmp_path)).kind == "stall"


def test_a_process_that_ends_during_the_look_for_real_time_threads_does_not_end_it(
    tmp_path, monkeypatch
):
    fields = " ".join(["R", *["0"] * 35, "3", "0", "1"])
    for pid in ("7", "9"):
        thread = tmp_path / pid / "task" / pid
        thread.mkdir(parents=True)
        (thread / "stat").write_text(f"{pid} (hog) {fields}\n")

    def after_its_end(look):
        def looked(path):
            if str(path) == str(tmp_path / "9/task"):
                shutil.rmtree(tmp_path / "9", ignore_errors=True)
            return look(path)

        return looked

    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, after_its_end(getattr(os, name)))

    assert [thread.tid for thread in realtime_threads(tmp_path)] == [7]


@pytest.mark.skipif(os.geteuid() != 0, reason="a real-time thread needs root")
def test_a_real_hog_is_found_on_its_cpu_by_its_name():
    cpu = max(os.sched_getaffinity(0))
    with hogging(cpu) as hog:
        if not becomes_realtime(hog):
            pytest.skip("no real-time thread may be started here")
        found = [each for each in realtime_threads(Path("/proc")) if each.tid == hog.pid]

    assert [(each.cpu, each.policy) for each in found] == [(cpu, "SCHED_FIFO")]


def test_a_refused_configuration_carries_the_engines_words():
    diagnosis = diagnose(End(1, f"{CONFIG}unknown variant `Foo`, expected one of `CommPrefix`\n"))

    assert "unknown variant `Foo`" in diagnosis.summary
    assert diagnosis.blames_the_plan


def test_the_kernels_log_tells_what_the_engine_could_not():
    log = (
        f'sched_ext: BPF scheduler "{OPS}" enabled',
        f'sched_ext: BPF scheduler "{OPS}" disabled (runnable task stall)',
        f"sched_ext: {OPS}: taskset[248] failed to run for 5.508s",
    )

    diagnosis = diagnose(End(1, "", kernel_log=log))

    assert diagnosis.kind == "stall"
    assert "taskset[248]" in diagnosis.summary


def test_an_orderly_line_in_the_kernels_log_does_not_hide_who_killed_it():
    log = (
        "Memory cgroup out of memory: Killed process 77 (scx_layered) total-vm:1kB",
        f'sched_ext: BPF scheduler "{OPS}" disabled (unregistered from user space)',
    )

    assert diagnose(End(-9, kernel_log=log, pid=77)).kind == "out_of_memory"
    assert diagnose(End(-9, kernel_log=log, pid=78)).kind == "killed"


def test_what_ended_an_earlier_attachment_is_not_what_ended_this_one():
    log = (
        f'sched_ext: BPF scheduler "{OPS}" disabled (unregistered from the main kernel)',
        f"sched_ext: {OPS}: cpu 3 going offline, exiting scheduler",
        f'sched_ext: BPF scheduler "{OPS}" enabled',
        f'sched_ext: BPF scheduler "{OPS}" disabled (unregistered from user space)',
    )

    assert diagnose(End(-9, kernel_log=log[:2])).kind == "hotplug"
    assert diagnose(End(-9, kernel_log=log[:3])).kind == "killed"
    assert diagnose(End(-9, kernel_log=log)).kind == "killed"


def test_the_name_of_a_program_that_crashes_is_no_line_about_a_scheduler():
    name = 'BPF scheduler "sched_ext" disabled (disabled by sysrq-S'
    crashed = f"{name[:15]}[9458]: segfault at 0 ip 0 sp 0 error 6 in"
    log = (
        f'sched_ext: BPF scheduler "{OPS}" disabled (unregistered from user space)',
        f"{crashed} {name}[161e,401000+78000] likely on CPU 1 (core 1, socket 0)",
        f"{crashed} sched_ext: {OPS}: a failed to run for 9s",
    )

    assert ejection(End(1, kernel_log=log)) is None
    assert diagnose(End(-9, kernel_log=log)).kind == "killed"


def test_a_lockup_names_the_thread_that_the_kernels_log_names():
    log = (
        "watchdog: BUG: soft lockup - CPU#2 stuck for 22s! [spin (x):240]",
        f'sched_ext: BPF scheduler "{OPS}" disabled (runtime error)',
        f"sched_ext: {OPS}: soft lockup - CPU 2 stuck for 22s",
    )

    diagnosis = diagnose(End(1, kernel_log=log))

    assert diagnosis.kind == "lockup"
    assert "by spin (x)[240]" in diagnosis.summary


def test_a_panic_tells_its_own_words():
    diagnosis = diagnose(End(101, "thread 'main' panicked at src/main.rs:3:\nHoles in CPU ids\n"))

    assert diagnosis.summary == "the engine panicked: Holes in CPU ids"


def test_isolated_cpus_are_read_from_the_kernels_log():
    log = ('sched_ext: Not compatible with "isolcpus=" domain isolation',)

    diagnosis = diagnose(End(1, "Error: Failed to attach\n", kernel_log=log))

    assert diagnosis.kind == "kernel_unsupported"


def test_older_engines_that_log_on_stdout_are_understood():
    diagnosis = diagnose(End(1, "", log="EXIT: disabled by sysrq-S\n"))

    assert diagnosis.kind == "sysrq"


def test_the_evidence_is_kept_but_bounded():
    diagnosis = diagnose(End(1, "x" * 100_000 + "\nError: EXIT: disabled by sysrq-S\n"))

    assert "sysrq-S" in diagnosis.detail
    assert len(diagnosis.detail) < 10_000


def test_a_device_that_is_busy_long_after_an_attachment_is_no_scheduler_of_others():
    words = (
        "attaching to perf events\n"
        + "60 lines\n" * 60
        + "dma: Device or resource busy (os error 16)"
    )

    assert diagnose(End(1, words)).kind == "unknown"
    assert diagnose(
        End(1, words[-80:] + " attach: Device or resource busy (os error 16)")
    ).kind == ("foreign_scheduler")


LONG = """
import sys
from temper_core.scheduler.failure.diagnosis import End, diagnose
text = sys.argv[1] * ((1 << 18) // len(sys.argv[1]) + 1)
print(diagnose(End(1, text[: 1 << 18], log=text[: 1 << 18])).kind)
"""
LONG_MESSAGE = f"EXIT: runnable task stall ({'a[1] ' * 200} failed to run for s)"


@pytest.mark.parametrize(
    "words",
    [
        "BPF load: attach failed for prog x\n",
        "Failed to load BPF program\n",
        "EXIT: ",
        "EXIT: EXIT: x (",
        "panicked at ",
        'Spec "',
        LONG_MESSAGE,
    ],
)
def test_a_full_pipe_of_any_words_is_diagnosed_in_linear_time(words):
    command = [sys.executable, "-c", LONG, words]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)

    assert ended.stdout.strip() in set(EndKind)


WORDS = st.sampled_from(
    ["EXIT: ", "Error: ", "(", ")", "CPU 3 :", " failed to run for ", "[1]", "\n"]
)


@settings(max_examples=100)
@given(st.integers(-64, 255), st.lists(WORDS | st.text(max_size=8), max_size=12).map("".join))
def test_no_last_words_break_the_diagnosis(exit_code, words):
    diagnosis = diagnose(End(exit_code, words, kernel_log=(words,)))

    assert diagnosis.summary
