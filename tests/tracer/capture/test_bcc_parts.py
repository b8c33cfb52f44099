"""What a capture by bcc does without bcc: finding it, refusing others, and draining its rings."""

import mmap
import os
import sys

import numpy as np
import pytest

from temper_core import CheckState, MachineError
from temper_plugin_tracer.capture.bcc.compiling import NotUsableError, import_bcc
from temper_plugin_tracer.capture.bcc.installed import NOT_INSTALLED, find_bcc
from temper_plugin_tracer.capture.bcc.recorder import (
    DEPTHS,
    NESTED_BITS,
    BccRecorder,
    event_rings_of,
    name_bits,
)
from temper_plugin_tracer.capture.checks import bcc_check
from temper_plugin_tracer.capture.kernel_layout import NAME, NAME_BYTES, RING, RING_BYTES
from temper_plugin_tracer.capture.near_events import NearEvents
from temper_plugin_tracer.capture.rings import name_rings
from temper_plugin_tracer.capture.selection import Selection
from temper_plugin_tracer.trace.events import SCHED_EVENT, Kind
from tests.tracer.capture.scenes import scene

CPUS, BITS = 2, 4
DEBIAN, PIP = "usr/lib/python3/dist-packages", "usr/local/lib/python3.11/dist-packages"


@pytest.fixture
def host(tmp_path):
    """A host with an interpreter, and a function that installs what is named."""

    def install(*files):
        for file in ("usr/bin/python3", *files):
            path = tmp_path / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
        return tmp_path

    return install


def headers():
    return f"lib/modules/{os.uname().release}/build/Makefile"


def test_bcc_with_headers_is_found(host):
    root = host(f"{DEBIAN}/bcc/libbcc.py", headers())

    assert find_bcc(root) == root / DEBIAN / "bcc"
    assert bcc_check(root).state is CheckState.OK


def test_headers_that_bcc_would_unpack_below_tmp_are_not_used(host):
    """bcc before 0.30 takes those of any user there, CVE-2024-2314."""
    root = host(f"{DEBIAN}/bcc/libbcc.py", "sys/kernel/kheaders.tar.xz")

    with pytest.raises(MachineError, match="install linux-headers-"):
        find_bcc(root)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([], NOT_INSTALLED),
        ([headers()], NOT_INSTALLED),
        ([f"{DEBIAN}/bcc/libbcc.py"], f"install linux-headers-{os.uname().release}"),
        ([f"{PIP}/bcc/__init__.py", headers()], "another package of the name bcc"),
        (
            [f"{PIP}/bcc/__init__.py", f"{DEBIAN}/bcc/libbcc.py", headers()],
            "another package of the name bcc",
        ),
    ],
)
def test_what_is_missing_or_in_the_way_is_one_line(host, files, words):
    root = host(*files)
    with pytest.raises(MachineError, match=words) as refusal:
        find_bcc(root)

    check = bcc_check(root)
    assert (check.state, check.detail) == (CheckState.UNKNOWN, str(refusal.value))
    assert "\n" not in check.detail


def test_a_module_of_another_package_is_refused(tmp_path, monkeypatch):
    (tmp_path / "bcc.py").write_text("class Lattice: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "bcc", raising=False)

    with pytest.raises(NotUsableError, match=r"bcc\.py is another package of the name bcc"):
        import_bcc()
    del sys.modules["bcc"]


def test_an_interpreter_without_the_module_is_named():
    with pytest.raises(NotUsableError, match="python3-bpfcc is not installed for"):
        import_bcc()


def test_a_capture_by_bcc_without_it_fails_in_one_line(tmp_path):
    if bcc_check().state is CheckState.OK:
        pytest.skip("bcc is installed here")

    entry = scene("captured", str(tmp_path), "bcc", prefix=())

    assert entry["state"] == "failed"
    assert entry["reason"] == f"no way to record works here: bcc: {bcc_check().detail}"
    assert entry["left"]["files"] == []


class Memory:
    """The maps of a loaded program, as memory of this process, and how a program writes there."""

    def __init__(self):
        self.maps = {}

    def memory(self, name, size):
        return self.maps.setdefault(name, mmap.mmap(-1, size))

    def detach(self, programs):
        pass

    def put(self, cpu, depth, ns, **columns):
        """Write an event as the program does that was interrupted *depth* times."""
        states = np.frombuffer(self.maps["rings"], RING)
        ring, bits = depth * CPUS + cpu, NESTED_BITS if depth else BITS
        events = np.frombuffer(self.maps["nested" if depth else "events"], SCHED_EVENT)
        at = int(states["reserved"][ring])
        if at - int(states["taken"][ring]) >= 1 << bits:
            states["lost"][ring] += 1
            return
        slot = events[((ring - CPUS if depth else cpu) << bits) + at % (1 << bits)]
        slot["ns"], slot["cpu"], slot["spare"] = ns, cpu, (at >> bits) + 1
        for column, value in columns.items():
            slot[column] = value
        states["reserved"][ring] = at + 1

    def note(self, cpu, ns, tid, kind, parent=0):
        rings = np.frombuffer(self.maps["name_rings"], RING)
        at = int(rings["reserved"][cpu])
        slot = np.frombuffer(self.maps["names"], NAME)[(cpu << BITS) + at]
        slot["ns"], slot["tid"], slot["kind"], slot["parent"], slot["lap"] = (
            ns,
            tid,
            kind,
            parent,
            1,
        )
        rings["reserved"][cpu] = at + 1


@pytest.fixture
def kernel():
    return Memory()


def recorder(kernel, near=None):
    names = kernel.memory("names", NAME_BYTES * CPUS << BITS)
    states = kernel.memory("name_rings", RING_BYTES * CPUS)
    return BccRecorder(
        kernel,
        event_rings_of(kernel, CPUS, BITS),
        name_rings(names, states, rings=CPUS, bits=BITS),
        kernel.memory("is_open", mmap.PAGESIZE),
        near or NearEvents.of(Selection()),
    )


def test_what_interrupts_recorded_is_put_where_it_happened(kernel):
    made = recorder(kernel)
    for ns, depth in ((10, 0), (30, 0), (20, 1), (25, 2), (40, 1)):
        kernel.put(1, depth, ns)
    kernel.put(0, 0, 15)

    events = made.drain().events

    assert {cpu: each["ns"].tolist() for cpu, each in events.items()} == {
        0: [15],
        1: [10, 20, 25, 30, 40],
    }
    assert not any(each["spare"].any() for each in events.values())
    assert made.drain().events == {}


def test_losses_of_all_depths_are_those_of_the_cpu(kernel):
    made = recorder(kernel)
    for depth in range(DEPTHS):
        for ns in range((1 << (NESTED_BITS if depth else BITS)) + depth + 1):
            kernel.put(1, depth, ns)

    assert made.losses().by_cpu == {1: 1 + 2 + 3}
    assert made.losses().names == 0


def test_names_of_all_cpus_are_in_time_order_and_children_are_selected(kernel):
    near = NearEvents.of(Selection("this one", processes=(os.getpid(),)))
    near.look()
    made = recorder(kernel, near)
    kernel.note(1, 20, 4_000_001, 4)
    kernel.note(0, 10, 4_000_001, 2, parent=os.getpid())
    kernel.put(0, 0, 30, kind=Kind.WAKING, next=4_000_001)
    kernel.put(0, 0, 31, kind=Kind.WAKING, next=4_000_002, target=1)

    drained = made.drain()

    assert drained.names["ns"].tolist() == [10, 20]
    assert {cpu: each["ns"].tolist() for cpu, each in drained.events.items()} == {0: [30]}


@pytest.mark.parametrize(("cpus", "bits"), [(1, 16), (2, 15), (3, 14), (64, 10), (8192, 10)])
def test_names_share_their_memory_among_the_cpus(cpus, bits):
    assert name_bits(cpus) == bits
