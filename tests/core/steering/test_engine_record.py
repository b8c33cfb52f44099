"""Reading another program's record of threads, through the threads' own lists of storage."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from temper_core.bpf import maps
from temper_core.bpf.skeleton import Skeleton
from temper_core.steering.engine_record import find_engine_record
from temper_core.steering.kernel import EngineRecord
from tests.core.steering.processes import DEFAULT

OBJECT = Path(__file__).parent / "objects/engine_like.bpfl"
LAYER_OFFSET = 16
"""After an int and a bit field of 64 bits."""
HOLDER = """
import sys
from pathlib import Path
from temper_core.bpf.skeleton import Skeleton
with Skeleton.load(Path(sys.argv[1]).read_bytes()):
    print("ready", flush=True)
    input()
"""


@pytest.fixture
def engine_like(request):
    """An object that keeps layers of threads as the engine does; gives those of one process."""
    request.getfixturevalue("bpf_allowed")
    with Skeleton.load(OBJECT.read_bytes()) as loaded:

        def place(pid, layer):
            maps.update(loaded.maps["orders"], bytes(4), struct.pack("=II", pid, layer))
            loaded.run("place")

        yield place


@pytest.fixture
def record(request):
    request.getfixturevalue("engine_like")
    return find_engine_record(os.getpid())


@pytest.mark.usefixtures("engine_like")
def test_it_is_found_by_what_the_engine_calls_it():
    found = find_engine_record(os.getpid())

    assert found.layer_offset == LAYER_OFFSET
    assert found.map_id in maps.map_ids_of(os.getpid())


@pytest.mark.usefixtures("bpf_allowed")
def test_it_is_found_in_another_process(spawn):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    root = Path(__file__).parents[3]
    engine = spawn(sys.executable, "-c", HOLDER, OBJECT, cwd=root, **pipes)
    engine.stdout.readline()

    assert find_engine_record(engine.pid).layer_offset == LAYER_OFFSET
    assert find_engine_record(os.getpid()) is None


def test_a_process_that_is_gone_has_none():
    assert find_engine_record(2**22 + 1) is None


def test_every_thread_tells_the_layer_that_the_engine_has_it_in(
    kernel, engine_like, record, sleepers, thread, look
):
    two, other = sleepers("two", "one"), sleepers("other")
    engine_like(two.pid, 5)
    engine_like(other.pid, 0)

    kernel.walk(engine=record)

    found = {r.comm: r.layer for r in kernel.records() if r.tgid in (two.pid, other.pid)}
    assert found == {"two": 5, "one": 5, "other": 0}
    assert look(thread, engine=record).layer is None


def test_a_thread_that_has_hints_and_decisions_too_tells_its_layer(
    kernel, engine_like, record, sleepers, look
):
    kernel.set_table({}, (), DEFAULT)
    pid = sleepers("two").pid
    kernel.decide([(pid, look(pid).start_ns, 200)])
    engine_like(pid, 7)

    assert (look(pid, engine=record).layer, look(pid, engine=record).hint) == (7, 200)


def test_the_layer_is_read_anew_at_every_walk(engine_like, record, sleepers, look):
    pid = sleepers("two").pid

    found = []
    for layer in (3, 11, 16):
        engine_like(pid, layer)
        found.append(look(pid, engine=record).layer)

    assert found == [3, 11, 16]


@pytest.mark.parametrize("layer", [255, 256, 2**32 - 1])
def test_a_number_that_no_layer_can_have_is_none(engine_like, record, sleepers, look, layer):
    pid = sleepers("two").pid
    engine_like(pid, layer)

    assert look(pid, engine=record).layer is None


def test_without_a_record_no_layer_is_told(engine_like, sleepers, look):
    pid = sleepers("two").pid
    engine_like(pid, 5)

    assert look(pid).layer is None
    assert look(pid, engine=EngineRecord(2**31, LAYER_OFFSET)).layer is None


def test_the_map_of_hints_itself_can_be_read_that_way(kernel, thread, look):
    kernel.set_table({}, (), DEFAULT)
    kernel.walk()

    assert look(thread, engine=EngineRecord(kernel.map_id, 0)).layer == DEFAULT
