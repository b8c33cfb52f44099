import os
import resource
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from temper_core.bpf import maps
from temper_core.bpf.package import load_object
from temper_core.bpf.skeleton import Skeleton
from temper_core.errors import BpfError

COUNTS = struct.Struct("<QQ")


def fork(times):
    for _ in range(times):
        subprocess.run(["true"], check=True)


@pytest.fixture
def twenty_threads():
    may_end = threading.Event()
    threads = [threading.Thread(target=may_end.wait) for _ in range(20)]
    for thread in threads:
        thread.start()
    yield
    may_end.set()
    for thread in threads:
        thread.join()


@pytest.mark.usefixtures("twenty_threads")
def test_a_program_runs_and_its_map_is_shared_with_us(prober):
    with prober.memory("counted", COUNTS.size) as memory:
        returned = prober.run("count_threads")
        threads, forks = COUNTS.unpack(memory)

    assert returned == 0
    assert threads > 20
    assert forks == 0


def test_memory_is_written_from_both_sides(prober):
    with prober.memory("counted", COUNTS.size) as memory:
        memory[:8] = struct.pack("<Q", 1 << 40)
        prober.run("count_threads")

        assert 0 < COUNTS.unpack(memory)[0] < 1 << 40


def test_an_attached_program_sees_every_fork_until_the_object_is_closed(prober):
    with prober.memory("counted", COUNTS.size) as memory:
        prober.attach("count_fork")
        fork(7)
        while_attached = COUNTS.unpack(memory)[1]
        prober.close()
        closed = COUNTS.unpack(memory)[1]
        fork(3)

        assert while_attached >= 7
        assert COUNTS.unpack(memory)[1] == closed


@pytest.mark.usefixtures("bpf_allowed")
def test_a_killed_process_leaves_nothing_in_the_kernel():
    script = (
        "import os, signal\n"
        "from temper_core.bpf import maps\n"
        "from temper_core.bpf.package import load_object\n"
        "prober = load_object('temper_core.bpf', 'probe')\n"
        "prober.attach('count_fork')\n"
        "print(maps.info(prober.maps['counted']).id, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )

    killed = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )

    assert killed.returncode == -9
    assert is_gone_soon(int(killed.stdout))


def is_gone_soon(map_id):
    # The kernel frees what a process held some time after its end.
    for _ in range(500):
        try:
            os.close(maps.open_by_id(map_id))
        except BpfError:
            return True
        threading.Event().wait(0.01)
    return False


def test_a_constant_is_given_at_load(load):
    tally = load("tally", initial={"tally.rodata": struct.pack("<i", -5)})

    assert [tally.run("add_step") for _ in range(3)] == [-5, -10, -15]


def test_without_initial_content_the_object_keeps_its_own(tally):
    assert [tally.run("add_step") for _ in range(3)] == [1, 2, 3]


def test_a_map_is_sized_at_load(load):
    tally = load("tally", max_entries={"seen": 300})

    assert maps.info(tally.maps["seen"]).max_entries == 300


def test_maps_and_programs_are_known_by_name(tally):
    assert set(tally.maps) == {"seen", "per_task", "tally.bss", "tally.rodata"}
    assert set(tally.programs) == {"add_step", "value_of_seven", "on_fork"}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"max_entries": {"no": 1}}, "no map 'no' among those loaded: "),
        ({"max_entries": {"seen": 0}}, "map 'seen': max_entries must be 1 to 2^32 - 1, not 0"),
        ({"max_entries": {"seen": 1 << 32}}, "map 'seen': max_entries must be 1 to 2^32 - 1"),
        ({"initial": {"no": b""}}, "no map 'no' among those loaded: "),
        ({"initial": {"seen": b""}}, "map 'seen' holds no global variables"),
        ({"initial": {"tally.rodata": b"abc"}}, "map 'tally.rodata' takes 4 bytes, not 3"),
    ],
)
def test_what_is_given_at_load_must_fit(content_of, given, complaint):
    with pytest.raises(BpfError) as raised:
        Skeleton.load(content_of("tally"), **given)

    assert str(raised.value).startswith(complaint)


def test_a_name_that_is_not_there_is_told_with_those_that_are(tally):
    with pytest.raises(BpfError, match="no program 'no' among those loaded: add_step, "):
        tally.run("no")
    with pytest.raises(BpfError, match="no program 'no' among"):
        tally.attach("no")
    with pytest.raises(BpfError, match="no map 'no' among"):
        tally.memory("no", 8)


def test_a_syscall_program_cannot_be_attached(tally):
    with pytest.raises(BpfError, match="cannot attach BPF program 'add_step': Invalid argument"):
        tally.attach("add_step")


def test_a_tracepoints_program_cannot_be_run(tally):
    with pytest.raises(BpfError, match="cannot run BPF program 'on_fork': "):
        tally.run("on_fork")


def test_a_map_that_is_no_mappable_array_gives_no_memory(tally):
    with pytest.raises(BpfError, match="cannot map 8 bytes of 'seen'"):
        tally.memory("seen", 8)


def test_more_memory_than_the_map_has_is_refused(prober):
    with pytest.raises(BpfError, match="cannot map 1048576 bytes of 'counted'"):
        prober.memory("counted", 1 << 20)


def test_a_closed_object_has_nothing_left_and_closes_twice(tally):
    held = [*tally.maps.values(), *tally.programs.values()]

    tally.close()
    tally.close()

    assert not tally.maps
    with pytest.raises(BpfError, match="no program 'add_step' among those loaded: none"):
        tally.run("add_step")
    for descriptor in held:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_loading_and_attaching_again_and_again_leaves_no_descriptor(load):
    for _ in range(20):
        prober = load("probe")
        prober.attach("count_fork")
        prober.attach("count_fork")
        prober.close()


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("unknown_function", "cannot load the BPF object: No such file or directory"),
        ("unknown_field", "cannot load the BPF object: Invalid argument"),
    ],
)
def test_an_object_the_kernel_refuses_leaves_no_descriptor(load, name, complaint):
    with pytest.raises(BpfError) as raised:
        load(name)

    assert str(raised.value) == complaint


def test_the_verifiers_words_come_with_the_refusal(load):
    with pytest.raises(BpfError) as raised:
        load("unknown_field")

    # 0xbad2310: the call an instruction becomes whose field the kernel does not have.
    assert "invalid func unknown#195896080" in raised.value.log


def test_signals_during_a_load_are_held_back_and_then_delivered(load):
    delivered = []
    before = signal.signal(signal.SIGALRM, lambda *_: delivered.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        for _ in range(5):
            load("tally").close()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert delivered
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()


def test_running_out_of_descriptors_at_any_step_leaves_none(load, descriptors):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = descriptors()
    complaints = set()

    for room in range(8):
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(before) + room, hard))
        try:
            load("tally").close()
        except BpfError as error:
            complaints.add(str(error))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert "cannot load the BPF object: Too many open files" in complaints
    assert all(each.endswith(": Too many open files") for each in complaints)
    assert descriptors() == before


def test_a_description_with_more_programs_than_there_are_is_refused(content_of, descriptors, load):
    content, before = content_of("tally"), descriptors()
    length = struct.unpack_from("<I", content, 4)[0]
    more = content[16 : 16 + length].replace(
        b'"programs": [', b'"programs": [{"name": "x", "section": "syscall"}, '
    )
    header = content[:4] + struct.pack("<I", len(more)) + content[8:16]

    with pytest.raises(BpfError, match="its description and its program do not agree"):
        Skeleton.load(header + more + content[16 + length :])

    assert descriptors() == before
    assert load("tally").run("add_step") == 1


def test_an_object_that_a_package_does_not_ship_is_named():
    with pytest.raises(BpfError, match=r"cannot read the BPF object 'no' of temper_core\.bpf: "):
        load_object("temper_core.bpf", "no")
    with pytest.raises(BpfError, match="cannot read the BPF object 'no' of no_such_package: "):
        load_object("no_such_package", "no")
