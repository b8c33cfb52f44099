"""``temper explain`` as it shows what a running agent says."""

import json

import pytest

from temper_core.cli.explain import command
from temper_core.cli.profiles.explain import command as profile_command
from temper_core.errors import MachineError

PLACE = {
    "layer": "high",
    "kind": "Grouped",
    "threads": "threads whose name begins with 'io-'",
    "cpus_min": 2,
    "cpus_max": 4,
    "demoted": False,
    "reason": "1 pod requests 1500m",
    "hint": 4,
}
THREAD = {
    "tid": 41,
    "tgid": 40,
    "comm": "io-1",
    "expected_layer": "high",
    "hinted_layer": "high",
    "layer": "high",
    "layer_is_known": True,
    "is_decided": False,
    "is_astray": False,
    "cpu_used": 0.5,
}


def an_explanation(*threads, **place):
    return {
        "pod": "shop/web",
        "uid": "1",
        "tier": "high",
        "reason": "priority",
        "inputs": {"priority": "100000"},
        "profile": "",
        "profile_reason": "none claims it",
        "places": [{**PLACE, **place}],
        "notes": [],
        "changes": [],
        "threads": list(threads),
    }


@pytest.fixture
def explained(agent, view, temper):
    """Have the agent explain ``shop/web`` in these words; return what the command prints."""
    assert agent

    def run(document, *options):
        view.explain = lambda _pod: document
        result = temper(command, "shop/web", *options)
        assert result.exit_code == 0, result.output
        return result.output

    return run


def line_of(tid, output):
    return next(line for line in output.splitlines() if line.startswith(str(tid)))


def test_a_layer_is_told_with_its_hint_and_its_rules(explained):
    output = explained(an_explanation())

    assert "layer    high, by hint 4: threads whose name begins with 'io-'" in output


def test_a_layer_of_a_static_plan_has_no_hint(explained):
    output = explained(an_explanation(hint=None))

    assert "layer    high: threads" in output


def test_plan_hint_and_engine_stand_side_by_side(explained):
    output = explained(an_explanation({**THREAD, "layer": "open", "is_astray": True}))

    assert "threads  1 shown, 1 astray" in output
    assert line_of(41, output).split() == ["41", "io-1", "high", "high", "open", "0.50", "astray"]


def test_a_thread_that_only_user_space_could_judge_says_so(explained):
    output = explained(an_explanation({**THREAD, "is_decided": True}))

    assert line_of(41, output).endswith("decided in user space")


def test_a_layer_that_nobody_asked_the_engine_for_is_called_inferred(explained):
    output = explained(an_explanation({**THREAD, "layer_is_known": False, "hinted_layer": ""}))

    assert "high  -     high (inferred)" in output


def test_a_thread_that_the_engine_has_not_seen_yet_is_in_no_layer(explained):
    output = explained(an_explanation({**THREAD, "layer_is_known": False, "layer": ""}))

    assert line_of(41, output).split() == ["41", "io-1", "high", "high", "-", "0.50"]


def test_a_threads_name_steers_no_terminal(explained):
    output = explained(an_explanation({**THREAD, "comm": "\x1b[2J[red]x"}))

    assert "\x1b" not in output
    assert "[red]x" in output


def test_a_pod_without_threads_says_that_there_are_none(explained):
    assert "threads  0 shown, 0 astray" in explained(an_explanation())


def test_json_is_the_agents_answer(explained):
    document = an_explanation(THREAD)

    assert json.loads(explained(document, "--output", "json")) == document


NOTE = {"code": "demoted", "subject": "shop/web", "message": "too large"}
GROUP = {"name": "io", "treatment": "high", "threads": "io", "becomes": "high", "layer": "high"}


@pytest.mark.parametrize("shown", [command, profile_command])
@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"places": 5}, "places: must be a list, not 5"),
        ({"places": [None]}, "places[0]: must be a table, not None"),
        ({"places": [{**PLACE, "cpus_min": "x"}]}, "places[0].cpus_min: "),
        ({"inputs": []}, "inputs: must be a table, not []"),
        ({"notes": [1]}, "notes[0]: must be a table, not 1"),
        ({"notes": [{"code": "x"}]}, "notes[0].message: "),
        ({"changes": 5}, "changes: must be a list, not 5"),
        ({"threads": ["x"]}, "threads[0]: must be a table, not 'x'"),
        ({"groups": [{}]}, "groups[0].becomes: "),
        ({"tier": None}, "tier: "),
        ({"pod": 10**300}, "pod: "),
    ],
)
@pytest.mark.usefixtures("agent")
def test_a_malformed_explanation_of_another_program_is_one_line(
    view, temper, shown, changed, problem
):
    view.explain = lambda _pod: {**an_explanation(THREAD), **changed}

    result = temper(shown, "shop/web")

    said = f"the agent's answer to /explain is malformed: {problem}"
    assert isinstance(result.exception, MachineError)
    assert str(result.exception).startswith(said)
    assert "\n" not in str(result.exception)
    assert result.stdout == ""


@pytest.mark.parametrize("answer", [None, [], {}, 5])
@pytest.mark.usefixtures("agent")
def test_an_answer_that_is_no_explanation_is_told(view, temper, answer):
    view.explain = lambda _pod: answer

    result = temper(command, "shop/web")

    assert isinstance(result.exception, MachineError)


@pytest.mark.parametrize("key", ["places", "notes", "groups", "threads"])
def test_what_a_later_agent_adds_is_left_out(explained, key):
    rows = {"places": PLACE, "notes": NOTE, "groups": GROUP, "threads": THREAD}
    document = {**an_explanation(), "news": 1, key: [{**rows[key], "news": [1]}]}

    assert "shop/web (uid 1)" in explained(document)
