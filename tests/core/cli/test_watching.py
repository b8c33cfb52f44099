import json
import os
import subprocess

import pytest
from attrs import evolve

from temper_core.cli import observe
from temper_core.cli.observe import observation_tables
from temper_core.client import NoAgentError
from temper_core.console import shown
from tests.core.cli.processes import temper_process
from tests.patience import PATIENCE_S


@pytest.mark.usefixtures("agent")
def test_observe_shows_layers_pods_threads_pressure_and_violations(temper):
    result = temper(observe.command)

    assert result.exit_code == 0
    assert "node-a  enforcing  generation 7  scx_layered 1.1.4" in result.output
    for word in ["critical", "0-1", "61.0%", "ib_worker", "shop/web", "25.0%", "smt_collision"]:
        assert word in result.output


@pytest.mark.usefixtures("agent")
def test_observe_marks_threads_by_how_their_layer_is_known(temper, view):
    known = evolve(view.last.threads[0], expected_layer="critical", layer_is_known=True)
    counted = evolve(known, tid=42, voluntary=40, involuntary=2, migrations=3)
    astray = evolve(known, tid=43, layer="open")
    inferred = evolve(known, tid=44, layer_is_known=False)
    planned = evolve(known, tid=45, layer="", layer_is_known=False)
    view.last = evolve(view.last, threads=(known, counted, astray, inferred, planned))

    rows = {line[:2]: line for line in temper(observe.command).output.splitlines()}

    assert rows["41"].split()[-2:] == ["-", "critical"]
    assert rows["42"].split()[-3:] == ["40+2", "3", "critical"]
    assert rows["43"].endswith("open (should be critical)")
    assert rows["44"].split()[-1] == "critical?"
    assert rows["45"].split()[-1] == "(critical)"


@pytest.mark.usefixtures("agent")
def test_observe_as_json_is_the_agents_document(temper):
    result = temper(observe.command, "--output", "json")

    assert json.loads(result.output)["layers"][0]["cpus"] == [0, 1]


@pytest.mark.usefixtures("agent")
def test_observe_asks_for_as_many_threads_as_it_is_told(temper, view):
    thread = view.last.threads[0]
    view.last = evolve(view.last, threads=tuple(evolve(thread, tid=n) for n in range(9)))

    result = temper(observe.command, "--output", "json", "--top", "3")
    table = temper(observe.command, "--top", "3")

    threads = json.loads(result.output)["threads"]
    assert len([row for row in threads if row["tid"] is not None]) == 3
    assert "6 others" in table.output


@pytest.mark.usefixtures("agent")
def test_a_threads_name_steers_neither_the_terminal_nor_the_markup(temper, view):
    nasty = evolve(view.last.threads[0], comm="\x1b[2J[red]x\r")
    view.last = evolve(view.last, threads=(nasty,))

    result = temper(observe.command)

    assert "\x1b" not in result.output
    assert "[2J[red]x" in result.output


@pytest.mark.usefixtures("agent")
def test_a_name_that_the_output_cannot_encode_is_shown_as_far_as_it_can(node, view):
    odd = evolve(view.last.threads[0], comm="spün字", cpu=0)
    view.last = evolve(view.last, threads=(odd,))

    asking = temper_process(
        node, "observe", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    told, errors = asking.communicate(timeout=PATIENCE_S)

    assert (asking.returncode, errors) == (0, "")
    assert "sp?n?" in told


def test_without_an_agent_there_is_an_error_with_the_code_of_the_machine(temper):
    result = temper(observe.command)

    assert isinstance(result.exception, NoAgentError)
    assert result.exception.exit_code == 3


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"layers": None, "threads": [1, None], "pods": {}, "pressure": []},
        {"threads": [{}], "pods": [{}], "layers": [{}], "violations": [{}]},
        {"pressure": {"node": {"cpu": {"some": {"avg10": None}, "full": None}}}},
        {"pressure": {"cpu": 3}},
        {"pressure": {"node": 3}, "pods": [{"cpu_used": "much", "run_delay": None}]},
    ],
)
def test_an_observation_of_another_version_is_shown_as_far_as_it_goes(document):
    assert observation_tables(document).renderables


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (1.234, "1.23"), ([1, 2], "1,2"), ("a\x1bb\n", "a�b�"), (True, "True"), (7, "7")],
)
def test_a_value_is_written_for_a_terminal(value, text):
    assert shown(value) == text


def test_a_broken_settings_file_is_named_before_anything_is_asked(node):
    node.settings_path.write_text("[server]\nlisten = 5\n")

    asking = temper_process(node, "observe", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _, errors = asking.communicate(timeout=PATIENCE_S)

    assert asking.returncode == 2
    assert f"{node.settings_path}: server.listen: must be a string" in errors
