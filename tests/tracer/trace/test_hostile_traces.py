"""Small files that would take much memory, or hold what cannot be, are refused in one line."""

import gzip
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from temper_core import InputError
from temper_core.console import bounded_memory
from temper_plugin_tracer.trace.commands.analyze import command as analyze
from temper_plugin_tracer.trace.commands.analyze import read_report
from temper_plugin_tracer.trace.perfetto.fields import Compact, Packet, Roster
from temper_plugin_tracer.trace.perfetto.wire import block, column, column_of_steps, number
from tests.patience import PATIENCE_S

LATE = 1 << 63
SAMPLE = Path(__file__).parent / "samples" / "perf-script.txt"
MIB = 1024 * 1024


def packet(field, content):
    return block(1, block(field, content))


def machine(*cores):
    return packet(Packet.TEMPER_MACHINE, json.dumps([["Linux"], [0], cores]))


def switches(cpu, tids, first_ns=1, step_ns=1000):
    count = len(tids)
    times = first_ns + np.arange(count, dtype=np.uint64) * np.uint64(step_ns)
    columns = [
        column_of_steps(Compact.SWITCH_NS, times),
        column(Compact.SWITCH_STATE, np.ones(count, np.int64)),
        column(Compact.SWITCH_NEXT, np.array(tids, np.int64)),
        column(Compact.SWITCH_PRIO, np.full(count, 120)),
    ]
    return packet(Packet.FTRACE_EVENTS, number(1, cpu) + block(4, b"".join(columns)))


def roster(count):
    texts, tids = block(Roster.TEXTS, "x"), block(Roster.TID, b"\x01" * count)
    return packet(Packet.TEMPER_THREADS, texts + tids)


HOSTILE = {
    "a CPU beyond memory": (machine([10**18, 0]), "1000000000000000000 is no CPU"),
    "a CPU below 0": (machine([-5, 0]), "-5 is no CPU"),
    "a core of thousands of CPUs": (
        machine(*([cpu, 0] for cpu in range(8_000))),
        "a core of more than 64 CPUs",
    ),
    "tens of millions of threads": (roster(60_000_000), "more than 4194304 threads"),
    "an event of an impossible CPU": (switches(65_535, [5, 6]), "an event of CPU 65535"),
    "a time that no clock has": (
        switches(0, [5, 6]) + switches(1, [7, 8], first_ns=LATE),
        "too far apart",
    ),
    "years between two events": (switches(0, [5, 6], step_ns=1 << 61), "too far apart"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_it_is_refused_in_one_line(tmp_path, kind):
    content, said = HOSTILE[kind]
    path = tmp_path / "x.pftrace"
    path.write_bytes(gzip.compress(content, 1))

    with pytest.raises(InputError) as refused:
        read_report(path, 20)

    assert said in str(refused.value)
    assert len(refused.value.lines) == 1


def test_millions_of_empty_members_are_refused_in_one_line(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(SAMPLE.read_bytes()) + gzip.compress(b"", mtime=0) * 200_000)

    with pytest.raises(InputError, match="larger than its contents") as refused:
        read_report(path, 20)

    assert len(refused.value.lines) == 1


def test_a_pipe_is_refused_in_one_line(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    words = [Path(sys.executable).with_name("temper"), "trace", "analyze", path]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S)

    assert ended.returncode == 2
    assert ended.stderr == f"temper: {path}: is not a regular file\n"


def test_memory_is_bounded(tmp_path):
    path = tmp_path / "x.pftrace"
    path.write_bytes(b"".join(switches(0, range(n, n + 20_000)) for n in range(1, 200_000, 20_000)))
    program = (
        "from temper_core import bounded_memory\n"
        f"bounded_memory.MOST_BYTES = {256 * MIB}\n"
        "from temper_core.cli.entry import main\n"
        "main()"
    )

    words = [sys.executable, "-c", program, "trace", "analyze", path]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert ended.stderr == f"temper: {path}: to analyze it takes more than 256 MiB of memory\n"


def test_the_bound_is_half_of_the_available_memory_at_most(tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal: 1 kB\nMemAvailable: {4 * 1024 * 1024} kB\n")
    before = resource.getrlimit(resource.RLIMIT_DATA)

    with (
        pytest.raises(InputError, match="x takes more than 2048 MiB"),
        bounded_memory("x takes", meminfo),
    ):
        bytearray(3072 * MIB)

    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_a_machine_with_all_cpus_is_read(tmp_path):
    path = tmp_path / "x.pftrace"
    cores = ([cpu, cpu // 2] for cpu in range(8_192))
    path.write_bytes(machine(*cores) + switches(0, [1, 2]) + switches(8_191, [3, 4]))

    result = CliRunner().invoke(analyze, [str(path), "--output", "json"], catch_exceptions=False)

    assert json.loads(result.stdout)["cpus"] == 8_192
