import json
import os
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temper_core.cli import safe_mode
from temper_core.client import NoAgentError
from temper_core.errors import InputError, MachineError, TemperError
from temper_core.safe_mode.host_file import SafeModeFile, requester_of

NAMES = st.from_regex(r"[A-Za-z0-9._@:-]{1,64}", fullmatch=True)


@pytest.mark.usefixtures("agent")
def test_on_asks_the_agent_and_leaves_no_file(temper, node, view):
    result = temper(safe_mode.command, "on", "--reason", "benchmark")

    assert result.exit_code == 0
    assert view.requests["cli"]["reason"] == "benchmark"
    assert "the agent was asked for safe mode by 'cli'" in result.output
    assert not node.file.exists()


@pytest.mark.usefixtures("agent")
def test_off_withdraws_and_is_clean_when_nobody_asks_any_more(temper, view):
    temper(safe_mode.command, "on")

    result = temper(safe_mode.command, "off")

    assert result.exit_code == 0
    assert "withdrawn from the agent" in result.output
    assert "no request for safe mode stands" in result.output
    assert view.requests == {}


@pytest.mark.usefixtures("agent")
def test_off_tells_who_else_asks_and_exits_with_findings(temper, view):
    view.requests["alice"] = {"reason": "incident 7", "since": 1.0}
    temper(safe_mode.command, "on")

    result = temper(safe_mode.command, "off")

    assert result.exit_code == 1
    assert "alice requests safe mode since 1970-01-01" in result.output
    assert "incident 7" in result.output


@pytest.mark.usefixtures("agent")
def test_off_without_a_request_says_so(temper):
    result = temper(safe_mode.command, "off", "--requester", "bob")

    assert result.exit_code == 0
    assert "'bob' had not requested it" in result.output


@pytest.mark.usefixtures("agent")
def test_status_tells_mode_and_requests_for_people_and_machines(temper, view):
    view.requests["alice"] = {"reason": "", "since": 1.0}

    table = temper(safe_mode.command, "status")
    document = json.loads(temper(safe_mode.command, "status", "--output", "json").output)

    assert table.output.startswith("mode: enforcing\nalice requests safe mode")
    assert document["mode"] == "enforcing"
    assert set(document["requests"]) == {"alice"}


def test_on_without_an_agent_leaves_the_file_with_who_when_and_why(temper, node):
    result = temper(safe_mode.command, "on", "--reason", "benchmark", "--requester", "alice")

    (line,) = node.file.read_text().splitlines()
    assert result.exit_code == 0
    assert "no agent answers at" in result.output
    assert f"{node.file} now requests safe mode from every agent that reads it" in result.output
    assert line.startswith(f"temper safe-mode on by alice (uid {os.getuid()}) at 20")
    assert line.endswith("Z: benchmark")
    assert stat.S_IMODE(node.file.stat().st_mode) & 0o022 == 0


def test_off_without_an_agent_removes_the_file_that_this_tool_made(temper, node):
    temper(safe_mode.command, "on")

    result = temper(safe_mode.command, "off")

    assert result.exit_code == 0
    assert f"withdrawn from {node.file}" in result.output
    assert list(node.file.parent.iterdir()) == []


def following(view, file):
    """Have the agent's requests be those of *file*, as a real agent's are."""
    request = {"file": {"reason": "", "since": 1.0}}
    view.safe_mode_requests = lambda: request if file.exists() else {}


def test_off_takes_back_the_file_that_on_left_where_an_agent_lets_nobody_act(
    temper, node, tcp_agent, view
):
    following(view, node.file)
    node.write_settings(str(tcp_agent.address), socket=str(node.folder / "absent.sock"))

    on = temper(safe_mode.command, "on")
    off = temper(safe_mode.command, "off")
    again = temper(safe_mode.command, "off")

    assert on.exit_code == 0
    assert off.exit_code == 0
    assert f"withdrawn from {node.file}; not from the agent: " in off.output
    assert not node.file.exists()
    assert isinstance(again.exception, TemperError)


def test_on_leaves_the_file_too_where_only_tcp_answers_as_any_uid_0_may_listen_there(
    temper, node, tcp_agent, view
):
    on = temper(safe_mode.command, "on", "--reason", "a drill")
    off = temper(safe_mode.command, "off")

    assert (on.exit_code, off.exit_code) == (0, 0)
    assert f"the agent was asked for safe mode by 'cli', and {node.file} requests it" in on.output
    assert f"the agent at {tcp_agent.address} has heard" in on.output
    assert not node.file.exists()
    assert view.requests == {}


def test_the_file_keeps_each_requesters_line_until_he_withdraws_it(temper, node):
    for name in ("alice", "bob", "alice"):
        temper(safe_mode.command, "on", "--requester", name)

    first = temper(safe_mode.command, "off", "--requester", "alice")
    lines = node.file.read_text().splitlines()
    second = temper(safe_mode.command, "off", "--requester", "bob")

    assert [requester_of(line) for line in lines] == ["bob"]
    assert first.exit_code == 1
    assert "by bob" in first.output
    assert second.exit_code == 0
    assert not node.file.exists()


@pytest.mark.parametrize("content", ["", "maintenance, ask Jo\n", "\x00\xff\n", "a\nb\n"])
def test_a_file_that_somebody_else_made_is_never_removed(temper, node, content):
    node.file.parent.mkdir()
    node.file.write_bytes(content.encode("latin-1"))

    result = temper(safe_mode.command, "off")

    assert result.exit_code == 1
    assert "file requests safe mode" in result.output
    assert node.file.read_bytes() == content.encode("latin-1")


def test_on_adds_to_a_file_that_somebody_else_made_and_off_takes_only_that_away(temper, node):
    node.file.parent.mkdir()
    node.file.write_text("maintenance, ask Jo\n")

    temper(safe_mode.command, "on")
    both = node.file.read_text().splitlines()
    result = temper(safe_mode.command, "off")

    assert len(both) == 2
    assert node.file.read_text() == "maintenance, ask Jo\n"
    assert result.exit_code == 1


@pytest.mark.parametrize("mode", [0o600, 0o640])
def test_the_file_keeps_its_rights_and_its_bytes(temper, node, mode):
    content = b"maintenance\r\n\x00\xff\x0bask Jo"
    node.file.parent.mkdir()
    node.file.write_bytes(content)
    node.file.chmod(mode)

    temper(safe_mode.command, "on")
    both = node.file.read_bytes()
    modes = [stat.S_IMODE(node.file.stat().st_mode)]
    temper(safe_mode.command, "off")

    assert both.startswith(content + b"\ntemper safe-mode on by cli ")
    assert node.file.read_bytes() == content + b"\n"
    assert [*modes, stat.S_IMODE(node.file.stat().st_mode)] == [mode, mode]


def test_the_target_of_a_link_is_neither_copied_nor_shown(temper, node, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("the password\n")
    secret.chmod(0o600)
    node.file.parent.mkdir()
    node.file.symlink_to(secret)

    result = temper(safe_mode.command, "on")

    assert "it stays as it is" in result.output
    assert "the password" not in result.output
    assert node.file.is_symlink()
    assert secret.read_text() == "the password\n"


@pytest.mark.parametrize("action", ["on", "off"])
def test_settings_that_others_may_change_are_not_acted_by(temper, node, action):
    node.settings_path.chmod(0o666)

    result = temper(safe_mode.command, action)

    assert isinstance(result.exception, InputError)
    assert f"{node.settings_path}: every user may write" in str(result.exception)
    assert not node.file.exists()


@pytest.mark.usefixtures("agent")
def test_settings_that_others_may_change_are_read(temper, node):
    node.settings_path.chmod(0o666)

    assert temper(safe_mode.command, "status").exit_code == 0


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere")])
def test_whatever_stands_in_the_files_place_counts_as_asking_and_is_left_alone(temper, node, make):
    node.file.parent.mkdir()
    make(node.file)

    on = temper(safe_mode.command, "on") if make is os.mkdir else None
    off = temper(safe_mode.command, "off")

    assert on is None or on.exit_code == 0
    assert off.exit_code == 1
    assert os.path.lexists(node.file)


def test_what_a_dead_agent_remembers_is_told(temper, node):
    node.state.write_text(
        '{"schema_version": 1, "requests": {"alice": {"reason": "x", "since": 5}}}'
    )

    result = temper(safe_mode.command, "off")

    assert result.exit_code == 1
    assert "alice requests safe mode since 1970" in result.output


@pytest.mark.parametrize(
    "state", ["", "{", "[]", "{}", '{"requests": 5}', '{"requests": {"a": 1}}', '{"requests": [1]}']
)
def test_a_state_that_cannot_be_read_counts_as_a_request(temper, node, state):
    node.state.write_text(state)

    result = temper(safe_mode.command, "off")

    assert result.exit_code == 1
    assert "unreadable-state requests safe mode" in result.output


def test_status_without_an_agent_tells_what_the_next_one_finds_and_fails(temper):
    temper(safe_mode.command, "on", "--reason", "benchmark")

    result = temper(safe_mode.command, "status")

    assert "no agent answers" in result.output
    assert "benchmark" in result.output
    assert isinstance(result.exception, NoAgentError)


def test_where_neither_agent_nor_file_can_be_had_both_reasons_are_told(temper, node):
    node.file.parent.write_text("not a directory")

    result = temper(safe_mode.command, "on")

    assert isinstance(result.exception, MachineError)
    assert "no agent answers at" in str(result.exception)
    assert f"cannot write {node.file}: " in str(result.exception)


@pytest.mark.usefixtures("agent")
def test_an_agent_that_fails_does_not_keep_anybody_out_of_safe_mode(temper, node, view):
    def fail(*_):
        raise MachineError("disk full")

    view.request_safe_mode = fail
    following(view, node.file)

    result = temper(safe_mode.command, "on")

    assert result.exit_code == 0
    assert "disk full" in result.output
    assert node.file.exists()


@pytest.mark.usefixtures("agent")
def test_an_agent_that_neither_acts_nor_notices_the_file_has_not_heard(temper, node, view):
    def fail(*_):
        raise MachineError("disk full")

    view.request_safe_mode = fail

    result = temper(safe_mode.command, "on")

    assert isinstance(result.exception, MachineError)
    assert f"has NOT heard: it does not notice {node.file}" in str(result.exception)


@pytest.mark.usefixtures("agent")
def test_an_engine_that_stays_attached_is_named_with_the_way_to_eject_it(temper, node, monkeypatch):
    monkeypatch.setattr("temper_core.cli.safe_mode_outcome.DETACH_S", 0.0)
    (node.folder / "sys/kernel/sched_ext/root").mkdir(parents=True)
    (node.folder / "sys/kernel/sched_ext/state").write_text("enabled\n")
    (node.folder / "sys/kernel/sched_ext/root/ops").write_text("layered_1.0\n")

    result = temper(safe_mode.command, "on")

    assert isinstance(result.exception, MachineError)
    assert (
        "layered_1.0 is still attached; run: echo S > /proc/sysrq-trigger"
        in result.output + str(result.exception)
    )


@pytest.mark.usefixtures("agent")
def test_off_waits_until_the_agent_has_seen_that_the_file_is_gone(temper, node, view):
    SafeModeFile(node.file).add("cli", "")

    asked: list[bool] = []

    def requests():
        asked.append(node.file.exists())
        return {"file": {"reason": "", "since": 1.0}} if len(asked) < 3 else {}

    view.safe_mode_requests = requests

    result = temper(safe_mode.command, "off")

    assert result.exit_code == 0
    assert asked == [False, False, False]


@pytest.mark.parametrize("requester", ["", "a b", "x" * 65, "a\n", "ä", "file"])
def test_a_name_that_cannot_be_is_refused_before_anything_happens(temper, node, requester):
    result = temper(safe_mode.command, "on", "--requester", requester)

    assert isinstance(result.exception, InputError)
    assert not node.file.exists()


@given(name=NAMES, other=NAMES, foreign=st.text(st.characters(exclude_categories=["Cs"])))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
def test_adding_and_removing_a_line_leaves_what_was_there(tmp_path, name, other, foreign):
    file = SafeModeFile(tmp_path / "safe-mode")
    file.path.write_text(foreign, newline="")
    before = file.lines()

    file.add(name, "why")
    file.add(other, "why not")
    removed = file.remove(name), file.remove(other)

    after = file.lines()
    assert removed == (True, name != other)
    assert (after or ()) == before


def test_help_names_the_exit_codes(temper):
    assert "Exit codes: 1 if" in temper(safe_mode.command, "--help").output
