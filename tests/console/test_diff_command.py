import json
import subprocess
import sys

import pytest
from attrs import evolve
from click.testing import CliRunner
from hypothesis import given, settings

from temper_core.cli import observe
from temper_core.client import NoAgentError
from temper_core.errors import DocumentError
from temper_core.records.lint import Severity, Violation
from temper_core.records.machine import MachineShape
from temper_core.records.snapshots import Mode, Pressure, PressureLine, Status
from temper_core.records.tiers import Tier
from temper_plugin_console import diff
from tests.console.observations import (
    ANY_JSON,
    LAYERS,
    NEARLY_OBSERVATIONS,
    a_pod,
    a_thread,
    an_observation,
)

MAIN = "from temper_core.cli.main import main; main()"
VIOLATION = Violation("starvation", Severity.ERROR, "shop/web", "waited 3 s", "look", {}, 0.0)


def cpu_pressure(share):
    return {"cpu": Pressure(PressureLine(share, 0.0, 0.0, 1))}


@pytest.fixture
def changed(view, tmp_path):
    """Compare the observation of a snapshot with that of the same one, changed; return JSON."""

    def compare(before=None, after=None, options=()):
        files = []
        for number, changes in enumerate((before or {}, after or {})):
            files.append(tmp_path / f"{number}.json")
            files[-1].write_text(json.dumps(an_observation(view.last, **changes)))
        told = CliRunner().invoke(diff.command, [*map(str, files), "--output", "json", *options])
        found = json.loads(told.output)
        assert told.exit_code == (1 if found["is_different"] else 0)
        return found

    return compare


def test_an_observation_is_no_different_from_itself(changed):
    found = changed()

    assert not found["is_different"]
    assert (found["before"]["node"], found["threads"]) == ("node-a", [])


def test_another_mode_generation_and_engine_are_told(changed):
    status = Status(Mode.SAFE_MODE, "ejected", generation=9)

    found = changed(after={"status": status})

    assert found["node"] == {
        "mode": {"before": "enforcing", "after": "safe_mode"},
        "reason": {"before": "", "after": "ejected"},
        "engine": {"before": "scx_layered 1.1.4", "after": ""},
        "generation": {"before": 7, "after": 9},
    }


def test_another_machine_is_told(changed):
    found = changed(after={"machine": MachineShape.uniform(2, 2), "node": "node-b"})

    assert found["node"]["CPUs"] == {"before": 8, "after": 4}
    assert found["node"]["node"] == {"before": "node-a", "after": "node-b"}


def test_layers_that_came_went_grew_and_were_demoted_are_told(changed):
    critical, open_layer = LAYERS
    high = evolve(critical, name="high")
    grown = evolve(critical, cpus=(0, 1, 2, 3), demoted=True)

    found = changed({"layers": (critical, open_layer)}, {"layers": (grown, high)})

    assert found["layers"] == {
        "added": ["high"],
        "removed": ["open"],
        "changed": [
            {
                "name": "critical",
                "changes": {
                    "cpus": {"before": "0-1", "after": "0-3"},
                    "demoted": {"before": "no", "after": "yes"},
                },
            }
        ],
    }


def test_pods_that_came_went_and_changed_are_told(changed):
    web = a_pod()
    moved = evolve(web, tier=Tier.LOW, profile="mysql", cpu_used=2.0)

    found = changed({"pods": (web, a_pod("old"))}, {"pods": (moved, a_pod("new"))})

    assert (found["pods"]["arrived"], found["pods"]["left"]) == (["shop/new"], ["shop/old"])
    assert found["pods"]["changed"][0]["name"] == "shop/web"
    assert found["pods"]["changed"][0]["changes"] == {
        "tier": {"before": "critical", "after": "low"},
        "profile": {"before": "", "after": "mysql"},
        "CPUs used": {"before": 0.5, "after": 2.0},
    }


def test_a_pod_that_was_made_anew_is_told_by_its_uid(changed):
    found = changed(after={"pods": (a_pod(uid="other"), a_pod("batch", tier=Tier.LOW))})

    assert list(found["pods"]["changed"][0]["changes"]) == ["uid"]


def test_threads_in_another_layer_are_told(changed):
    threads = (a_thread(1), a_thread(2))

    found = changed(
        {"threads": threads}, {"threads": (evolve(threads[0], layer="open"), threads[1])}
    )

    assert found["threads"] == [
        {
            "name": "worker-1 (1) of shop/web",
            "changes": {"layer": {"before": "critical", "after": "open"}},
        }
    ]


def test_a_thread_number_of_another_process_is_another_thread(changed):
    other = a_thread(1, process="redis", layer="open")

    assert not changed({"threads": (a_thread(1),)}, {"threads": (other,)})["is_different"]


def test_violations_that_arrived_and_cleared_are_told(changed):
    later = evolve(VIOLATION, since=9.0, message="waited 4 s")

    arrived = changed({"violations": ()}, {"violations": (VIOLATION,)})["violations"]
    stands = changed({"violations": (VIOLATION,)}, {"violations": (later,)})
    cleared = changed({"violations": (VIOLATION,)}, {"violations": ()})["violations"]

    assert arrived["arrived"] == ["starvation shop/web: waited 3 s"] == cleared["cleared"]
    assert not stands["is_different"]


def test_pressure_of_node_and_pods_is_told(changed):
    pods = [(a_pod(pressure=cpu_pressure(share)),) for share in (0.1, 0.4)]

    found = changed(
        {"pods": pods[0], "pressure": cpu_pressure(0.1)},
        {"pods": pods[1], "pressure": cpu_pressure(0.2)},
    )

    assert found["pressure"] == [
        {"name": "node", "changes": {"cpu some": {"before": 0.1, "after": 0.2}}},
        {"name": "shop/web", "changes": {"cpu some": {"before": 0.1, "after": 0.4}}},
    ]


@pytest.mark.parametrize(
    ("options", "is_different"),
    [([], False), (["--least-cpus", "0.01"], True), (["--least-pressure", "0.001"], True)],
)
def test_small_differences_of_numbers_count_only_where_that_is_asked(
    changed, options, is_different
):
    before = {"pods": (a_pod(),), "pressure": cpu_pressure(0.1)}
    after = {"pods": (a_pod(cpu_used=0.55),), "pressure": cpu_pressure(0.12)}

    assert changed(before, after, options)["is_different"] is is_different


def test_a_table_says_what_there_was_and_what_there_is(view, tmp_path):
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    nasty = a_pod("\x1b[2Jevil")
    for file, pods in zip(files, [(a_pod(),), (a_pod(tier=Tier.LOW), nasty)], strict=True):
        file.write_text(json.dumps(an_observation(view.last, pods=pods)))

    told = CliRunner().invoke(diff.command, list(map(str, files)))

    assert told.exit_code == 1
    assert told.output.startswith("before  node-a  20")
    rows = [line.split() for line in told.output.splitlines()]
    assert ["pod", "shop/web", "tier", "critical", "low"] in rows
    assert "\x1b" not in told.output
    assert "[2Jevil" in told.output


def test_without_a_difference_the_table_says_so(view, tmp_path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps(an_observation(view.last)))

    told = CliRunner().invoke(diff.command, [str(file), str(file)])

    assert (told.exit_code, told.output.splitlines()[-1]) == (0, "nothing has changed")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"),
        ("[]", "must be an object"),
        ("{}", "schema_version is missing"),
        ('{"schema_version": 2}', "schema_version must be 1"),
        ('{"schema_version": true}', "schema_version must be 1"),
        (
            '{"schema_version": 1, "layers": [], "threads": {}, "pods": null, "mode": 3}',
            "threads, pods, violations, mode missing, or of another type",
        ),
        ("[" * 100_000, "nested too deeply"),
        ('{"at": ' + "9" * 5_000 + "}", "a number is too long"),
        ("\x00", "is not JSON"),
    ],
)
def test_what_is_no_observation_is_one_line_that_names_the_file(tmp_path, text, said):
    file = tmp_path / "a.json"
    file.write_text(text)

    told = CliRunner().invoke(diff.command, [str(file), str(file)])

    assert isinstance(told.exception, DocumentError)
    assert len(str(told.exception).splitlines()) == 1
    assert str(told.exception).startswith(f"{file}: ")
    assert said in str(told.exception)
    assert told.exception.exit_code == 2


@settings(max_examples=25)
@given(ANY_JSON, NEARLY_OBSERVATIONS)
def test_no_document_gives_a_traceback(tmp_path_factory, anything, observation):
    folder = tmp_path_factory.getbasetemp()
    files = [folder / "any.json", folder / "nearly.json", folder / "same.json"]
    for file, document in zip(files, [anything, observation, observation], strict=True):
        file.write_text(json.dumps(document))
    any_file, nearly, same = map(str, files)

    for pair in ([any_file, nearly], [nearly, any_file], [nearly, same]):
        told = CliRunner().invoke(diff.command, pair)

        assert isinstance(told.exception, SystemExit | DocumentError | None)
        assert told.exit_code in (0, 1)


@settings(max_examples=25)
@given(NEARLY_OBSERVATIONS, NEARLY_OBSERVATIONS)
def test_whatever_is_told_is_json_and_prints_nothing_that_steers(tmp_path_factory, one, other):
    folder = tmp_path_factory.getbasetemp()
    files = [folder / "one.json", folder / "other.json"]
    for file, document in zip(files, [one, other], strict=True):
        file.write_text(json.dumps(document))

    told = CliRunner().invoke(diff.command, [*map(str, files), "--output", "json"])
    table = CliRunner().invoke(diff.command, list(map(str, files)))

    assert json.loads(told.output)["is_different"] == (table.exit_code == 1)
    assert table.output.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["a"],
        ["a", "b", "c"],
        ["-", "-"],
        ["a", "b", "--live", "1"],
        ["--live", "0"],
        ["--live", "nan"],
        ["a", "b", "--least-cpus", "nan"],
        ["a", "b", "--least-pressure", "nan"],
    ],
)
def test_a_mistake_on_the_command_line_is_code_2(arguments):
    told = CliRunner().invoke(diff.command, arguments)

    assert told.exit_code == 2
    assert "Error: " in told.output


def test_one_of_the_two_may_come_from_standard_input(view, tmp_path):
    file = tmp_path / "a.json"
    file.write_text(json.dumps(an_observation(view.last)))
    other = json.dumps(an_observation(view.last, node="node-b"))

    asked = subprocess.run(
        [sys.executable, "-c", MAIN, "diff", "-", str(file)],
        check=False, input=other, capture_output=True, text=True,
    )  # fmt: skip

    assert (asked.returncode, asked.stderr) == (1, "")
    assert ["node", "node", "node-b", "node-a"] in [x.split() for x in asked.stdout.splitlines()]


@pytest.mark.parametrize("closed", ["/no/such/file", "/proc", "-"])
def test_what_cannot_be_read_is_one_line_and_code_2(closed):
    script = f'exec {sys.executable} -c "{MAIN}" diff {closed} /dev/null <&-'
    asked = subprocess.run(["sh", "-c", script], check=False, capture_output=True, text=True)

    assert asked.returncode == 2
    assert len(asked.stderr.splitlines()) == 1
    assert asked.stderr.startswith(f"temper: {closed}: ")


def test_two_observations_are_taken_from_a_live_agent(agent, temper, view):
    first = view.observe_document()
    later = {**first, "at": "later", "generation": 8, "layers": []}
    answers = iter([first, later])
    view.observe_document = lambda _top=None: next(answers)

    told = temper(diff.command, "--live", "0.2", "--output", "json")

    found = json.loads(told.output)
    assert agent.socket
    assert told.exit_code == 1
    assert found["node"] == {"generation": {"before": 7, "after": 8}}
    assert found["layers"]["removed"] == ["critical", "open"]


@pytest.mark.usefixtures("agent")
def test_an_agent_that_has_not_looked_again_is_told(temper):
    told = temper(diff.command, "--live", "0.2")

    assert told.exit_code == 0
    assert "made no new observation" in told.stderr


def test_without_an_agent_live_is_an_error_of_the_machine(temper):
    told = temper(diff.command, "--live", "0.2")

    assert isinstance(told.exception, NoAgentError)
    assert told.exception.exit_code == 3


@pytest.mark.usefixtures("agent")
def test_a_file_is_what_observe_writes(temper, tmp_path):
    file = tmp_path / "a.json"
    file.write_text(temper(observe.command, "--output", "json").output)

    told = CliRunner().invoke(diff.command, [str(file), str(file)])

    assert told.exit_code == 0
