"""The made files of the test kit beside the real ones, and the page that describes the kit."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import temper_core
from temper_core import (
    InputError,
    MachineError,
    Snapshot,
    ask_agent,
    load_settings,
    read_machine,
    testing,
)
from temper_core.observe.process_text import parse_schedstat, parse_stat
from temper_core.records.machine import Cpu, MachineShape
from temper_core.testing import (
    make_machine,
    make_process,
    make_recording,
    make_snapshot,
    make_sysfs,
    make_task,
    make_thread,
    recorded_snapshots,
)
from tests.patience import PATIENCE_S

ROOT = Path(temper_core.__file__).parents[1]
PAGE = (Path(__file__).parents[2] / "docs/testing-a-plugin.md").read_text()
FILE = re.compile(r"^`([\w./]+)`\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HYBRID = MachineShape(
    "x86_64", (Cpu(0, 0), Cpu(1, 0), Cpu(2, 1, capacity=512)), offline=(3,), isolated=(2,)
)


def test_a_made_line_has_as_many_fields_as_the_kernel_writes(tmp_path):
    real = Path("/proc/self/stat").read_bytes()
    values = parse_stat(real)

    make_process(tmp_path, 7, "a) name", parent=os.getppid(), age_s=1e9)
    made = (tmp_path / "7/stat").read_bytes()

    assert len(made[made.rindex(b")") :].split()) == len(real[real.rindex(b")") :].split())
    assert made.split(b") ")[-1].split()[1] == real[real.rindex(b")") :].split()[2]
    assert parse_stat(made)._replace(comm=values.comm, cpu=values.cpu).start_ticks == 0


def test_a_made_thread_is_read_as_it_was_made(tmp_path):
    make_task(tmp_path, 7, 8, "worker", run_ns=30_000_000, delay_ns=5, runs=2, cpu=3, age_s=1e9)
    task = tmp_path / "7/task/8"

    stat, counted = parse_stat((task / "stat").read_bytes()), (task / "schedstat").read_bytes()

    assert (stat.comm, stat.cpu, stat.start_ticks) == ("worker", 3, 0)
    assert stat.cpu_ticks == os.sysconf("SC_CLK_TCK") * 3 // 100
    assert parse_schedstat(counted) == (30_000_000, 5)
    assert len(counted.split()) == len(Path("/proc/self/schedstat").read_text().split())


@pytest.mark.parametrize(
    "machine",
    [
        read_machine(),
        HYBRID,
        make_machine(1, 1),
        make_machine(16, 2, sockets=2, numa_nodes=4, llcs=8),
    ],
    ids=["this machine", "hybrid", "one CPU", "two sockets"],
)
def test_a_made_topology_is_read_as_the_machine_it_was_made_of(tmp_path, machine):
    assert read_machine(make_sysfs(tmp_path, machine), machine.architecture) == machine


def test_a_made_recording_has_its_snapshots(tmp_path):
    threads = (make_thread("a"), make_thread("b", tid=1001, run_delay_ratio=0.25))
    first = make_snapshot(*threads)
    second = make_snapshot(*threads[:1], monotonic_s=3605.0)

    read = recorded_snapshots(make_recording(tmp_path / "node.rec", first, second))

    assert [snapshot.threads for snapshot in read] == [threads, threads[:1]]
    assert [type(snapshot) for snapshot in read] == [Snapshot, Snapshot]
    assert read[1].monotonic_s == 3605.0


def test_a_recording_is_of_one_machine(tmp_path):
    other = make_snapshot(machine=make_machine(2))

    with pytest.raises(InputError, match="the machine have changed"):
        make_recording(tmp_path / "node.rec", make_snapshot(), other)


def test_simulate_reads_a_made_recording(tmp_path):
    path = make_recording(tmp_path / "node.rec.gz", make_snapshot(make_thread()))

    done = subprocess.run(
        [Path(sys.executable).with_name("temper"), "simulate", path],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode in (0, 1), done.stderr
    assert "node-1" in done.stdout


def test_the_page_names_the_whole_kit():
    named = set(re.findall(r"`(\w+)(?:\(|`)", PAGE))

    assert named >= {name for name in testing.__all__ if name != "MadeTrial"}


def test_an_agent_serves_the_plugin_of_the_page(tmp_path):
    plugins = tmp_path / "plugins"
    plugins.mkdir(mode=0o755)
    (plugins / "weekend.py").write_text(dict(FILE.findall(PAGE))["weekend.py"])
    path = tmp_path / "agent.toml"
    path.write_text(
        f'run_directory = "{tmp_path}/run"\nstate_directory = "{tmp_path}/state"\n'
        f'[server]\nlisten = ""\n[plugin_host]\ndirectory = "{plugins}"\nallow = ["weekend"]\n'
    )
    agent = subprocess.Popen(
        [Path(sys.executable).with_name("temper"), "agent", "--observe-only", "--settings", path],
        stderr=subprocess.DEVNULL,
    )
    try:
        names = answered(load_settings(path), "/weekend", {"most": "2"})
        metrics = answered(load_settings(path), "/metrics", {})
    finally:
        agent.terminate()
        agent.wait(PATIENCE_S)

    assert len(names) == 2
    assert "temper_weekend_cpus_used " in str(metrics)


def answered(settings, path, query):
    """Return the answer of an agent that may be starting, and that has seen some threads."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            answer = ask_agent(path, query, settings=settings)
        except MachineError:
            answer = None
        if answer or time.monotonic() > deadline:
            return answer
        time.sleep(0.2)


def test_the_examples_of_the_page_pass(tmp_path):
    for name, text in FILE.findall(PAGE):
        (tmp_path / name).write_text(text)
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["temper_core.testing"]\n')

    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert tested.returncode == 0, tested.stdout
    assert "12 passed" in tested.stdout
