"""``temper restore`` on real files: what goes, what stays, and when it refuses."""

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from temper_core.cli.restore import command
from temper_core.errors import EXIT_FINDINGS, EXIT_MACHINE, InputError, MachineError
from temper_core.events.event_file import EventFile
from temper_core.node.cgroups import detect_cgroups
from temper_core.restoring import nice_values
from temper_core.restoring.restoration import refuse_beside_agent
from temper_core.scheduler.preflight.node_checks import start_of
from temper_core.steering.niceness import GivenBack
from tests.core.node.trees import make_cgroup, make_hierarchy
from tests.patience import PATIENCE_S

LOCKING = """
import sys, time
from pathlib import Path
from temper_core.scheduler.host.agent_lock import agent_lock
with agent_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def restore(made, monkeypatch):
    """Run the command on the made host; whatever it raises of ours is given back."""
    monkeypatch.setattr("temper_core.scheduler.host.roots.Roots.of", lambda _settings: made.roots)
    # What somebody else runs on this machine by `temper run` is none of these tests' business.
    cgroups = detect_cgroups(made.folder / "no-proc", make_hierarchy(made.folder / "cgroup"))
    monkeypatch.setattr("temper_core.launch.detect_cgroups", lambda: cgroups)

    def run(*options):
        return CliRunner().invoke(command, ["--settings", str(made.path), *options])

    return run


@pytest.fixture
def start_engine(made):
    """Start processes that call themselves scx_layered; they end with the test, however it does."""
    started = []

    def start(script):
        shell = made.folder / "scx_layered"
        shutil.copy("/bin/sh", shell)
        started.append(subprocess.Popen([str(shell), "-c", script], start_new_session=True))
        comm = Path(f"/proc/{started[-1].pid}/comm")
        # The kernel gives the name a moment after Popen has heard of the exec.
        while comm.read_text() != "scx_layered\n":
            time.sleep(0.01)
        return started[-1]

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_all_that_a_killed_agent_left_goes_with_its_directories(made, restore):
    left = made.left_by_a_killed_agent()

    done = restore("--output", "json")

    told = json.loads(done.stdout)
    known = {str(path) for path in left} - {str(made.run / "agent.lock")}
    assert done.exit_code == 0
    assert known <= set(told["removed"])
    assert told["left"] == []
    assert not made.run.exists()
    assert not made.state.exists()


def test_settings_that_others_may_change_are_listed_by_and_not_acted_by(made, restore):
    made.path.chmod(0o666)

    refused, listed = restore(), restore("--dry-run")

    assert isinstance(refused.exception, InputError)
    assert "every user may write" in str(refused.exception)
    assert listed.exception is None or isinstance(listed.exception, SystemExit)
    assert listed.output


NOT_PERMITTED = GivenBack(changed=1, denied=2)


def test_nice_values_that_may_not_be_changed_are_a_failure_and_stay_on_record(
    made, restore, monkeypatch
):
    record = made.put(made.run / "niceness.json", "{}")
    monkeypatch.setattr(nice_values, "give_back_all", lambda _: NOT_PERMITTED)

    done = restore("--output", "json")

    told = json.loads(done.stdout)
    assert isinstance(done.exception, SystemExit | MachineError)
    assert done.exit_code == EXIT_MACHINE
    assert "nice values of boosted threads: 1" in told["removed"]
    assert [left["path"] for left in told["left"]] == [str(record)]
    assert "CAP_SYS_NICE" in told["left"][0]["why"]
    assert record.exists()


def test_a_second_time_there_is_nothing_to_do(made, restore):
    made.left_by_a_killed_agent()
    restore()

    again = restore()

    assert (again.exit_code, again.stdout) == (0, "nothing of Temper's is on this host\n")


def test_a_dry_run_names_all_of_it_and_touches_nothing(made, restore):
    left = made.left_by_a_killed_agent()
    before = made.everything()

    dry = restore("--dry-run", "--output", "json")

    told = json.loads(dry.stdout)
    assert told["dry_run"] is True
    assert {str(path) for path in left} <= set(told["removed"])
    assert {str(made.run), str(made.state)} <= set(told["removed"])
    assert made.everything() == before


def test_the_operators_switch_stays_unless_all_is_to_go(made, restore):
    switch = made.put(made.state / "safe-mode", "maintenance")

    kept = restore()
    is_kept = switch.exists()
    gone = restore("--all")

    assert (kept.exit_code, is_kept) == (0, True)
    assert f"kept: {switch}: the operator's own switch" in kept.stdout
    assert (gone.exit_code, switch.exists()) == (0, False)


def test_the_switch_stays_however_its_path_is_spelt(made, restore):
    made.path.write_text(made.path.read_text().replace("lib/temper/safe", "lib//./temper/safe"))
    switch = made.put(made.state / "safe-mode", "maintenance")

    assert restore().exit_code == 0
    assert switch.exists()


@pytest.mark.parametrize("name", ["notes.txt", "engine-notes.json", "engine-7.json.bak"])
def test_what_is_not_tempers_is_named_and_left(made, restore, name):
    stranger = made.put(made.run / name)
    made.put(made.run / "engine-7.json")

    done = restore()

    assert done.exit_code == EXIT_FINDINGS
    assert f"left: {stranger}: is not Temper's" in done.stdout
    assert [path.name for path in made.run.iterdir()] == [name]


def test_links_are_unlinked_and_never_followed(made, restore, tmp_path):
    treasure = made.put(tmp_path / "elsewhere/shadow", "secret")
    made.state.mkdir(parents=True)
    (made.state / "requests.json").symlink_to(treasure)
    made.run.mkdir(parents=True)
    (made.run / "engine-1.json").symlink_to(treasure)

    done = restore()

    assert done.exit_code == 0
    assert treasure.read_text() == "secret"
    assert not made.state.exists()
    assert not made.run.exists()


def test_a_directory_that_is_a_link_is_left_with_what_it_leads_to(made, restore, tmp_path):
    held = made.put(tmp_path / "elsewhere/requests.json")
    made.state.parent.mkdir(parents=True)
    made.state.symlink_to(held.parent)

    done = restore()

    assert done.exit_code == EXIT_FINDINGS
    assert f"{made.state}: is a link to {held.parent}" in done.stdout
    assert held.exists()


def test_a_directory_of_a_known_name_is_not_removed(made, restore):
    inside = made.put(made.state / "requests.json/precious")

    done = restore()

    assert done.exit_code == EXIT_MACHINE
    assert "NOT REMOVED" in done.stdout
    assert inside.exists()


def test_other_files_beside_settings_of_another_directory_are_nobodys_business(made, restore):
    path = made.folder / "etc/requests.json"
    made.path.write_text(made.path.read_text().replace(f"{made.state}/requests.json", str(path)))
    neighbour = made.put(made.folder / "etc/passwd")
    made.put(path)

    done = restore()

    assert (done.exit_code, path.exists(), neighbour.exists()) == (0, False, True)
    assert "passwd" not in done.stdout


def test_what_is_no_socket_is_not_taken_for_the_agents(made, restore):
    precious = made.put(made.folder / "home/precious")
    made.path.write_text(made.path.read_text().replace(f"{made.run}/agent.sock", str(precious)))

    done = restore()

    assert (done.exit_code, precious.exists()) == (EXIT_FINDINGS, True)
    assert f"left: {precious}: is not a socket" in done.stdout


def test_names_that_are_no_text_are_told_by_lines_that_are(made, restore):
    made.run.mkdir(parents=True)
    (made.run / os.fsdecode(b"caf\xe9\x1b[31m")).write_text("x")

    lines, table = restore(), json.loads(restore("--output", "json").stdout)

    assert lines.exit_code == EXIT_FINDINGS
    assert "\x1b" not in lines.stdout
    assert len(lines.stdout.splitlines()) == 1
    assert os.fsencode(table["left"][0]["path"]).endswith(b"caf\xe9\x1b[31m")


def test_of_very_many_strangers_the_first_are_named_and_the_rest_counted(made, restore):
    for number in range(130):
        made.put(made.state / f"core.{number:03}")

    told = json.loads(restore("--output", "json").stdout)["left"]

    assert len(told) == 101
    assert told[-1] == {
        "path": str(made.state),
        "why": "30 more entries are not Temper's",
        "state": "unknown",
    }


@pytest.mark.parametrize(
    ("make", "told"),
    [(os.mkfifo, "is not a regular file"), (os.mkdir, "is not a regular file")],
    ids=["pipe", "directory"],
)
def test_what_stands_in_the_place_of_the_lock_is_told_and_not_waited_for(made, restore, make, told):
    made.run.mkdir(parents=True)
    make(made.run / "agent.lock")

    refused = restore()

    assert isinstance(refused.exception, MachineError)
    assert f"{made.run}/agent.lock: {told}" in str(refused.exception)


def test_a_lock_that_is_a_link_is_told(made, restore, tmp_path):
    treasure = made.put(tmp_path / "elsewhere/shadow", "secret")
    made.run.mkdir(parents=True)
    (made.run / "agent.lock").symlink_to(treasure)

    refused = restore()

    assert f"{made.run}/agent.lock: is a link" in str(refused.exception)
    assert treasure.read_text() == "secret"


@pytest.mark.parametrize("name", ["engine-7.json", "engine.pid"])
def test_a_pipe_in_the_place_of_a_note_is_removed_and_not_waited_for(made, restore, name):
    made.run.mkdir(parents=True)
    os.mkfifo(made.run / name)

    assert restore().exit_code == 0
    assert not made.run.exists()


@pytest.mark.parametrize("note", ["² 1", "99999999999999999999999 1", "-1 1", "1"])
def test_a_note_of_an_engine_that_makes_no_sense_is_removed(made, restore, note):
    made.put(made.run / "engine.pid", note)

    assert restore().exit_code == 0
    assert not made.run.exists()


@pytest.mark.parametrize("option", ["--dry-run", "--all"])
def test_it_refuses_while_an_agent_holds_the_lock(made, restore, option):
    left = made.left_by_a_killed_agent()
    with subprocess.Popen(
        [sys.executable, "-c", LOCKING, str(made.run)], stdout=subprocess.PIPE, text=True
    ) as agent:
        agent.stdout.readline()

        refused = restore(option)
        agent.kill()

    assert isinstance(refused.exception, MachineError)
    assert f"process {agent.pid} holds {made.run}/agent.lock" in str(refused.exception)
    assert len(str(refused.exception).splitlines()) == 1
    assert all(path.exists() for path in left)


def test_it_refuses_while_an_agent_that_only_observes_listens(made, restore):
    made.run.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(made.run / "agent.sock"))
        listening.listen(1)

        refused = restore()

    assert isinstance(refused.exception, MachineError)
    assert "it listens on" in str(refused.exception)
    assert (made.run / "agent.sock").exists()


def test_it_refuses_beside_an_agent_of_the_same_settings_without_a_socket(made, restore):
    made.run.mkdir(parents=True)
    agent = [sys.executable, "-c", "import time; time.sleep(600)", "temper", "agent"]
    with subprocess.Popen([*agent, "--settings", str(made.path)]) as process:
        while b"time.sleep" not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.01)
        refused = restore()
        process.kill()

    assert isinstance(refused.exception, MachineError)
    assert f"process {process.pid}" in str(refused.exception)


@pytest.mark.parametrize("option", ["--all", "--dry-run"])
def test_it_refuses_while_an_agent_of_other_settings_writes_into_its_state(made, restore, option):
    events = EventFile(made.state / "events.jsonl")
    events.append([b"{}\n"])

    refused = restore(option)
    events.close()
    freed = restore(option)

    assert isinstance(refused.exception, MachineError)
    assert f"it writes {events.path}" in str(refused.exception)
    assert (freed.exit_code, events.path.exists()) == (0, option == "--dry-run")


def test_it_refuses_while_a_listener_hangs_and_takes_nobody_in_any_more(made, restore):
    made.run.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as hanging, socket.socket(socket.AF_UNIX) as waiting:
        hanging.bind(str(made.run / "agent.sock"))
        hanging.listen(0)
        waiting.connect(str(made.run / "agent.sock"))

        refused = restore()

    assert "it listens on" in str(refused.exception)


@pytest.mark.skipif(shutil.which("chattr") is None, reason="needs chattr")
def test_what_even_root_may_not_remove_is_told_with_another_remedy(made, restore):
    held = made.put(made.run / "engine-7.json")
    if subprocess.run(["chattr", "+i", held], check=False, capture_output=True).returncode != 0:
        pytest.skip("this file system knows no immutable files, or this is not root")
    try:
        done = restore()
    finally:
        subprocess.run(["chattr", "-i", held], check=True)

    assert done.exit_code == EXIT_MACHINE
    assert "is it immutable?" in done.stdout
    assert "run as root" not in done.stdout


def test_a_cgroup_of_temper_run_in_which_a_command_lives_stays(made, restore):
    path = "temper.slice/run-alive@low"
    living = make_cgroup(made.folder / "cgroup", path, cgroup_events="populated 1\n")

    done = restore()

    assert done.exit_code == EXIT_FINDINGS
    assert f"left: {living}: a command of temper run still runs in it" in done.stdout
    assert living.exists()


def test_a_cgroup_that_is_left_because_a_user_holds_the_lock_is_named(made, restore):
    path = "temper.slice/run-empty@low"
    empty = make_cgroup(made.folder / "cgroup", path, cgroup_events="populated 0\n")
    descriptor = os.open(made.folder / "cgroup", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # every user may hold it
    try:
        done = restore()
    finally:
        os.close(descriptor)

    assert done.exit_code == EXIT_FINDINGS
    assert f"left: {empty}: another process holds the lock of temper run" in done.stdout


def test_an_engine_that_outlived_its_agent_is_ended(made, restore, start_engine):
    engine = start_engine("trap '' TERM; while :; do sleep 0.1; done")
    made.put(made.run / "engine.pid", f"{engine.pid} {start_of(engine.pid)}\n")

    done = restore()

    assert done.exit_code == 0
    assert f"removed: scx_layered (process {engine.pid})" in done.stdout
    assert engine.wait(PATIENCE_S) < 0


def test_a_process_that_only_has_the_number_of_an_engine_lives_on(made, restore, start_engine):
    other = start_engine("sleep 600")
    made.put(made.run / "engine.pid", f"{other.pid} {int(start_of(other.pid)) - 1}\n")

    restore()

    assert other.poll() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_who_may_not_look_is_told_to_become_root(made):
    made.left_by_a_killed_agent()
    settings = made.settings
    os.seteuid(65534)
    try:
        with pytest.raises(MachineError, match="run as root"):
            refuse_beside_agent(settings, made.roots)
    finally:
        os.seteuid(0)
