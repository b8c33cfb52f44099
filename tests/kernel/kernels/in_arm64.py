"""What only an arm64 machine can show, run by pytest in the guest; see ``test_arm64.py``."""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from temper_core.node.topology import read_machine
from tests.kernel.backends.with_types import EMULATED
from tests.patience import PATIENCE_S
from tests.tracer.capture.scenes import assert_agrees, scene

TEMPER = Path(sys.executable).with_name("temper")
NO_ENGINE = {"engine", "warm_swap"}
SEVERAL_LOOKS_S = 8.0
START_S = 10 * PATIENCE_S
"""A command takes 11 s to start in the emulator, where the host is not busy."""


def told_by(*words: str | Path) -> dict[str, Any]:
    ran = subprocess.run([TEMPER, *words, "-o", "json"], stdout=subprocess.PIPE, check=False)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("settings")
    file = folder / "agent.toml"
    directories = f'run_directory = "{folder}/run"\nstate_directory = "{folder}/state"\n'
    # A plugin takes longer to import in the emulator than the usual deadline.
    file.write_text(f'{directories}[server]\nlisten = ""\n[plugin_host]\ndeadline_s = 600\n')
    return file


@pytest.fixture(scope="module")
def agent(settings: Path) -> Iterator[None]:
    log = settings.with_name("log")
    own = ("--settings", settings)
    with log.open("wb") as file:
        command = [TEMPER, "agent", "--observe-only", *own]
        process = subprocess.Popen(command, stderr=file, stdout=file)
    try:
        deadline = time.monotonic() + START_S
        while subprocess.run(
            [TEMPER, "observe", *own], capture_output=True, check=False
        ).returncode:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def test_the_machine_has_cores_without_siblings_in_clusters():
    machine = read_machine()

    assert machine.architecture == platform.machine() == "aarch64"
    assert (machine.cores, machine.threads_per_core) == (os.cpu_count(), 1)
    assert len({core.read_text() for core in clusters()}) == machine.cores // 2


def clusters() -> Iterator[Path]:
    return Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/cluster_cpus_list")


def test_the_plan_is_one_for_this_machine(settings):
    machine = told_by("plan", "--settings", settings)["machine"]

    assert machine["architecture"] == "aarch64"
    assert (machine["cores"], machine["threads_per_core"], machine["llcs"]) == (
        os.cpu_count(),
        1,
        1,
    )


def test_nothing_but_the_engine_is_missing(settings):
    checks = told_by("doctor", "--settings", settings)["checks"]

    assert {check["name"] for check in checks if check["state"] != "ok"} == NO_ENGINE


def test_the_recorder_agrees_with_schedstat_and_with_tracefs():
    found = scene("agreement", "bpf", "tracefs")

    assert_agrees(found, "tracefs", run_time_share=EMULATED)
    assert found["seen"]["bpf"]["child"] == "renamed-once"


@pytest.mark.usefixtures("agent")
def test_an_agent_sees_who_is_busy(settings):
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as spinner:
        time.sleep(SEVERAL_LOOKS_S)
        observed = told_by("observe", "--settings", settings)
        spinner.kill()

    busiest = observed["threads"][0]
    assert observed["machine"]["architecture"] == "aarch64"
    assert busiest["tid"] == spinner.pid
    assert busiest["cpu_used"] > 0.5


@pytest.mark.usefixtures("agent")
def test_a_capture_of_two_seconds_is_decoded(settings, tmp_path):
    file = tmp_path / "trace"
    own = ("--settings", settings)
    captured = told_by("trace", "capture", "--seconds", "2", "--out", file, *own)
    analyzed = told_by("trace", "analyze", file)

    assert (captured["backend"], captured["state"], captured["lost"]) == ("bpf", "finished", 0)
    assert analyzed["events"] == captured["events"] > 0
    assert analyzed["length_ns"] == pytest.approx(2e9, rel=0.2)
    assert analyzed["cpus"] == os.cpu_count()
