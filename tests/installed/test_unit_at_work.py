"""A real agent under the unit of a plain host, without systemd: what it sees, and who is heard."""

import json
import shutil
import signal
import subprocess
import sys
from ctypes.util import find_library

import pytest

from tests import systemd_unit
from tests.own_host import NO_OWN_HOSTS, OwnHost, has_own_hosts, until
from tests.patience import PATIENCE_S

STRANGER = "a-strangers"
BUSY = f"printf {STRANGER} > /proc/self/comm; while :; do :; done"
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")

pytestmark = [
    pytest.mark.skipif(not has_own_hosts(), reason=NO_OWN_HOSTS),
    pytest.mark.skipif(
        not shutil.which("systemd-analyze") or not find_library("seccomp"),
        reason="this machine has no systemd-analyze or no libseccomp",
    ),
]


@pytest.fixture
def host(tmp_path):
    made = OwnHost(tmp_path)
    yield made
    made.close()


@pytest.fixture
def agent(host, tmp_path):
    """Start an agent with default settings under the unit."""
    under = (sys.executable, systemd_unit.__file__)
    process = host.start(tmp_path / "agent.toml", under=under)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def stranger(host):
    process = subprocess.Popen(host.command(*NOBODY, "sh", "-c", BUSY))
    yield process
    process.kill()
    process.wait()


def status_of(host, pid):
    lines = host.shell(f"cat /proc/{pid}/status").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def observation(host):
    said = host.temper("observe", "--output", "json")
    return json.loads(said.stdout) if said.returncode == 0 else {"threads": []}


@pytest.mark.usefixtures("agent")
def test_the_agent_has_the_units_capabilities_and_no_others(host):
    status = status_of(host, host.pid_of_agent())
    named = systemd_unit.directives()["CapabilityBoundingSet"].split()
    mask = sum(1 << systemd_unit.CAPABILITIES[name] for name in named)

    assert {int(status[key], 16) for key in ("CapEff", "CapPrm", "CapBnd")} == {mask}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


@pytest.mark.usefixtures("agent", "stranger")
def test_the_agent_sees_threads_of_other_users(host, tmp_path):
    def is_seen():
        threads = observation(host)["threads"]
        return any(each["comm"] == STRANGER for each in threads)

    until(is_seen, tmp_path / "log")
    assert "lacks" not in observation(host)["observing"]["reason"]


@pytest.mark.usefixtures("agent")
def test_the_kill_switch_reaches_the_agent_by_its_socket_and_by_the_file(host, tmp_path):
    def requesters():
        said = host.temper("safe-mode", "status", "--output", "json")
        [found] = json.loads(said.stdout)["agents"]
        return set(found["requests"])

    on = host.temper("safe-mode", "on", "--reason", "a test")
    assert (on.returncode, requesters()) == (0, {"cli"}), on.stderr
    assert "a test" in host.shell("cat /var/lib/temper/safe-mode-requests.json")
    off = host.temper("safe-mode", "off")
    assert (off.returncode, requesters()) == (0, set()), off.stderr

    host.shell("echo by hand > /var/lib/temper/safe-mode")
    until(lambda: requesters() == {"file"}, tmp_path / "log")
    host.shell("rm /var/lib/temper/safe-mode")
    until(lambda: not requesters(), tmp_path / "log")


@pytest.mark.usefixtures("agent")
def test_the_kill_switch_works_after_the_state_directory_was_replaced(host, tmp_path):
    host.shell("rm -r /var/lib/temper; mkdir /var/lib/temper; touch /var/lib/temper/safe-mode")

    def has_heard():
        said = host.temper("safe-mode", "status", "--output", "json")
        [found] = json.loads(said.stdout)["agents"]
        return "file" in found["requests"]

    until(has_heard, tmp_path / "log")


def test_a_stop_leaves_what_restore_removes(host, agent):
    host.shell(f"kill -{signal.SIGTERM.value} {host.pid_of_agent()}")
    assert agent.wait(PATIENCE_S) == 0

    restored = host.temper("restore")

    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert host.shell("find /run/temper /var/lib/temper -type f 2>/dev/null || true") == ""
