"""Processes that look like agents, and are another user's or never answer."""

import os
import socket
import threading
import time

import pytest

from temper_core.cli import safe_mode_agents, safe_mode_switch, silent_agent
from temper_core.cli.safe_mode_agents import Asking, Question
from temper_core.cli.safe_mode_outcome import Host
from temper_core.cli.safe_mode_round import named_agent
from temper_core.cli.safe_mode_switch import Switch
from temper_core.errors import MachineError
from temper_core.safe_mode.host_file import SafeModeFile
from temper_core.scheduler.host import running_agents
from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.host.running_agents import AgentProcess
from temper_core.settings.models import SafeModeSettings, ServerSettings, Settings
from tests.patience import PATIENCE_S

ANOTHER = 65_534


@pytest.fixture
def seen(tmp_path):
    """Return a function that makes a process with a settings file as /proc shows it."""

    def make(pid, user=0, settings="agent.toml"):
        path = tmp_path / settings
        path.touch()
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "cwd").symlink_to(tmp_path)
        return AgentProcess(pid, user, ("--settings", str(path)), tmp_path / "proc")

    return make


def refuses(_):
    raise ConnectionRefusedError("nothing listens")


@pytest.fixture(autouse=True)
def _sockets_are_named_by_process(monkeypatch):
    monkeypatch.setattr(AgentProcess, "local_socket", lambda self: str(self.pid))
    monkeypatch.setattr(safe_mode_agents, "socket_settings", int)


def test_the_settings_of_roots_agent_are_a_remedy(seen):
    agent = seen(7)

    report = Question("on", refuses).report(agent)

    assert report.remedy == f"temper safe-mode on --settings {agent.settings_path}"


@pytest.mark.parametrize("user", [ANOTHER, 1])
def test_the_settings_that_another_users_process_names_are_no_remedy(seen, user):
    report = Question("on", refuses).report(seen(7, user))

    assert report.remedy == "kill -KILL 7"


def test_settings_that_others_may_write_are_no_remedy(seen, tmp_path):
    agent = seen(7)
    (tmp_path / "agent.toml").chmod(0o666)

    assert Question("on", refuses).report(agent).remedy == "kill -KILL 7"


def test_a_process_that_never_answers_is_left_behind(seen, monkeypatch):
    monkeypatch.setattr(safe_mode_agents, "WITHIN_S", 0.3)
    released = threading.Event()

    def ask(pid):
        if pid < 40:
            released.wait(60)
        return {"requests": {}, "mode": "safe_mode"}

    agents = [seen(pid, ANOTHER) for pid in range(1, 40)]

    reports = list(Asking(Question("on", ask), [*agents, seen(50)]).reports())
    released.set()

    assert [report.pid for report in reports if report.has_heard] == [50]
    assert {report.problem for report in reports[1:]} == {"no answer within 0 s"}
    assert reports[1].remedy == "kill -KILL 1"


def test_of_too_many_processes_those_of_root_are_asked_and_the_rest_is_counted(seen, monkeypatch):
    monkeypatch.setattr(safe_mode_agents, "MOST_ASKED", 2)

    def ask(_):
        raise MachineError("hangs")

    agents = [*(seen(pid, ANOTHER) for pid in (1, 2, 4)), seen(3)]

    reports = list(Asking(Question("on", ask), agents).reports())

    assert [report.pid for report in reports] == [3, 1, 0]
    assert reports[2].name == "2 more of user 65534's processes that look like agents"
    assert reports[2].problem == "2 other agents were asked before"
    assert all(report.is_deaf for report in reports)


@pytest.fixture
def held():
    """An event that ends all reads that block."""
    event = threading.Event()
    yield event
    event.set()


def test_processes_that_block_their_readers_hide_no_agent_of_root(tmp_path, monkeypatch, held):
    """A process can hold the lock of its memory for good, by a file system of its own (FUSE)."""
    users = {
        1: ANOTHER,
        2: 0,
        **dict.fromkeys(range(3, 3 + 2 * running_agents.MOST_STUCK), ANOTHER),
    }
    for pid in users:
        (tmp_path / str(pid)).mkdir()
    monkeypatch.setattr(
        running_agents, "_processes", lambda _: [(user, pid) for pid, user in users.items()]
    )
    monkeypatch.setattr(running_agents, "READ_S", 0.05)

    def read_line(path, *_bound, **_options):
        if path.name == "cmdline" and path.parent.name != "2":
            held.wait(PATIENCE_S)
        return {"cmdline": "temper\0agent\0", "comm": "temper"}.get(path.name, "")

    monkeypatch.setattr(running_agents, "read_line", read_line)

    assert [agent.pid for agent in running_agents.find_agents(tmp_path)] == [2]


def test_processes_of_one_pod_that_block_hide_no_agent_whoever_runs_them(
    tmp_path, monkeypatch, held
):
    """The processes of a container are root's too, and may be older than the agent."""
    agent = 900
    for pid in (*range(1, 100), agent):
        owner = "system.slice/temper.service" if pid == agent else "kubepods.slice/a/pod1.slice"
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cgroup").write_text(f"0::/{owner}\n")
    monkeypatch.setattr(running_agents, "READ_S", 0.05)

    def read_line(path, *_bound, **_options):
        if path.name == "cmdline" and path.parent.name != str(agent):
            held.wait(PATIENCE_S)
        return {"cmdline": "temper\0agent\0", "comm": "python3"}.get(path.name, "")

    monkeypatch.setattr(running_agents, "read_line", read_line)

    assert [found.pid for found in running_agents.find_agents(tmp_path)] == [agent]


def test_a_process_with_another_name_is_not_asked_for_its_command_line(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "7/comm").write_text("mysqld\n")
    os.mkfifo(tmp_path / "7/cmdline")  # would block

    assert running_agents.find_agents(tmp_path) == ()


@pytest.mark.parametrize(
    "status", ["Uid:\t65534\t0\t0\t0\n", "Uid:\t0\t0\t0\t0\nGid:\t1000\t1000\t1000\t1000\n"]
)
def test_a_setuid_program_of_another_user_is_no_agent(tmp_path, status):
    """``su`` and ``sudo`` that wait for a password, by a link named ``python3``."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7/comm").write_text("python3\n")
    (tmp_path / "7/cmdline").write_text("./python3\0root\0temper\0agent\0")
    assert [agent.pid for agent in running_agents.find_agents(tmp_path)] == [7]

    (tmp_path / "7/status").write_text(status)

    assert running_agents.find_agents(tmp_path) == ()


def test_a_link_to_another_program_is_no_agent(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "7/comm").write_text("python3\n")
    (tmp_path / "7/cmdline").write_text("./python3\0root\0temper\0agent\0")
    (tmp_path / "7/exe").symlink_to("/usr/bin/su")

    assert running_agents.find_agents(tmp_path) == ()


def test_the_file_is_written_while_agents_are_still_looked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(silent_agent, "SILENT_S", 0.0)
    own = Settings(
        safe_mode=SafeModeSettings(str(tmp_path / "safe-mode"), str(tmp_path / "requests.json")),
        server=ServerSettings("", str(tmp_path / "agent.sock")),
    )

    def looked_for(*_, **__):
        deadline = time.monotonic() + PATIENCE_S
        while not (tmp_path / "safe-mode").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        raise MachineError("that took long")

    monkeypatch.setattr(safe_mode_switch, "Round", looked_for)

    with pytest.raises(MachineError, match="that took long"):
        Switch(own).on("cli", "a drill")


def test_a_pod_whose_processes_look_like_agents_leaves_places_to_others(seen, monkeypatch):
    monkeypatch.setattr(safe_mode_agents, "MOST_ASKED", 3)

    def in_pod(pid, pod):
        agent = seen(pid)
        path = f"kubepods.slice/kubepods-pod{pod * 8}_4a5b_6c7d_8e9f_0a1b2c3d4e5f.slice/{pid}"
        (agent.proc / str(pid) / "cgroup").write_text(f"0::/{path}\n")
        return agent

    agents = [*(in_pod(pid, "a") for pid in range(10, 20)), in_pod(20, "b"), in_pod(30, "c")]

    reports = [*Asking(Question("on", refuses), agents, holder=30).reports()]

    assert [report.pid for report in reports] == [30, 10, 20, 0]


def test_a_file_that_cannot_be_written_before_tcp_is_asked_is_told(tmp_path):
    file = SafeModeFile(tmp_path / "missing-parent" / "safe-mode")
    (tmp_path / "missing-parent").write_text("a file, and no folder")

    with silent_agent.FileIfSilent(lambda: file.add("cli", "a drill")) as silent:
        silent.write()

    assert not silent.is_written
    assert "safe-mode" in str(silent.problem)


@pytest.fixture
def no_thread(monkeypatch):
    """Let no thread start, as in a cgroup at its limit of processes."""

    def fail(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)


@pytest.mark.usefixtures("no_thread")
def test_without_a_thread_the_file_is_written_at_once(tmp_path):
    own = Settings(
        safe_mode=SafeModeSettings(str(tmp_path / "safe-mode"), str(tmp_path / "requests.json")),
        server=ServerSettings("", str(tmp_path / "agent.sock")),
    )

    roots = Roots(run=tmp_path, node=tmp_path)

    Switch(own, Host(roots, lambda: own)).on("cli", "a drill")

    assert "a drill" in (tmp_path / "safe-mode").read_text()


@pytest.mark.usefixtures("no_thread")
def test_without_a_thread_an_agent_is_reported_as_not_asked(seen):
    asking = Asking(Question("on", refuses, is_asked=True), [seen(7)])

    (report,) = asking.reports()

    assert (report.pid, report.has_heard) == (7, False)
    assert report.problem == "not asked: can't start new thread"
    assert report.remedy


def test_descriptors_are_looked_at_of_processes_whose_user_listens_on_the_port(monkeypatch):
    looked_at = []
    monkeypatch.setattr(AgentProcess, "listens_on_port", lambda self, _: looked_at.append(self.pid))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        settings = Settings(server=ServerSettings(f"127.0.0.1:{port}", ""))
        agents = tuple(AgentProcess(pid, user) for pid, user in ((7, ANOTHER), (8, os.geteuid())))

        assert named_agent(settings, agents) is None

    assert looked_at == [8]


def test_so_many_descriptors_of_another_user_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(running_agents, "MOST_DESCRIPTORS", 4)
    folder = tmp_path / "7/fd"
    folder.mkdir(parents=True)
    for number in range(9):
        (folder / str(number)).symlink_to(f"socket:[{number}]")

    counts = [len(AgentProcess(7, user, proc=tmp_path)._inodes()) for user in (0, ANOTHER)]

    assert counts == [9, 4]
