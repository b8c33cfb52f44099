"""``temper safe-mode`` beside real agents: it reaches each of them, or fails with a remedy.

Each test runs in a host of its own.
"""

import json
import os
import signal
import subprocess
import sys

import pytest

from temper_core import ask_agent, load_settings
from tests.own_host import (
    ENVIRONMENT,
    NO_OWN_HOSTS,
    TCP_ONLY,
    TEMPER,
    OwnHost,
    has_own_hosts,
    until,
)

pytestmark = pytest.mark.skipif(not has_own_hosts(), reason=NO_OWN_HOSTS)


@pytest.fixture
def host(tmp_path):
    made = OwnHost(tmp_path)
    yield made
    made.close()


@pytest.fixture
def running(host):
    """Start agents, and end them."""
    processes = []

    def start(settings, *options):
        processes.append(host.start(settings, *options))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


def requests_of(settings):
    """Ask the agent itself, on its socket."""
    return set(ask_agent("/safe-mode", settings=load_settings(settings))["requests"])


def test_an_agent_with_other_settings_hears_the_switch(host, running):
    settings = host.settings("other")
    running(settings)

    on = host.temper("safe-mode", "on", "--reason", "slow")

    assert requests_of(settings) == {"cli"}
    assert on.returncode == 0, on.stderr
    assert f"temper agent --observe-only --settings {settings}) has heard" in on.stdout
    assert "/var/lib/temper/safe-mode now requests safe mode" in on.stdout


def test_an_agent_on_the_usual_tcp_address_hears_over_its_own_socket(host, running):
    settings = host.settings("make-run", '[server]\nlisten = "127.0.0.1:9100"\n')
    running(settings)

    on = host.temper("safe-mode", "on", "--reason", "slow")
    between = requests_of(settings)
    off = host.temper("safe-mode", "off")

    assert (on.returncode, between) == (0, {"cli"}), on.stderr
    assert "has heard" in on.stdout
    assert "/var/lib/temper/safe-mode: file requests safe mode" in on.stdout
    assert (off.returncode, requests_of(settings)) == (0, set()), off.stdout
    assert host.shell("ls /var/lib/temper") == ""


def test_off_withdraws_from_every_agent_and_from_the_file(host, running):
    settings = [host.settings("one"), host.settings("two")]
    for path in settings:
        running(path)
    host.temper("safe-mode", "on")

    off = host.temper("safe-mode", "off")

    assert [requests_of(path) for path in settings] == [set(), set()]
    assert (off.returncode, off.stdout.count("has heard")) == (0, 2), off.stdout
    assert "no request for safe mode stands" in off.stdout
    assert host.shell("ls /var/lib/temper") == ""


def test_off_for_one_names_the_hosts_file_that_stands(host, running):
    settings = host.settings("other")
    running(settings)
    host.shell("mkdir /var/lib/temper; echo 'ask Jo' >/var/lib/temper/safe-mode")

    off = host.temper("safe-mode", "off", "--settings", str(settings))

    assert off.returncode == 1
    assert "file requests safe mode" in off.stdout
    assert "ask Jo" in off.stdout
    assert "no request for safe mode stands" not in off.stdout


def test_off_names_what_others_request_of_other_agents(host, running):
    first, second = host.settings("first"), host.settings("second")
    running(first)
    running(second)
    host.temper("safe-mode", "on", "--requester", "alice", "--settings", str(second))

    off = host.temper("safe-mode", "off", "--settings", str(first))

    assert off.returncode == 1
    assert "alice requests safe mode" in off.stdout


def test_on_for_one_asks_no_other_and_names_it(host, running):
    first, second = host.settings("first"), host.settings("second")
    running(first)
    running(second)

    on = host.temper("safe-mode", "on", "--settings", str(first))

    assert on.returncode == 0
    assert (requests_of(first), requests_of(second)) == ({"cli"}, set())
    assert f"--settings {second}) runs, mode observe_only" in on.stdout


def test_on_for_an_agent_that_does_not_run_fails_beside_one_that_does(host, running):
    absent, present = host.settings("absent"), host.settings("present")
    running(present)

    on = host.temper("safe-mode", "on", "--settings", str(absent))

    assert on.returncode == 3
    assert f"--settings {present}) was NOT asked; run: temper safe-mode on" in on.stderr


def test_an_agent_without_a_socket_is_named_with_the_command_that_reaches_it(host, running):
    settings = host.settings("other", TCP_ONLY)
    running(settings)

    on = host.temper("safe-mode", "on")

    assert on.returncode == 3
    assert "has NOT heard: it listens on no local socket" in on.stderr
    assert f"run: temper safe-mode on --settings {settings}" in on.stderr


def test_an_agent_whose_socket_is_gone_is_named_and_its_settings_are_the_remedy(host, running):
    settings = host.settings("other")
    running(settings)
    (settings.parent / "run/agent.sock").unlink()

    on = host.temper("safe-mode", "on")

    assert on.returncode == 3
    assert f"run: temper safe-mode on --settings {settings}" in on.stderr


def test_an_agent_that_hangs_is_named_with_the_signal_that_ends_it(host, running):
    settings = host.settings("other")
    running(settings)
    pid = host.pid_of_agent()
    host.shell(f"kill -STOP {pid}")

    on = host.temper("safe-mode", "on")

    assert on.returncode == 3
    assert f"process {pid} (temper agent" in on.stderr
    assert f"run: kill -KILL {pid}" in on.stderr


def test_the_agents_own_settings_reach_it_by_its_file_where_it_lets_nobody_act(host, running):
    settings = host.settings("other", TCP_ONLY.replace(":0", ":9123"))
    running(settings)

    on = host.temper("safe-mode", "on", "--settings", str(settings))

    assert on.returncode == 0, on.stderr
    assert f"{settings.parent}/state/safe-mode now requests safe mode" in on.stdout
    assert "has heard" in on.stdout
    status = host.temper("safe-mode", "status", "--output", "json", "--settings", str(settings))
    assert set(json.loads(status.stdout)["requests"]) == {"file"}


def test_a_holder_of_the_nodes_lock_that_did_not_hear_is_named(host, running):
    settings = host.settings("other")
    running(settings)
    hold = "mkdir /run/temper; exec flock /run/temper/agent.lock sh -c 'echo held; exec cat'"
    holder = subprocess.Popen(
        host.command("sh", "-c", hold), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"

        on = host.temper("safe-mode", "on")

        assert on.returncode == 3
        assert "holds /run/temper/agent.lock, so it may enforce, and has NOT heard" in on.stderr
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.stdin.close()
        holder.stdout.close()
        holder.wait()


@pytest.mark.parametrize("state", ["ro", "nr_inodes=1"], ids=["read-only", "no-inodes"])
def test_a_request_that_no_disk_keeps_holds_and_fails_loudly(host, running, state):
    settings = host.settings("other")
    folder = settings.with_name("state")
    host.shell(f"mkdir {folder}; mount -t tmpfs -o {state} none {folder}")
    running(settings)

    on = host.temper("safe-mode", "on", "--reason", "slow")
    status = host.temper("safe-mode", "status")
    host.shell(f"umount {folder}")
    again = host.temper("safe-mode", "on", "--reason", "slow")

    assert on.returncode == 3
    assert "has heard, but its successor may not know of it" in on.stderr
    assert "safe-mode-requests.json cannot be written" in on.stderr
    assert "run: temper safe-mode on" in on.stderr
    assert "cli requests safe mode" in on.stdout
    assert "keeps no change" in status.stdout
    assert again.returncode == 0, again.stderr
    assert (folder / "safe-mode-requests.json").exists()


def test_an_agent_whose_socket_is_in_a_mount_namespace_of_its_own_hears(host):
    settings = host.settings("contained")
    folder, log = settings.parent, settings.with_name("log")
    script = (
        f"mkdir {folder}/run; mount -t tmpfs none {folder}/run; "
        f"exec {TEMPER} agent --observe-only --settings {settings}"
    )
    with log.open("w") as file:
        agent = subprocess.Popen(
            host.command("unshare", "--mount", "sh", "-c", script), stderr=file, env=ENVIRONMENT
        )
    try:
        until(lambda: "agent_started" in log.read_text(), log)

        on = host.temper("safe-mode", "on")

        assert not list((folder / "run").iterdir())
        assert on.returncode == 0, on.stderr
        assert f"--settings {settings}) has heard" in on.stdout
        assert "there cli requests safe mode" in on.stdout
    finally:
        agent.kill()
        agent.wait()


def test_a_named_agent_that_hangs_is_told_with_the_signal_that_ends_it(host, running):
    settings = host.settings("other")
    running(settings)
    pid = host.pid_of_agent()
    host.shell(f"kill -STOP {pid}")

    on = host.temper("safe-mode", "on", "--settings", str(settings))

    assert on.returncode == 3
    assert f"run: kill -KILL {pid}" in on.stderr
    assert (settings.parent / "state/safe-mode").exists()


def test_the_file_is_written_while_an_agent_that_hangs_is_still_waited_for(host, running):
    settings = host.settings("other")
    running(settings)
    file = settings.parent / "state/safe-mode"
    pid = host.pid_of_agent()
    host.shell(f"kill -STOP {pid}")
    command = host.command(TEMPER, "safe-mode", "on", "--settings", str(settings))
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=ENVIRONMENT) as switch:
        until(file.exists, settings.with_name("log"))
        was_waiting = switch.poll() is None
        host.shell(f"kill -CONT {pid}")

    assert was_waiting
    assert switch.returncode == 0
    assert requests_of(settings) == {"cli", "file"}


def test_a_process_that_poses_as_an_agent_is_named_without_control_characters(host, tmp_path):
    (tmp_path / "temper").write_text("import sys\nsys.stdin.read()\n")
    posing = host.command(sys.executable, str(tmp_path / "temper"), "agent", "\x1b]0;x\x07\x9b2J")
    with subprocess.Popen(posing, stdin=subprocess.PIPE, env=ENVIRONMENT) as process:
        until(
            lambda: "temper agent" in host.temper("safe-mode", "status").stdout, tmp_path / "temper"
        )

        on = host.temper("safe-mode", "on")

        process.stdin.close()
    assert on.returncode == 3
    assert "has NOT heard: it listens on no local socket" in on.stderr
    assert not set("\x1b\x07\x9b") & set(on.stdout + on.stderr)


def test_without_any_agent_the_file_is_enough(host):
    on = host.temper("safe-mode", "on")

    assert on.returncode == 0
    assert host.shell("cat /var/lib/temper/safe-mode").startswith("temper safe-mode on by cli")


def test_commands_that_only_name_an_agent_are_none(host):
    decoy = subprocess.Popen(
        host.command("sh", "-c", "cat; : temper agent", "temper", "agent"), stdin=subprocess.PIPE
    )
    try:
        assert host.temper("safe-mode", "on").returncode == 0
    finally:
        decoy.stdin.close()
        decoy.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_a_user_who_may_not_ask_is_given_the_command_that_may(host, running):
    another = ("setpriv", "--reuid=65534", "--clear-groups")
    if subprocess.run([*another, TEMPER, "--version"], check=False).returncode != 0:
        pytest.skip("another user cannot read this checkout, or not run this Python")
    settings = host.settings("other")
    running(settings)

    on = subprocess.run(
        host.command(*another, TEMPER, "safe-mode", "on"),
        check=False,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )

    assert on.returncode == 3
    assert "has NOT heard: this user may not ask it; run: sudo temper safe-mode on" in on.stderr
