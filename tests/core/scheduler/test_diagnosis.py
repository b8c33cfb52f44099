"""Every way an engine ends, from texts recorded on a real kernel."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.scheduler.diagnosis import End, diagnose

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
    (1, "Error: sched_ext_ops.dump() missing, kernel too old?\n", "kernel_unsupported"),
    (
        1,
        "Error: Failed to insert cgroup 4711(/a/b) into BPF map. Cgroup map may be full\n",
        "too_many_cgroups",
    ),
    (1, STALL_DUMP, "stall"),
    (1, "Error: EXIT: runnable task stall (watchdog failed to check in for 30.0s)\n", "stall"),
    (1, "Error: EXIT: disabled by sysrq-S\n", "sysrq"),
    (1, "Error: EXIT: unregistered from the main kernel (cpu 3 going offline)\n", "hotplug"),
    (0, "EXIT: unregistered from the main kernel\n", "unregistered"),
    (0, "EXIT: unregistered from BPF\n", "unregistered"),
    (1, "Error: EXIT: scx_bpf_error ([x]12 didn't match any layer)\n", "bpf_error"),
    (1, "Error: EXIT: runtime error (Invalid cpuperf target 2000)\n", "runtime_error"),
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


def test_a_stall_names_who_waited_for_how_long_and_where():
    diagnosis = diagnose(End(1, STALL_DUMP))

    assert diagnosis.summary == "taskset[248] could not run for 5.508 s on CPU 3"


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


WORDS = st.sampled_from(
    ["EXIT: ", "Error: ", "(", ")", "CPU 3 :", " failed to run for ", "[1]", "\n"]
)


@settings(max_examples=100)
@given(st.integers(-64, 255), st.lists(WORDS | st.text(max_size=8), max_size=12).map("".join))
def test_no_last_words_break_the_diagnosis(exit_code, words):
    diagnosis = diagnose(End(exit_code, words, kernel_log=(words,)))

    assert diagnosis.summary
