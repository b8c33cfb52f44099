import json
import os

import pytest

from temper_core.cli import doctor
from temper_core.records.checks import Check, CheckState
from temper_core.scheduler.failure import kernel_messages
from temper_core.scheduler.failure.kernel_messages import KernelMessage

OPS = "layered_1.1.4"
LOG = tuple(
    KernelMessage(12.5, line)
    for line in (
        f'sched_ext: BPF scheduler "{OPS}" enabled',
        f'sched_ext: BPF scheduler "{OPS}" disabled (disabled by sysrq-S)',
    )
)
END = {
    "kind": "stall",
    "summary": "x[7] could not run for 31 s on CPU 3",
    "remedy": "look at CPU 3",
}


@pytest.fixture(autouse=True)
def _log(monkeypatch):
    monkeypatch.setattr(kernel_messages, "last_messages", lambda _path: LOG)


def with_last_end(view, last_end):
    document = {**view.observe_document(1), "last_end": last_end}
    view.observe_document = lambda _top=None: document


@pytest.mark.usefixtures("agent")
def test_the_running_agent_says_how_it_stands_and_what_it_last_diagnosed(temper, view):
    with_last_end(view, END)

    output = temper(doctor.command).output

    assert "Agent: enforcing" in output
    assert f"Last end of an engine (stall): {END['summary']}\n-> look at CPU 3\n" in output
    assert "kernel's log" not in output


@pytest.mark.skipif(os.geteuid() != 0, reason="without root a swap is refused anyway")
@pytest.mark.parametrize(
    ("has_program", "mark"), [(False, "?     warm_swap"), (True, "ok    warm_swap")]
)
def test_a_warm_swap_is_not_known_to_work_without_an_engine(
    temper, node, tmp_path, has_program, mark
):
    engine = tmp_path / "scx_layered"
    if has_program:
        engine.write_text("#!/bin/sh\necho scx_layered 1.1.4\n")
        engine.chmod(0o755)
    with node.settings_path.open("a") as file:
        file.write(f'[scheduler]\nengine = "{engine}"\n')

    output = temper(doctor.command).output

    assert mark in output
    assert ("no engine is installed; there is room" in output) != has_program


@pytest.mark.usefixtures("agent")
def test_what_the_agent_cannot_read_is_said(temper, view):
    stale = "pods are 90 s old: 10.0.0.1:443 does not answer: timed out"
    document = {**view.observe_document(1), "defects": [stale]}
    view.observe_document = lambda _top=None: document

    output = temper(doctor.command).output

    assert f"Agent: enforcing.\nAgent: {stale}\n" in output


@pytest.mark.usefixtures("agent")
def test_machines_get_the_agents_state_and_its_diagnosis(temper, view):
    with_last_end(view, END)

    told = json.loads(temper(doctor.command, "--output", "json").output)

    assert (told["agent"]["mode"], told["agent"]["generation"]) == ("enforcing", 7)
    assert told["agent"]["last_end"] == END


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize("nothing", [None, "stall", []])
def test_an_agent_that_diagnosed_nothing_leaves_the_word_to_the_kernel(temper, view, nothing):
    with_last_end(view, nothing)

    told = json.loads(temper(doctor.command, "--output", "json").output)

    assert told["agent"]["last_end"]["kind"] == "sysrq"


def test_without_an_agent_the_kernels_log_tells_what_there_was(temper):
    result = temper(doctor.command)

    assert "Agent: no agent answers here.\n" in result.output
    assert "Last end of an engine (sysrq): the kernel ejected the engine" in result.output
    assert f"  [12.500000] {LOG[-1].text}\n" in result.output


def test_machines_get_the_kernels_lines_as_well(temper):
    told = json.loads(temper(doctor.command, "--output", "json").output)

    assert told["agent"]["mode"] is None
    assert told["kernel_log"] == [str(message) for message in LOG]


@pytest.mark.usefixtures("agent")
def test_an_agent_that_has_observed_nothing_yet_is_told_in_its_own_words(temper, view):
    view.last = None

    output = temper(doctor.command).output

    assert "Agent: the agent answers: nothing was observed yet" in output


@pytest.mark.usefixtures("agent")
def test_what_plugins_have_checked_is_shown_under_the_agent_and_forbids_nothing(temper, view):
    without = temper(doctor.command).exit_code
    view.checked = [
        ("shop", Check("db", CheckState.FAILED, "no answer", "start it")),
        ("power", Check("rapl", CheckState.OK, "readable")),
    ]

    shown = temper(doctor.command)
    told = json.loads(temper(doctor.command, "--output", "json").output)

    assert "Agent: enforcing.\nFAIL  shop: db     no answer\n" in shown.output
    assert "-> start it\nok    power: rapl  readable\n" in shown.output
    assert shown.exit_code == without
    assert told["agent"]["checks"][0] == {
        "plugin": "shop",
        "name": "db",
        "state": "failed",
        "detail": "no answer",
        "remedy": "start it",
    }


@pytest.mark.usefixtures("agent")
def test_an_agent_that_cannot_tell_its_checks_is_shown_without(temper, view):
    view.checks = lambda: 1 / 0

    assert "Agent: enforcing.\n" in temper(doctor.command).output
