"""Reading sched_ext's state and the kernel's log, whatever is in them."""

import fcntl
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from temper_core.scheduler.host.kernel import KernelLog, KernelState, KernelStateWord, SchedExt


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("disabled\n", KernelStateWord.DISABLED),
        ("enabling\n", KernelStateWord.ENABLING),
        ("enabled\n", KernelStateWord.ENABLED),
        ("disabling\n", KernelStateWord.DISABLING),
        ("prepping\n", KernelStateWord.TRANSITIONAL),
        ("absent\n", KernelStateWord.TRANSITIONAL),
        ("\n", KernelStateWord.TRANSITIONAL),
    ],
)
def test_a_word_that_is_not_known_counts_as_transitional(node, text, word):
    node.put("sys/kernel/sched_ext/state", text)

    assert SchedExt(node.roots.sched_ext).read().word is word


def test_a_kernel_without_sched_ext_is_free_and_unsupported(tmp_path):
    kernel = SchedExt(tmp_path / "sched_ext")

    assert not kernel.is_supported
    assert kernel.read().word is KernelStateWord.ABSENT
    assert kernel.foreign(ours=False) is None


def test_without_a_descriptor_to_spare_the_kernel_is_neither_absent_nor_free(node):
    node.attach("layered_1.1.4")
    kernel = SchedExt(node.roots.sched_ext)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)

    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
        state, foreign = kernel.read(), kernel.foreign(ours=False)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    assert state.word is KernelStateWord.TRANSITIONAL
    assert not state.is_free
    assert not state.is_known
    assert foreign is not None


@pytest.mark.parametrize("name", ["state", "root/ops", "enable_seq"])
def test_a_file_that_is_there_but_cannot_be_read_leaves_the_kernel_unknown(node, name):
    node.attach("layered_1.1.4")
    node.remove(f"sys/kernel/sched_ext/{name}")
    node.put(f"sys/kernel/sched_ext/{name}/in", "the way")

    state = SchedExt(node.roots.sched_ext).read()

    assert (state.is_known, state.is_free, state.is_layered) == (False, False, False)


def test_everything_there_is_to_read_is_read(node):
    node.attach("layered_1.1.4")
    node.put("sys/kernel/sched_ext/switch_all", "1\n")
    node.put("sys/kernel/sched_ext/nr_rejected", "nonsense\n")

    state = SchedExt(node.roots.sched_ext).read()

    assert (state.ops, state.switch_all, state.enable_seq) == ("layered_1.1.4", 1, 7)
    assert state.nr_rejected is None
    assert state.is_layered


def test_a_scheduler_is_foreign_unless_our_engine_lives(node):
    kernel = SchedExt(node.roots.sched_ext)
    assert kernel.foreign(ours=False) is None

    node.attach("bpfland")

    assert kernel.foreign(ours=False) == "bpfland"
    assert kernel.foreign(ours=True) is None


def test_a_scheduler_that_is_just_attaching_is_foreign_too(node):
    node.put("sys/kernel/sched_ext/state", "enabling\n")

    assert SchedExt(node.roots.sched_ext).foreign(ours=False) == "a scheduler that is enabling"


def test_events_are_read_by_name_and_nonsense_is_passed_over(node):
    node.put(
        "sys/kernel/sched_ext/root/events",
        "SCX_EV_BYPASS_DURATION 54949527\nSCX_EV_NEW: 3\nodd line\n",
    )

    events = SchedExt(node.roots.sched_ext).events()

    assert events == {"SCX_EV_BYPASS_DURATION": 54949527, "SCX_EV_NEW": 3}


def record(text: str) -> str:
    return f"6,1234,5678901,-;{text}\n SUBSYSTEM=sched_ext\n"


def test_only_news_about_schedulers_is_kept(node):
    path = node.put("kmsg", record('sched_ext: BPF scheduler "old" disabled (x)'))
    log = KernelLog(path)
    with path.open("a") as file:
        file.write(record("usb 1-1: new device"))
        file.write(record('sched_ext: BPF scheduler "layered" enabled'))

    lines = log.tail()
    log.close()

    assert lines == ('sched_ext: BPF scheduler "layered" enabled',)


def test_forgetting_leaves_only_what_comes_later(node):
    path = node.put("kmsg", "")
    log = KernelLog(path)
    with path.open("a") as file:
        file.write(record("sched_ext: one"))
    log.forget()
    with path.open("a") as file:
        file.write(record("sched_ext: two"))

    lines = log.tail()
    log.close()

    assert lines == ("sched_ext: two",)


def test_a_flood_keeps_only_the_newest_lines(node):
    path = node.put("kmsg", "")
    log = KernelLog(path)
    with path.open("a") as file:
        file.writelines(record(f"sched_ext: line {n}") for n in range(5_000))

    lines = log.tail()
    log.close()

    assert len(lines) == 100
    assert lines[-1] == "sched_ext: line 4999"


@pytest.fixture
def device() -> Iterator[tuple[Path, int]]:
    """Stand in for /dev/kmsg: a path where each read returns one record, and its other end."""
    reading, writing = os.pipe2(os.O_DIRECT | os.O_CLOEXEC)
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 256 * 1024)
    yield Path(f"/proc/self/fd/{reading}"), writing
    os.close(reading)
    os.close(writing)


def test_what_is_logged_under_a_flood_is_found_where_the_log_was_kept_up_with(device):
    path, writing = device
    log = KernelLog(path, drain_reads=10, tail_reads=10)

    for moment in range(5):
        for n in range(10):
            os.write(writing, record(f"usb {moment}-{n}: new device").encode())
        log.drain(moment * 10.0)
    os.write(writing, record("sched_ext: ejected").encode())
    lines = log.tail()
    log.close()

    assert lines == ("sched_ext: ejected",)


def test_the_log_is_not_looked_at_more_often_than_every_ten_seconds(device):
    path, writing = device
    log = KernelLog(path, drain_reads=10, tail_reads=0)
    log.drain(0.0)

    os.write(writing, record("sched_ext: ejected").encode())
    log.drain(9.9)
    assert log.tail() == ()
    log.drain(10.0)

    assert log.tail() == ("sched_ext: ejected",)
    log.close()


def test_a_log_that_may_not_be_read_has_nothing_to_tell(tmp_path):
    log = KernelLog(tmp_path / "kmsg")

    assert not log.is_readable
    assert log.tail() == ()
    log.close()


@pytest.mark.skipif(not Path("/dev/kmsg").exists(), reason="no kernel log here")
def test_the_real_log_is_read_without_waiting():
    log = KernelLog()

    assert isinstance(log.tail(), tuple)
    log.close()


@pytest.mark.parametrize(
    ("word", "ops", "is_without_us"),
    [
        ("disabled", "", True),
        ("enabled", "bpfland_1.0", True),
        ("enabled", "layered_1.1.4", False),
        ("enabled", "", False),  # between two files that were read, it went
        ("disabling", "", False),
    ],
)
def test_only_a_free_kernel_or_a_named_other_scheduler_is_without_us(word, ops, is_without_us):
    assert KernelState(KernelStateWord(word), ops).is_without_us is is_without_us
