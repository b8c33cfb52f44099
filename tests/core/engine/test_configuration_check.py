import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.engine.binary import verify_offline
from temper_core.engine.capabilities import capabilities_of
from temper_core.engine.configuration_check import check, ensure_accepted
from temper_core.engine.problems import ProblemSeverity
from temper_core.errors import PlanError

NEWEST = capabilities_of(None)
REST = {"name": "rest", "matches": [[]], "kind": {"Open": {}}}
GROUPED = {"Grouped": {"util_range": [0.5, 0.8], "cpus_range": [1, 4]}}


def plan(*conditions: Any, kind: Any = GROUPED, **keys: Any) -> str:
    matches = [list(conditions)] if conditions else [[{"CommPrefix": "x"}]]
    return json.dumps([{"name": "a", "matches": matches, "kind": kind, **keys}, REST])


def said(text: str, version: str | None = None, **surroundings: Any) -> list[str]:
    problems = check(text, capabilities_of(version), **surroundings)
    return [f"{problem.severity}: {problem.line}" for problem in problems]


@pytest.mark.parametrize(
    ("version", "text", "start", "part"),
    [
        ("1.0.20", plan({"NumaNode": 0}), "refused", "'NumaNode', which exists from 1.0.21 on"),
        ("1.0.11", plan({"UsedGpu": True}), "refused", "exists from 1.0.10 to before 1.0.11"),
        ("1.0.12", plan(kind={"Open": {"growth_algo": "CpuSetSpread"}}), "refused", "one of"),
        ("1.0.20", plan(*[{"UIDEquals": 0}] * 26), "refused", "the engine takes 25"),
        ("1.0.18", plan({"CgroupRegex": "a"}), "refused", "as a template only, and crashes"),
        ("1.0.13", plan(name="n" * 64), "refused", "crashes beyond 63"),
        ("1.0.23", plan(kind={"Open": {"allow_node_aligned": None}}), "refused", "not null"),
        ("1.1.0", plan(kind={"Open": {"nodes": [0, 0]}}), "refused", "has 0 twice"),
        ("1.1.1", plan(kind={"Open": {"util_peak_half_life_ms": 1}}), "ignored", "from 1.1.2 on"),
        ("1.0.13", plan(template={"CgroupSuffix": "a"}), "ignored", "does not know and ignores"),
    ],
)
def test_a_version_is_judged_by_what_it_can_do(version, text, start, part):
    lines = said(text, version)

    assert [line for line in lines if line.startswith(start) and part in line], lines


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("1.0.23", plan(kind={"Grouped": {**GROUPED["Grouped"], "nodes": [0, 0]}})),
        ("1.0.19", plan({"CgroupRegex": "a"})),
        ("1.0.14", plan(name="n" * 63)),
        ("1.0.6", plan(kind={"Grouped": {**GROUPED["Grouped"], "idle_smt": True}})),
    ],
)
def test_a_version_is_not_held_to_the_rules_of_another(version, text):
    assert said(text, version) == []


def test_a_fraction_that_rounds_to_no_cpu_is_refused_before_1_1_1():
    text = plan(kind={"Grouped": {"util_range": [0.5, 0.8], "cpus_range_frac": [0, 0.1]}})

    assert "rounds to no CPU" in "".join(said(text, "1.1.0", cpus=4))
    assert said(text, "1.1.0", cpus=16) == []
    assert said(text, "1.1.1", cpus=4) == []


@pytest.mark.parametrize(
    ("condition", "argument"),
    [
        ({"HintEquals": 1}, "--task-hint-map=/sys/fs/bpf/temper/hints"),
        ({"UsedGpuTid": True}, "--enable-gpu-support"),
    ],
)
def test_a_matcher_is_sound_with_the_argument_it_needs(condition, argument):
    assert said(plan(condition)) != []
    assert said(plan(condition), arguments=[argument]) == []


def test_an_argument_that_the_version_lacks_is_refused():
    lines = said(plan(), "1.0.21", arguments=["--allow-partial-core", "--stats", "5", "-v"])

    assert lines == ["refused: arguments: scx_layered 1.0.21 has no option --allow-partial-core"]


def test_more_cpus_than_there_are_is_a_warning():
    (line, *_) = said(plan(), cpus=3)

    assert line.endswith("cpus_range: requires 4 CPUs, but the machine has 3")


@pytest.mark.parametrize(("cpus", "warnings"), [(4, 1), (5, 0)])
def test_layers_that_may_own_every_cpu_leave_none_to_open_ones(cpus, warnings):
    lines = said(plan(), cpus=cpus)

    assert len(lines) == warnings


def test_an_open_layer_that_preempts_may_be_left_without_a_cpu():
    rest = {**REST, "kind": {"Open": {"preempt": True}}}
    text = json.dumps([json.loads(plan())[0], rest])

    assert said(text, cpus=4) == []


HINTED = {
    "name": "open",
    "matches": [[{"HintEquals": 2}], [{"CgroupPrefix": ""}]],
    "kind": {"Open": {}},
}
HINTLESS = {**HINTED, "matches": [[{"CgroupPrefix": ""}]]}


def test_a_hinted_layer_may_take_everything_right_before_the_last():
    text = json.dumps([HINTED, REST])

    assert said(text, arguments=["--task-hint-map=/x"]) == []


@pytest.mark.parametrize(
    "layers", [[HINTLESS, REST], [HINTED, json.loads(plan())[0], REST], [HINTED, HINTLESS, REST]]
)
def test_any_other_layer_that_takes_everything_hides_the_rest(layers):
    lines = said(json.dumps(layers), arguments=["--task-hint-map=/x"])

    assert [line for line in lines if "matches every thread" in line], lines
    assert [line for line in lines if "Open layers without preempt" in line], lines


def test_a_last_layer_behind_a_hinted_one_still_must_be_empty():
    last = {**REST, "matches": [[{"CommPrefix": "x"}]]}

    (line,) = said(json.dumps([HINTED, last]), arguments=["--task-hint-map=/x"])

    assert "must be exactly `[[]]`" in line


def test_every_mistake_is_named_at_once_and_the_refused_come_first():
    text = plan({"CommPrefix": ""}, {"Unknown": 1}, kind={"Grouped": {"slice_ms": 1}}, name=5)

    severities = [problem.severity for problem in check(text, NEWEST)]

    assert severities == [ProblemSeverity.REFUSED] * 3 + [ProblemSeverity.IGNORED]


def test_a_layer_is_named_by_position_and_name():
    (problem,) = check(plan({"CommPrefix": "x" * 20}), NEWEST)

    assert problem.where == "layer[0] 'a': matches[0][0].CommPrefix"


def test_ensure_accepted_gives_all_reasons_in_one_error():
    with pytest.raises(PlanError) as caught:
        ensure_accepted(plan({"CommPrefix": "x" * 20}, {"HintEquals": 9999}), NEWEST, source="p")

    assert len(caught.value.problems) == 3
    assert str(caught.value).startswith("p: layer[0] 'a': ")


def test_ensure_accepted_hands_back_the_warnings():
    problems = ensure_accepted(plan({"IsKthread": False}), NEWEST)

    assert [problem.severity for problem in problems] == [ProblemSeverity.IGNORED]


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.integers(-1, 40),
    st.floats(),
    st.sampled_from([*NEWEST.matchers, *NEWEST.growth_algos, "Open", "(", "/a", "x" * 16, "a\0"]),
    st.text(max_size=20),
)
LAYER_KEYS = ("name", "comment", "template", "matches", "kind", "Open", "Grouped", "zzz")
KEYS = st.sampled_from(
    [*LAYER_KEYS, *NEWEST.matchers, *NEWEST.common_fields, *NEWEST.kind_fields["Grouped"]]
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
OPTIONS = st.fixed_dictionaries(
    {"util_range": st.just([0.2, 0.8]) | VALUES},
    optional=dict.fromkeys(NEWEST.common_fields, VALUES),
)
CONDITIONS = st.one_of(
    st.sampled_from([{"UIDEquals": 0}, {"CommPrefix": "a"}, {"HintEquals": 3}]),
    st.dictionaries(st.sampled_from(sorted(NEWEST.matchers)), LEAVES, min_size=1, max_size=1),
)
LAYERS = st.fixed_dictionaries(
    {
        "name": st.text(max_size=8) | LEAVES,
        "matches": st.lists(st.lists(CONDITIONS, max_size=2), min_size=1, max_size=3),
        "kind": st.dictionaries(
            st.sampled_from(["Open", "Grouped"]), OPTIONS, min_size=1, max_size=1
        ),
    },
    optional={"zzz": VALUES, "template": VALUES, "comment": LEAVES},
)


@given(st.text() | VALUES.map(json.dumps) | st.lists(LAYERS, max_size=18).map(json.dumps))
def test_any_text_gets_an_answer(text):
    problems = check(text, NEWEST, arguments=["--task-hint-map=x"], cpus=4)

    assert all(problem.line.isprintable() for problem in problems)
    assert problems or isinstance(json.loads(text), list)


@given(st.text(alphabet='[]{}",:01-.eE\\unul \n', max_size=60))
def test_text_that_looks_like_json_gets_an_answer(text):
    assert check(text, NEWEST)


@given(st.binary(max_size=40), st.integers(0, 200))
def test_a_plan_with_damage_gets_an_answer(damage, position):
    text = plan()
    damaged = text[:position] + damage.decode("latin-1") + text[position + len(damage) :]

    check(damaged, NEWEST)


@pytest.mark.parametrize("depth", [126, 127, 5_000, 200_000])
def test_nesting_of_any_depth_gets_an_answer(depth):
    problems = check("[" * depth + "]" * depth, NEWEST)

    assert problems[0].severity is ProblemSeverity.REFUSED


@settings(max_examples=40)
@given(st.lists(LAYERS, max_size=2))
def test_the_real_engine_refuses_nothing_that_the_check_takes(offline_engine, layers):
    text = json.dumps([*layers, REST])
    taken, words = verify_offline(offline_engine, text)

    refused = [each for each in check(text, NEWEST) if each.severity is ProblemSeverity.REFUSED]

    assert taken or refused, words
