"""What the kernel's log still tells of schedulers: records as /dev/kmsg gives them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from temper_core.scheduler.failure.kernel_messages import (
    TEXT_BYTES,
    KernelMessage,
    last_ejection,
    last_messages,
)

OPS = "layered_1.1.4_x86_64_unknown_linux_gnu"
ENABLED = f'sched_ext: BPF scheduler "{OPS}" enabled'
STALLED = f'sched_ext: BPF scheduler "{OPS}" disabled (runnable task stall)'
WHO = f"sched_ext: {OPS}: taskset[248] failed to run for 5.508s"
ORDERLY = f'sched_ext: BPF scheduler "{OPS}" disabled (unregistered from user space)'


def messages(*lines: str) -> tuple[KernelMessage, ...]:
    return tuple(KernelMessage(float(at), line) for at, line in enumerate(lines))


@pytest.fixture
def log(tmp_path):
    """A log that gives one record at each read, as the kernel does: a pipe of packets."""
    path = tmp_path / "kmsg"
    reading, writing = os.pipe2(os.O_DIRECT)
    path.symlink_to(f"/proc/self/fd/{reading}")
    yield path, lambda record: os.write(writing, record.encode())
    os.close(reading)
    os.close(writing)


def test_the_newest_lines_about_schedulers_are_told_with_their_time(log):
    path, write = log
    write("6,1,1000000,-;usb 1-1: new device\n")
    for number in range(7):
        write(f"6,{number},{number}500000,-;sched_ext: line {number}\n SUBSYSTEM=sched_ext\n")
    write("nonsense about sched_ext\n")

    found = last_messages(path, most=3)

    assert [str(each) for each in found] == [
        f"[{number}.500000] sched_ext: line {number}" for number in (4, 5, 6)
    ]


def test_a_log_that_may_not_be_read_tells_nothing(tmp_path):
    assert last_messages(tmp_path / "kmsg") == ()


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="the kernel's log is not readable")
@pytest.mark.skipif(shutil.which("dmesg") is None, reason="dmesg is not installed")
def test_the_real_log_is_read_to_its_end():
    command = ["dmesg", "--notime", "--kernel"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

    found = last_messages(most=100_000, about=re.compile("."))

    assert told[-1][:TEXT_BYTES] in [message.text for message in found]


def test_the_last_ejection_is_named_with_its_remedy(tmp_path):
    found = last_ejection(messages(ENABLED, STALLED, WHO), tmp_path)

    assert found.kind == "stall"
    assert found.summary == "taskset[248] could not run for 5.508 s"
    assert found.remedy


@pytest.mark.parametrize("lines", [(), (ENABLED,), (STALLED, WHO, ENABLED), (ENABLED, ORDERLY)])
def test_a_scheduler_that_runs_or_ended_in_order_was_not_ejected(lines):
    assert last_ejection(messages(*lines), Path("/nowhere")) is None
