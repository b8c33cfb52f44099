import os
import subprocess
import time
from pathlib import Path

from attrs import evolve

from bench.enforcing.account import Reading, engine_in, resident_mib, run_s
from bench.ladder.kernel import Scheduler

METRICS = """# HELP temper_overhead_bpf_cpu_seconds_total CPU time of the agent.
# TYPE temper_overhead_cpu_seconds_total counter
temper_overhead_cpu_seconds_total{part="plan_user"} 1.5
temper_overhead_cpu_seconds_total{part="plan_kernel"} 0.25
temper_overhead_bpf_cpu_seconds_total 0.125
"""


def cgroup(folder: Path, usage_usec: int) -> Path:
    (folder / "cpu.stat").write_text(f"usage_usec {usage_usec}\n")
    (folder / "cgroup.procs").write_text(f"{os.getpid()}\n")
    return folder


def test_a_reading_has_what_the_agent_tells_of_its_parts(tmp_path):
    seen = Reading.take(os.getpid(), cgroup(tmp_path, 2_000_000), METRICS)

    assert seen.parts_s == {"plan_user": 1.5, "plan_kernel": 0.25}
    assert (seen.bpf_s, seen.agent_s, seen.engine_s) == (0.125, 2.0, 0.0)


def test_the_use_between_two_readings_is_in_per_cent_of_a_core(tmp_path):
    before = Reading.take(os.getpid(), cgroup(tmp_path, 2_000_000), METRICS)
    after = evolve(
        before,
        at_s=before.at_s + 50,
        scheduler=Scheduler("enabled", before.scheduler.attaches + 1),
        agent_s=before.agent_s + 0.1,
        parts_s={"plan_user": 1.6, "new": 0.05},
    )

    used = after.since(before)

    assert (used["seconds"], used["agent_percent"], used["attaches"]) == (50, 0.2, 1)
    assert used["parts_percent"] == {"plan_user": 0.2, "new": 0.1}


def test_the_engine_is_found_by_the_name_of_its_process(tmp_path):
    (tmp_path / "scx_layered").symlink_to("/bin/sleep")
    with subprocess.Popen([tmp_path / "scx_layered", "60"]) as process:
        folder = cgroup(tmp_path, 0)
        assert engine_in(folder) is None

        (folder / "cgroup.procs").write_text(f"{os.getpid()}\n{process.pid}\n")
        while not (found := engine_in(folder)):
            time.sleep(0.001)  # a process gets its name a moment after its program
        process.kill()

    assert found == process.pid


def test_a_process_has_run_and_is_in_memory():
    assert 0 < run_s(os.getpid()) < 3600
    assert resident_mib(os.getpid()) > 1
