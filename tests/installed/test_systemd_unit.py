"""The unit for one plain host, as systemd reads it, and its bounds beside what the agent needs."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from temper_core.scheduler.preflight.node_checks import CAPABILITIES, NICE_CAPABILITY
from temper_core.scheduler.preflight.swap_memory import LOADING_BYTES
from temper_core.settings.models import Settings
from tests import systemd_unit
from tests.systemd_unit import UNIT, directives, writable

TEMPER = Path(sys.executable).with_name("temper")
CHART = UNIT.parents[1] / "helm/temper/values.yaml"
MOST_EXPOSED = 50
"""Tenths of what `systemd-analyze security` calls the exposure. It was 96 without any directive."""
BREAKING = {
    "PrivateDevices": "/dev/kmsg",
    "ProtectKernelLogs": "/dev/kmsg",
    "ProtectClock": "/dev/kmsg, by its list of devices",
    "ProtectKernelTunables": "/proc/sysrq-trigger and /sys/fs/bpf",
    "PrivateUsers": "capabilities of the host's user namespace",
    "PrivateNetwork": "the port",
    "PrivatePIDs": "the host's threads",
    "ProtectProc": "threads of all users",
    "ProcSubset": "/proc/pressure and /proc/sys",
    "ExecReload": "the agent, which SIGHUP ends and which reads settings at its start alone",
    "MemoryHigh": "the kernel throttles a load beyond it so far that it never ends",
}
"""Directives under which something that the agent uses is gone."""


@pytest.fixture
def unit(tmp_path):
    """The unit with this checkout's own program."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("this machine has no systemd-analyze")
    path = tmp_path / UNIT.name
    path.write_text(UNIT.read_text().replace(program(), str(TEMPER)))
    return path


def program():
    return directives()["ExecStart"].split()[0]


def in_bytes(size):
    return int(size[:-1]) * {"M": 1 << 20, "G": 1 << 30}[size[-1]]


def test_systemd_has_no_complaint_about_the_unit_and_what_it_starts_is_there(unit):
    arguments = directives()["ExecStart"].split()[1:]

    judged = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    helped = subprocess.run([TEMPER, *arguments, "--help"], capture_output=True, check=False)

    assert (judged.returncode, judged.stdout + judged.stderr) == (0, "")
    assert program().endswith("/.venv/bin/temper")
    assert helped.returncode == 0


def test_systemd_finds_the_agent_little_exposed(unit):
    command = ["systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSED}", unit]

    judged = subprocess.run(command, capture_output=True, text=True, check=False)

    assert judged.returncode == 0, judged.stdout + judged.stderr


def test_the_agent_has_the_rights_that_its_checks_ask_for_and_gets_no_more():
    given = directives()
    named = given["CapabilityBoundingSet"].split()
    numbers = {systemd_unit.CAPABILITIES[name] for name in named}

    assert numbers >= {*CAPABILITIES, NICE_CAPABILITY}
    assert given["NoNewPrivileges"] == "yes"
    assert not {"AmbientCapabilities", "SecureBits"} & given.keys()


def test_a_warm_swap_fits_into_the_memory_and_it_is_that_of_the_chart():
    given = directives()
    limits = yaml.safe_load(CHART.read_text())["agent"]["resources"]["limits"]

    assert in_bytes(given["MemoryMax"]) >= 2 * LOADING_BYTES
    assert f"{given['MemoryMax']}i" == limits["memory"]
    assert int(given["TasksMax"]) > 0


def test_what_the_agent_writes_by_default_is_writable():
    given, settings = directives(), Settings()
    places = writable(given)

    assert given["ProtectSystem"] == "strict"
    assert Path(settings.run_directory) in places
    assert Path(settings.state_directory) in places
    assert Path("/run/scx") in places  # scx_layered's own, also known as /var/run/scx
    assert Path(settings.scheduler.steering_pin).is_relative_to("/sys")
    assert given["RuntimeDirectoryPreserve"] == "yes"


@pytest.mark.parametrize("name", BREAKING)
def test_no_directive_takes_what_the_agent_uses(name):
    assert name not in directives(), f"it would take {BREAKING[name]}"


def test_no_denied_system_call_is_one_that_the_agent_or_the_engine_needs():
    if not shutil.which("systemd-analyze"):
        pytest.skip("this machine has no systemd-analyze")
    given = directives()
    denied = set(systemd_unit.denied_calls(given))
    needed = {"bpf", "perf_event_open", "mount", "unshare", "setpriority", "sched_setscheduler"}

    assert given["SystemCallFilter"].startswith("~")
    assert "mnt" in given["RestrictNamespaces"].split()
    assert "swapon" in denied
    assert not needed & denied
