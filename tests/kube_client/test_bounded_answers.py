"""The bound on what a command keeps of an API server's answers."""

import threading
from pathlib import Path

import pytest

from temper_core import InputError, MachineError
from temper_kube.bounded_answers import bounded_answers

MIB = 1 << 20


@pytest.fixture
def _little_memory(monkeypatch):
    """Leave 256 MiB beside what this process has."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (data_kib,) = [int(line.split()[1]) for line in lines if line.startswith("VmData:")]
    monkeypatch.setattr("temper_core.bounded_memory.MOST_BYTES", data_kib * 1024 + 256 * MIB)


@pytest.mark.usefixtures("_little_memory")
def test_too_large_an_answer_is_an_error_of_the_machine():
    with pytest.raises(MachineError, match="answers take more than"), bounded_answers():
        bytearray(512 * MIB)

    assert len(bytearray(512 * MIB)) == 512 * MIB


@pytest.mark.usefixtures("_little_memory")
def test_a_thread_without_room_for_its_stack_is_one_too():
    ends = threading.Event()
    threads = []

    def start_many():
        for _ in range(100):
            threads.append(threading.Thread(target=ends.wait))
            threads[-1].start()

    size = threading.stack_size(16 * MIB)
    try:
        with pytest.raises(MachineError, match="answers take more than"), bounded_answers():
            start_many()
    finally:
        ends.set()
        threading.stack_size(size)
        for thread in threads[:-1]:
            thread.join()


@pytest.mark.parametrize("error", [InputError, RuntimeError, KeyError])
def test_other_errors_are_as_they_were(error):
    with pytest.raises(error, match="of its own"), bounded_answers():
        raise error("of its own")
