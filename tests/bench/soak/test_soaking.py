"""The parts of a soak on real processes: a program that leaks, pods, and an agent."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.soak.__main__ import settings_text
from bench.soak.churn import UNIFIED, Churn, python_tenant
from bench.soak.disturbing import engine_of
from bench.soak.load import Askers
from bench.soak.report import MEASURES, plots, rows, table
from bench.soak.sampling import sample
from temper_core.node.podlist import read_pods
from temper_core.settings import Settings
from temper_core.settings.reader import load

LEAKS = "import os,time\nwhile True:\n os.open('/dev/null', 0)\n time.sleep(0.05)"
IDLES = "import time\nwhile True:\n time.sleep(0.05)"
LOOKS, PAUSE_S = 60, 0.05
CAN_CHURN = os.geteuid() == 0 and any((path / "cgroup.procs").exists() for path in UNIFIED)


def records_of(program, folder):
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        lines = []
        for look in range(LOOKS):
            time.sleep(PAUSE_S)
            # By the count of looks: a busy machine delays some of them.
            lines.append(sample(process.pid, folder, look * PAUSE_S).as_line())
    finally:
        process.kill()
        process.wait()
    return lines


def verdicts(records):
    return {row.measure.key: row.verdict for row in rows(records)}


def test_a_program_that_leaks_descriptors_is_found(tmp_path):
    told = verdicts(records_of(LEAKS, tmp_path))

    assert told["descriptors"] == "grows"
    assert told["threads"] == "does not grow"


def test_a_program_that_idles_grows_by_nothing(tmp_path):
    told = verdicts(records_of(IDLES, tmp_path))

    assert told["descriptors"] == told["threads"] == "does not grow"


def test_a_process_that_has_ended_cannot_be_looked_at(tmp_path):
    process = subprocess.Popen(["true"])
    process.wait()

    with pytest.raises(OSError, match="No such file"):
        sample(process.pid, tmp_path, 0)


def test_the_size_of_the_state_counts(tmp_path):
    before = sample(os.getpid(), tmp_path, 0)
    (tmp_path / "some").write_bytes(b"x" * 100_000)

    assert sample(os.getpid(), tmp_path, 0).state_kib - before.state_kib >= 97


def test_the_table_and_the_plots_have_every_measure(tmp_path):
    judged = rows(records_of(IDLES, tmp_path))

    shown = "\n".join(table(judged))
    assert all(f"| {measure.title} |" in shown for measure in MEASURES)
    assert len(plots(judged)) == len(MEASURES)


@pytest.mark.skipif(not CAN_CHURN, reason="cgroups of pods need root and cgroup v2")
def test_pods_come_and_go_and_leave_nothing():
    with Churn(2, python_tenant(3), every_s=0.2) as churn:
        while churn.begun <= 4:
            time.sleep(0.05)
        folders = [pod.folder for pod in churn._live]
        inside = [(folder / "cgroup.procs").read_text().split() for folder in folders]

    assert all(inside)
    assert not any(folder.parent.exists() for folder in folders)
    assert not any(Path(f"/proc/{pid}").exists() for pids in inside for pid in pids)


@pytest.mark.skipif(not CAN_CHURN, reason="cgroups of pods need root and cgroup v2")
def test_the_agent_is_told_of_the_pods_that_live(tmp_path):
    with Churn(3, python_tenant(1), 0.2, tmp_path / "pods.json") as churn:
        time.sleep(0.5)

        told = read_pods((tmp_path / "pods.json").read_text(), source="soak")
        middle = churn.middle

    assert {pod.priority for pod in told} == {1_000_000, 0, -1000}
    assert middle.startswith("soak/")


def test_the_engine_is_found_among_the_agents_children(tmp_path):
    (tmp_path / "scx_layered").symlink_to("/bin/sleep")
    with pytest.raises(ProcessLookupError):
        engine_of(os.getpid())

    with subprocess.Popen([tmp_path / "scx_layered", "60"]) as process:
        name = Path(f"/proc/{process.pid}/comm")
        while name.read_text() != "scx_layered\n":
            time.sleep(0.001)  # a process gets its name a moment after its program
        found = engine_of(os.getpid())
        process.kill()

    assert found == process.pid


def test_cgroups_and_instances_are_counted(tmp_path):
    for folder in ("tree/a/b", "instances/one"):
        (tmp_path / folder).mkdir(parents=True)
    for folder in ("tree", "tree/a", "tree/a/b"):
        (tmp_path / folder / "cgroup.procs").touch()

    seen = sample(os.getpid(), tmp_path, 0, tmp_path / "tree", tmp_path / "instances")

    assert (seen.cgroups, seen.instances) == (3, 1)


def test_anonymous_memory_is_a_part_and_the_machine_has_more_threads_than_the_process(tmp_path):
    seen = sample(os.getpid(), tmp_path, 0)

    assert 0 < seen.anonymous_mib < seen.rss_mib
    assert seen.machine_threads > seen.threads


def test_the_settings_are_those_of_an_agent_that_observes_or_enforces(tmp_path):
    file = tmp_path / "agent.toml"
    for engine in (None, Path("/opt/scx_layered")):
        file.write_text(settings_text(tmp_path, engine))
        settings = load(file).settings

        assert settings.scheduler.enforce is (engine is not None)
        assert settings.pods.source == ("file" if engine else Settings().pods.source)


def test_answers_and_failures_are_counted():
    def refuse():
        raise OSError

    with Askers({"good": (0.01, int), "bad": (0.01, refuse)}) as askers:
        time.sleep(0.5)

    assert askers.answered["good"] > 0
    assert askers.failed["bad"] > 0
    assert not askers.failed["good"]


def soak(*options):
    command = [sys.executable, "-m", "bench.soak", *map(str, options)]
    root = Path(__file__).parents[3]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=root)


def test_records_are_judged_again(tmp_path):
    lines = records_of(LEAKS, tmp_path)
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, lines)))

    judged = soak("--judge", "--out", tmp_path)

    assert judged.returncode == 1
    assert "| file descriptors |" in judged.stdout
    assert (tmp_path / "soak-descriptors.svg").exists()


def test_too_short_a_run_is_refused():
    refused = soak("--minutes", 1)

    assert refused.returncode == 2
    assert "--minutes is 1, and has to be 3 or more" in refused.stderr
