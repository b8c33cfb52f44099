import json

import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

import temper_plugin_linter
from temper_core import Endpoint, Exporter, InputError, Invariant, Request, Severity, Violation
from temper_core.errors import MachineError
from temper_core.plugin_host import PluginHost
from temper_core.settings.models import Settings
from temper_core.testing import make_snapshot, make_thread
from temper_plugin_linter.command import lint
from temper_plugin_linter.standing import ages, violations

NAMES = ("smt_collision", "protected_fallback", "open_reserve", "layer_mismatch")


def violation(invariant="smt_collision", subject="db[1]", since=90.0):
    return Violation(invariant, Severity.WARNING, subject, "shares", "move it", {"cpu": 1}, since)


@pytest.fixture
def snapshot():
    standing = violation(), violation(subject="db[2]", since=40.0), violation("open_reserve")
    return make_snapshot(at=100.0, violations=standing, invariants=NAMES)


def linter(**table):
    host = PluginHost(Settings(plugins={"linter": table}))
    host.add(temper_plugin_linter, "linter")
    return host


def test_the_four_invariants_are_contributed():
    found = linter().gather("temper_invariants", Invariant)

    assert tuple(contribution.record.name for contribution in found) == NAMES


def test_its_settings_set_the_thresholds(seen):
    threads = (
        make_thread("db", layer="critical", cpu=0, cpu_used=0.9, tid=1),
        make_thread("spin", layer="open", cpu=1, cpu_used=0.3, tid=2),
    )
    host = linter(noisy_cpu=0.25)

    [first, *_] = host.gather("temper_invariants", Invariant)

    assert len(host.call("linter", first.record.check, seen(*threads))) == 1


def test_a_threshold_that_is_none_names_the_key_and_sets_the_linter_aside():
    host = linter(hot_cpu=2, hot="x")

    with capture_logs():
        found = host.gather("temper_invariants", Invariant)

    failure = host.states()[0].failure
    assert found == []
    assert "[plugins.linter]: hot_cpu: must be <= 1.0: 2" in failure
    assert "unknown key 'hot'" in failure


def test_the_age_of_the_oldest_violation_is_exported_and_0_where_none_stands(snapshot):
    [metric] = ages(snapshot)

    assert metric.name == "temper_lint_violation_age_seconds"
    assert {sample.labels["invariant"]: sample.value for sample in metric.samples} == {
        "smt_collision": 60.0,
        "protected_fallback": 0.0,
        "open_reserve": 10.0,
        "layer_mismatch": 0.0,
    }


def test_violations_are_served_oldest_first(snapshot):
    answer = violations(Request({}, None, snapshot))

    assert [(v["invariant"], v["subject"], v["age_s"]) for v in answer["violations"]] == [
        ("smt_collision", "db[2]", 60.0),
        ("open_reserve", "db[1]", 10.0),
        ("smt_collision", "db[1]", 10.0),
    ]
    assert answer["at"] == "1970-01-01T00:01:40.000Z"
    assert answer["violations"][0]["since"] == "1970-01-01T00:00:40.000Z"
    assert json.loads(json.dumps(answer)) == answer


def test_the_violations_of_one_invariant_can_be_asked_for(snapshot):
    answer = violations(Request({"invariant": "open_reserve"}, None, snapshot))

    assert [v["invariant"] for v in answer["violations"]] == ["open_reserve"]


def test_an_unknown_invariant_is_the_callers_mistake(snapshot):
    with pytest.raises(InputError, match=r"no invariant is called 'smt'; there are: smt_collision"):
        violations(Request({"invariant": "smt"}, None, snapshot))


def test_the_endpoint_and_the_exporter_are_contributed():
    host = linter()

    [endpoint] = host.gather("temper_endpoints", Endpoint)
    [exporter] = host.gather("temper_exporters", Exporter)

    assert (endpoint.record.method, endpoint.record.path) == ("GET", "/violations")
    assert exporter.record.name == "lint-age"


@pytest.fixture
def saved(tmp_path):
    def save(answer):
        path = tmp_path / "answer.json"
        path.write_text(answer if isinstance(answer, str) else json.dumps(answer))
        return str(path)

    return save


def test_temper_lint_lists_what_stands_and_exits_with_1(saved, snapshot):
    path = saved(violations(Request({}, None, snapshot)))

    result = CliRunner().invoke(lint, ["--from", path])

    assert result.exit_code == 1
    assert "smt_collision" in result.output
    assert "move it" in result.output


def test_temper_lint_as_json_is_the_list_itself(saved, snapshot):
    answer = violations(Request({}, None, snapshot))

    result = CliRunner().invoke(lint, ["--from", saved(answer), "--output", "json"])

    assert result.exit_code == 1
    assert json.loads(result.output) == answer["violations"]


def test_temper_lint_reads_standard_input():
    answer = json.dumps({"at": "2026-01-01T00:00:00Z", "violations": []})

    result = CliRunner().invoke(lint, ["--from", "-"], input=answer)

    assert (result.exit_code, result.output) == (0, "No violation stands.\n")


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        ("{", InputError, "is not JSON"),
        ([], InputError, "has no 'violations'"),
        ({"violations": 3}, InputError, "has no 'violations'"),
        ({"at": 1, "violations": [3]}, InputError, "a violation is no object"),
        ({"at": None, "violations": []}, MachineError, "has not looked at the node yet"),
    ],
)
def test_temper_lint_says_what_is_wrong_with_an_answer(answer, error, says, saved):
    result = CliRunner().invoke(lint, ["--from", saved(answer)])

    assert isinstance(result.exception, error)
    assert says in str(result.exception)


def test_temper_lint_names_a_missing_file(tmp_path):
    result = CliRunner().invoke(lint, ["--from", str(tmp_path / "none.json")])

    assert isinstance(result.exception, InputError)
    assert "none.json: No such file or directory" in str(result.exception)


def test_temper_lint_says_where_it_looked_for_an_agent(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text('[server]\nlisten = "127.0.0.1:1"\nsocket = ""\n')

    result = CliRunner().invoke(lint, ["--settings", str(path)])

    assert isinstance(result.exception, MachineError)
    assert "no agent answers at 127.0.0.1:1" in str(result.exception)
