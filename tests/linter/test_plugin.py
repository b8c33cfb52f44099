import json
import time
from contextlib import ExitStack
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

import temper_plugin_linter
from temper_core import (
    Endpoint,
    Exporter,
    InputError,
    Invariant,
    LayerPlan,
    Mode,
    Request,
    Severity,
    Status,
    Violation,
    violation_id,
)
from temper_core.errors import MachineError
from temper_core.plugin_host import PluginHost
from temper_core.records.snapshots import PluginState
from temper_core.server.agent_server import AgentServer
from temper_core.settings.models import ServerSettings, Settings
from temper_core.testing import make_machine, make_snapshot, make_thread
from temper_plugin_linter.command import lint
from temper_plugin_linter.limits import Limits
from temper_plugin_linter.rules import PLUGIN_HEALTH, RULES
from temper_plugin_linter.standing import ages, violations

NAMES = (
    "smt_collision",
    "protected_fallback",
    "open_reserve",
    "layer_mismatch",
    "quota_unenforced",
    "weight_unenforced",
    "rt_hog",
    "stale_affinity",
    "unmatched_hot_thread",
    "profile_not_applied",
    "antagonist",
    "starvation",
)


def violation(invariant="smt_collision", subject="db[1]", since=90.0):
    return Violation(invariant, Severity.WARNING, subject, "shares", "move it", {"cpu": 1}, since)


@pytest.fixture
def snapshot():
    standing = violation(), violation(subject="db[2]", since=40.0), violation("open_reserve")
    return make_snapshot(
        at=100.0, monotonic_s=time.monotonic(), violations=standing, invariants=NAMES
    )


def linter(**table):
    host = PluginHost(Settings(plugins={"linter": table}))
    host.add(temper_plugin_linter, "linter")
    return host


def test_every_invariant_is_contributed():
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
        **dict.fromkeys(NAMES, 0.0),
        "smt_collision": 60.0,
        "open_reserve": 10.0,
    }


def test_violations_are_served_oldest_first(snapshot):
    answer = violations_of(Request({}, snapshot))

    assert [(v["invariant"], v["subject"], v["age_s"]) for v in answer["violations"]] == [
        ("smt_collision", "db[2]", 60.0),
        ("open_reserve", "db[1]", 10.0),
        ("smt_collision", "db[1]", 10.0),
    ]
    assert answer["at"] == "1970-01-01T00:01:40.000Z"
    assert answer["violations"][0]["since"] == "1970-01-01T00:00:40.000Z"
    assert answer["age_s"] >= 0.0
    assert answer["window_s"] == snapshot.window_s
    assert json.loads(json.dumps(answer)) == answer


def test_what_no_window_of_this_mode_is_judged_by_is_served_with_the_reason(snapshot):
    planless = attrs.evolve(snapshot, status=Status(Mode.ENFORCING), plan=None)
    enforcing = attrs.evolve(planless, plan=LayerPlan(make_machine(), ()))
    observing = attrs.evolve(snapshot, status=Status(Mode.OBSERVE_ONLY, "not_asked"))

    answers = {
        name: {
            each["invariant"]: each["why"] for each in violations_of(Request({}, seen))["unjudged"]
        }
        for name, seen in (("on", enforcing), ("off", observing), ("none", planless))
    }

    assert answers["on"] == {}
    assert set(answers["off"].values()) == {"the node does not enforce: observe_only not_asked"}
    assert set(answers["none"].values()) == {"no plan is in force"}
    assert "smt_collision" in answers["off"]
    assert "rt_hog" not in answers["off"]


@pytest.mark.parametrize(("age_s", "window_s"), [(60, 5), (300, 60), (None, None)])
def test_an_answer_of_a_recent_look_is_taken(saved, age_s, window_s):
    answer = {"at": 1, "age_s": age_s, "window_s": window_s, "violations": []}

    result = CliRunner().invoke(lint, ["--from", saved(answer)])

    assert (result.exit_code, result.output) == (0, "No violations.\n")


def test_the_violations_of_one_invariant_can_be_asked_for(snapshot):
    answer = violations_of(Request({"invariant": "open_reserve"}, snapshot))

    assert [v["invariant"] for v in answer["violations"]] == ["open_reserve"]


def test_a_violation_can_be_asked_for_by_its_id(snapshot):
    wanted = violations_of(Request({}, snapshot))["violations"][1]

    answer = violations_of(Request({"id": wanted["id"]}, snapshot))

    assert answer["violations"] == [wanted]
    assert violations_of(Request({"id": "gone-00000000"}, snapshot))["violations"] == []


def test_an_id_outlives_numbers_restarts_and_says_the_invariant():
    first, later = violation(since=1.0), attrs.evolve(violation(since=900.0), evidence={"cpu": 7})

    assert first.id == later.id == "smt_collision-88d1f2b2"
    assert first.id != violation(subject="db[2]").id != violation("open_reserve", "db[2]").id


def test_the_thresholds_in_force_are_told_with_the_violations(snapshot):
    [endpoint] = linter(rt_cpu=0.9).gather("temper_endpoints", Endpoint)

    answer = endpoint.record.answer(Request({}, snapshot))

    assert (answer["thresholds"]["rt_cpu"], answer["thresholds"]["hot_cpu"]) == (0.9, 0.5)


def test_an_unknown_invariant_is_the_callers_mistake(snapshot):
    with pytest.raises(InputError, match=r"there is no invariant 'smt'; there are: smt_collision"):
        violations_of(Request({"invariant": "smt"}, snapshot))


def test_a_mistyped_invariant_of_a_request_gets_the_one_that_was_meant(snapshot):
    with pytest.raises(InputError, match=r"did you mean 'smt_collision'\?"):
        violations_of(Request({"invariant": "smt_colision"}, snapshot))


def test_the_endpoint_and_the_exporter_are_contributed():
    host = linter()

    [endpoint] = host.gather("temper_endpoints", Endpoint)
    [exporter] = host.gather("temper_exporters", Exporter)

    assert (endpoint.record.method, endpoint.record.path) == ("GET", "/violations")
    assert exporter.record.name == "lint-age"


def violations_of(request):
    return violations(request, Limits())


@pytest.fixture
def saved(tmp_path):
    def save(answer):
        path = tmp_path / "answer.json"
        path.write_text(answer if isinstance(answer, str) else json.dumps(answer))
        return str(path)

    return save


def test_temper_lint_lists_what_stands_and_exits_with_1(saved, snapshot):
    path = saved(violations_of(Request({}, snapshot)))

    result = CliRunner().invoke(lint, ["--from", path])

    assert result.exit_code == 1
    assert "smt_collision" in result.output
    assert "move it" in result.output


def test_temper_lint_as_json_is_the_list_itself(saved, snapshot):
    answer = violations_of(Request({}, snapshot))

    result = CliRunner().invoke(lint, ["--from", saved(answer), "--output", "json"])

    assert result.exit_code == 1
    assert json.loads(result.output) == answer["violations"]


def test_temper_lint_reads_standard_input():
    answer = json.dumps({"at": "2026-01-01T00:00:00Z", "violations": []})

    result = CliRunner().invoke(lint, ["--from", "-"], input=answer)

    assert (result.exit_code, result.output) == (0, "No violations.\n")


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        ("{", InputError, "is not JSON"),
        ([], InputError, "has no 'violations'"),
        ({"violations": 3}, InputError, "has no 'violations'"),
        ({"at": 1, "violations": [3]}, InputError, "a violation is not an object"),
        ({"at": None, "violations": []}, MachineError, "has no snapshot of the node yet"),
        (
            {"at": 1, "age_s": 61, "window_s": 5, "violations": []},
            MachineError,
            "the agent's last look at the node is 61 s old",
        ),
        (
            {"at": 1, "age_s": 301, "window_s": 60, "violations": []},
            MachineError,
            "the agent's last look at the node is 301 s old",
        ),
    ],
)
def test_temper_lint_says_what_is_wrong_with_an_answer(answer, error, says, saved):
    result = CliRunner().invoke(lint, ["--from", saved(answer)])

    assert isinstance(result.exception, error)
    assert says in str(result.exception)


def explained(saved, answer, asked, *options):
    path = saved(answer)
    return CliRunner().invoke(lint, ["--from", path, "--explain", asked, *options])


@pytest.mark.parametrize("rule", [*RULES, PLUGIN_HEALTH], ids=lambda rule: rule.name)
def test_every_invariant_explains_itself(rule, saved):
    result = explained(saved, {"at": 1, "violations": []}, rule.name)

    assert result.exit_code == 0
    assert result.output.startswith(f"{rule.name} ({rule.severity}), judged {rule.judged}")
    assert "{" not in result.output
    assert all(f"{name} = " in result.output for name in rule.thresholds)
    assert result.output.endswith("No current violation.\n")


def test_an_explained_violation_comes_with_its_numbers_and_what_to_do(saved, snapshot):
    answer = violations_of(Request({}, snapshot))
    wanted = answer["violations"][0]

    result = explained(saved, answer, wanted["id"])

    assert result.exit_code == 0
    assert f"{wanted['id']}: db[2]" in result.output
    assert "db[1]" not in result.output
    assert "since       1970-01-01T00:00:40.000Z" in result.output
    assert "cpu         1" in result.output
    assert "move it" in result.output


@pytest.mark.parametrize("wished", [(), ("--explain", "rt_hog"), ("--explain", "rt_hog-1")])
def test_nothing_that_a_process_calls_itself_steers_the_terminal(saved, wished):
    name = "\x1b]0;root\a\r\x9b2J"
    told = dict.fromkeys(("subject", "message", "fix", "since"), name)
    hog = {"id": "rt_hog-1", "invariant": "rt_hog", **told, "evidence": {name: name}}

    output = CliRunner().invoke(lint, ["--from", saved({"at": 1, "violations": [hog]}), *wished])

    assert all(letter.isprintable() for letter in output.output.replace("\n", ""))
    assert "\ufffd]0;root\ufffd\ufffd\ufffd2J" in output.output


def test_an_explanation_in_json_has_the_same(saved, snapshot):
    answer = violations_of(Request({}, snapshot))
    wanted = answer["violations"][0]

    told = json.loads(explained(saved, answer, wanted["id"], "--output", "json").output)

    assert told["violations"] == [wanted]
    assert told["invariant"]["thresholds"] == {"hot_cpu": 0.5, "noisy_cpu": 0.5}


def test_the_agents_thresholds_are_explained_not_those_of_the_command_line(saved):
    answer = {"at": 1, "violations": [], "thresholds": {"rt_cpu": 0.75, "of_a_later_version": 1}}

    assert "rt_cpu = 0.75" in explained(saved, answer, "rt_hog").output


def test_a_violation_that_is_gone_is_still_explained(saved):
    result = explained(saved, {"at": 1, "violations": []}, "rt_hog-00000000")

    assert result.exit_code == 0
    assert result.output.endswith("No current violation with the id rt_hog-00000000.\n")


def test_a_violation_of_a_foreign_invariant_is_told_as_it_is(saved):
    other = {"invariant": "crowded", "subject": "CPU 3", "message": "is full", "evidence": {"n": 2}}
    answer = {"at": 1, "violations": [other]}

    result = explained(saved, answer, violation_id("crowded", "CPU 3"))

    assert "is full" in result.output
    assert "n           2" in result.output


def test_what_is_neither_invariant_nor_violation_is_the_callers_mistake(saved):
    result = explained(saved, {"at": 1, "violations": []}, "smt")

    assert isinstance(result.exception, InputError)
    assert "'smt' is neither an invariant nor" in str(result.exception)
    assert "; the invariants are smt_collision, " in str(result.exception)


def test_an_invariant_is_explained_without_an_agent_and_a_violation_is_not(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(
        '[server]\nlisten = "127.0.0.1:1"\nsocket = ""\n[plugins.linter]\nstarved_s = 2.5\n'
    )
    ask = [*("--settings", str(path)), "--explain"]

    invariant = CliRunner().invoke(lint, [*ask, "starvation"])
    violation = CliRunner().invoke(lint, [*ask, "starvation-00000000"])

    assert "waits 2.5 s or more" in invariant.output
    assert isinstance(violation.exception, MachineError)


def test_temper_lint_names_a_missing_file(tmp_path):
    result = CliRunner().invoke(lint, ["--from", str(tmp_path / "none.json")])

    assert isinstance(result.exception, InputError)
    assert "none.json: No such file or directory" in str(result.exception)


@pytest.fixture
def serve(tmp_path):
    """Serve as an agent that has some plugins; return the settings that lead to it."""
    beside = Path(__file__).parents[1] / "core" / "server" / "fake_view.py"
    spec = spec_from_file_location("temper_fake_view_for_the_linter", beside)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    path = tmp_path / "agent.toml"
    settings = ServerSettings("", str(tmp_path / "agent.sock"))
    path.write_text(f"[server]\nlisten = ''\nsocket = '{settings.socket}'\n")
    with ExitStack() as stack:

        def start(*plugins, **state):
            view = module.FakeView()
            view.found = plugins
            for name, value in state.items():
                setattr(view, name, value)
            server = AgentServer(view, settings)
            server.start()
            stack.callback(server.stop)
            return str(path)

        yield start


@pytest.mark.parametrize(
    ("plugins", "says"),
    [
        ((), "install temper-plugin-linter on the agent's node"),
        ((PluginState("linter", "1", "", (), "not_allowed", "kept out"),), "'linter': kept out"),
    ],
)
def test_an_agent_without_the_linter_is_named_as_such(serve, plugins, says):
    result = CliRunner().invoke(lint, ["--settings", serve(*plugins)])

    assert isinstance(result.exception, MachineError)
    assert "the agent runs without the plugin 'linter'" in str(result.exception)
    assert says in str(result.exception)


def test_temper_lint_says_where_it_looked_for_an_agent(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text('[server]\nlisten = "127.0.0.1:1"\nsocket = ""\n')

    result = CliRunner().invoke(lint, ["--settings", str(path)])

    assert isinstance(result.exception, MachineError)
    assert "no agent answers at 127.0.0.1:1" in str(result.exception)


def test_an_invariant_of_another_plugin_is_explained_by_the_agent(serve):
    (violations,) = temper_plugin_linter.temper_endpoints({})
    crowded = Invariant("crowded_cpu", lambda _: (), "a thread that waits \x1b[31mcannot answer")
    settings = serve(served=[("linter", violations)], promised=[("batch-guard", crowded)])

    def ask(*options):
        return CliRunner().invoke(lint, ["--settings", settings, "--explain", *options])

    explained = ask("crowded_cpu")
    document = json.loads(ask("crowded_cpu", "--output", "json").output)
    unknown = ask("crowded_cp")

    assert explained.exit_code == 0, explained.output
    assert "crowded_cpu (warning), of the plugin batch-guard" in explained.output
    assert "a thread that waits" in explained.output
    assert "\x1b" not in explained.output
    assert document["invariant"]["plugin"] == "batch-guard"
    assert unknown.exit_code != 0
    assert "crowded_cpu" in str(unknown.exception)
