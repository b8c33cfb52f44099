"""Hand-written configurations: what the check says of them, and what the real engine does."""

import json
from typing import Any

import pytest

from temper_core.engine.binary import NO_SCHED_EXT, verify_offline
from temper_core.engine.capabilities import capabilities_of
from temper_core.engine.configuration_check import check
from temper_core.engine.problems import ProblemSeverity

REST = {"name": "rest", "matches": [[]], "kind": {"Open": {}}}
GROUPED = {"Grouped": {"util_range": [0.5, 0.8], "cpus_range": [1, 2]}}
MATCH = [[{"CommPrefix": "worker"}]]


def plan(matches: Any = MATCH, kind: Any = GROUPED, **keys: Any) -> str:
    return json.dumps([{"name": "a", "matches": matches, "kind": kind, **keys}, REST])


def sized(**options: Any) -> str:
    return plan(kind={"Grouped": {"util_range": [0.5, 0.8], **options}})


def confined(**options: Any) -> str:
    return plan(kind={"Confined": {"util_range": [0.5, 0.8], **options}})


def opened(**options: Any) -> str:
    return json.dumps([{"name": "all", "matches": [[]], "kind": {"Open": options}}])


def matched(*conditions: Any) -> str:
    return plan(matches=[list(conditions)])


def raw(text: str) -> str:
    """Put *text* where the options of an Open layer stand."""
    return '[{"name":"a","matches":[[]],"kind":{"Open":%s}}]' % text  # noqa: UP031 - JSON's braces


def layers(*kinds: dict[str, Any], **keys: Any) -> str:
    named = [
        {"name": f"l{index}", "matches": MATCH, "kind": kind, **keys}
        for index, kind in enumerate(kinds)
    ]
    return json.dumps([*named, REST])


CLEAN = {
    "one open layer": opened(),
    "a grouped layer before it": plan(),
    "the whole LayerSpec as a list": '[["a", null, null, [[]], {"Open": {}}]]',
    "whole numbers for fractions": sized(cpus_range=None, membw_gb=None, yield_ignore=1),
    "null for an Option": opened(disallow_open_after_us=None, idle_resume_us=None),
    "an algorithm as an object": opened(growth_algo={"Linear": None}),
    "an algorithm with an empty object": opened(placement={"Floating": {}}),
    "the largest u64": opened(min_exec_us=2**64 - 1),
    "a number beyond u64 as a fraction": opened(yield_ignore=2**70),
    "15 bytes of a name": matched({"CommPrefix": "é" * 7 + "x"}),
    "26 conditions": matched(*[{"CommPrefix": "x"}] * 26),
    "32 OR blocks": plan(matches=MATCH * 32),
    "16 layers": layers(*[GROUPED] * 15),
    "a regular expression": matched({"CgroupRegex": r"kubepods.*pod(?<uid>[0-9a-f_]{36})"}),
    "any text between the values": f" \n\t{plan()}\r\n",
    "three of the four kinds": layers({"Open": {"preempt": True}}, GROUPED),
    "tuples": matched({"NSPIDEquals": [4026531836, 1]}, {"AvgRuntime": [0, 1000]}),
}
REFUSED_BY_BOTH = {
    "nothing": ("", "is not JSON"),
    "no list": ("{}", "must be a list of layers"),
    "no layer": ("[]", "has no layer"),
    "a number as layer": ("[5]", "must be an object"),
    "a trailing comma": (f"{plan()[:-1]},]", "is not JSON"),
    "something behind the list": (f"{plan()} x", "is not JSON"),
    "a byte order mark": (f"\ufeff{plan()}", "is not JSON"),
    "NaN": (raw('{"yield_ignore": NaN}'), "NaN cannot be written"),
    "Infinity": (raw('{"yield_ignore": -Infinity}'), "-Infinity cannot be written"),
    "a number out of range": (raw('{"yield_ignore": 1e400}'), "out of range"),
    "a minus zero for an integer": (raw('{"slice_us": -0}'), "whole number"),
    "half a surrogate pair": (raw(r'{"zzz": "\ud800"}'), "half of a surrogate"),
    "an option with 200 levels": (raw('{"z": %s1%s}' % ("[" * 200, "]" * 200)), "deeper"),  # noqa: UP031
    "an option twice": (raw('{"slice_us": 1, "slice_us": 1}'), "'slice_us' twice"),
    "a name twice": ('[{"name":"a","name":"b","matches":[[]],"kind":{"Open":{}}}]', "twice"),
    "no name": ('[{"matches": [[]], "kind": {"Open": {}}}]', "has no 'name'"),
    "no kind": ('[{"name": "a", "matches": [[]]}]', "has no 'kind'"),
    "no matches": ('[{"name": "a", "kind": {"Open": {}}}]', "has no 'matches'"),
    "a number as name": (plan(name=5), "name: must be a string, not 5"),
    "a number as comment": (plan(comment=5), "comment: must be a string"),
    "a kind without its object": (plan(kind="Open"), "kind: must be a layer kind"),
    "null as options": (plan(kind={"Open": None}), "kind.Open: must be an object, not null"),
    "two kinds": (plan(kind={**GROUPED, "Open": {}}), "with one key, not 2 keys"),
    "an unknown kind": (plan(kind={"open": {}}), "must be one of Confined, Grouped, Open"),
    "no util_range": (plan(kind={"Grouped": {}}), "has no 'util_range'"),
    "null as util_range": (sized(util_range=None), "must be a list of 2 numbers, not null"),
    "three numbers for two": (sized(util_range=[0, 1, 2]), "a list of 2 numbers, not a list of 3"),
    "text for a fraction": (sized(util_range=["0", 1]), "[0] must be a number"),
    "a fraction for an integer": (sized(cpus_range=[1.0, 2]), "not 1.0 written with a fraction"),
    "a negative for an unsigned": (opened(slice_us=-1), "must be 0 to"),
    "true for an integer": (opened(slice_us=True), "whole number, not true"),
    "text for true": (opened(preempt="true"), "must be true or false, not 'true'"),
    "null for a plain option": (opened(preempt=None), "true or false, not null"),
    "a weight beyond u32": (opened(weight=2**32), "must be 0 to 4294967295"),
    "an unknown algorithm": (opened(growth_algo="sticky"), "must be one of Sticky, Linear"),
    "an algorithm with content": (opened(growth_algo={"Sticky": 1}), "must be one of Sticky"),
    "an unknown placement": (opened(placement="Here"), "Standard, Sticky, Floating"),
    "null as nodes": (opened(nodes=None), "must be a list, not null"),
    "a negative node": (opened(nodes=[0, -1]), "nodes: [1] must be 0 to"),
    "an unknown matcher": (matched({"CommPrefx": "a"}), "did you mean 'CommPrefix'"),
    "a matcher without value": (plan(matches=[["IsKthread"]]), "must be a matcher"),
    "an empty matcher": (matched({}), "with one key, not 0 keys"),
    "two matchers in one": (matched({"UIDEquals": 1, "GIDEquals": 1}), "not 2 keys"),
    "a matcher outside a block": (plan(matches=[{"UIDEquals": 1}]), "must be a list of matchers"),
    "no blocks at all": (plan(matches=None), "must be a list of lists"),
    "a nice beyond i32": (matched({"NiceAbove": 2**31}), "must be -2147483648 to"),
    "a negative uid": (matched({"UIDEquals": -1}), "must be 0 to 4294967295"),
    "one for true": (matched({"IsKthread": 1}), "must be true or false"),
    "half a tuple": (matched({"AvgRuntime": [0]}), "a list of 2 numbers, not a list of 1"),
    "17 layers": (layers(*[GROUPED] * 16), "has 17 layers, the engine takes 16"),
    "an empty match before the last": (plan(matches=[]), "only `[[]]` matches everything"),
    "a last layer that matches": (f"[{json.dumps({**REST, 'matches': MATCH})}]", "exactly `[[]]`"),
    "a last layer with two blocks": (f"[{json.dumps({**REST, 'matches': [[], []]})}]", "exactly"),
    "33 OR blocks": (plan(matches=MATCH * 33), "has 33 OR blocks, the engine takes 32"),
    "27 conditions": (matched(*[{"CommPrefix": "x"}] * 27), "has 27 matchers, the engine takes 26"),
    "a long cgroup prefix": (matched({"CgroupPrefix": "a" * 4097}), "is 4097 bytes long"),
    "a long cgroup suffix": (matched({"CgroupSuffix": "a" * 4096 + "/"}), "is 4097 bytes long"),
    "a long cgroup part": (matched({"CgroupContains": "a" * 4097}), "is 4097 bytes long"),
    "17 bytes of a name": (matched({"CommPrefix": "é" * 8 + "x"}), "is 17 bytes long"),
    "17 bytes of a leader's": (matched({"PcommPrefix": "x" * 17}), "is 17 bytes long"),
    "a hint beyond the range": (matched({"HintEquals": 1025}), "must be 0 to 1024, not 1025"),
    "two hints": (matched({"HintEquals": 1}, {"HintEquals": 1}), "has 2 HintEquals matchers"),
    "a hint beside a name": (matched({"HintEquals": 1}, *MATCH[0]), "cannot stand beside"),
    "a load without a hint": (matched({"DsqInsertBelow": 0.5}), "only beside a HintEquals"),
    "a load beyond 1": (
        matched({"HintEquals": 1}, {"SystemCpuUtilBelow": 1.5}),
        "must be 0.0 to 1.0, not 1.5",
    ),
    "a load twice": (
        matched({"HintEquals": 1}, *[{"DsqInsertBelow": 0.5}] * 2),
        "has 2 DsqInsertBelow matchers",
    ),
    "a load beside a name": (
        matched({"HintEquals": 1}, {"DsqInsertBelow": 0.5}, *MATCH[0]),
        "CommPrefix cannot stand beside",
    ),
    "a hint of two layers": (
        layers(GROUPED, GROUPED).replace("CommPrefix", "HintEquals").replace('"worker"', "7"),
        "hint 7 already leads to layer[0] 'l0'",
    ),
    "a reversed cpus_range": (sized(cpus_range=[2, 1]), "2 must not be above 1"),
    "an equal util_range": (sized(util_range=[0.5, 0.5]), "0.5 must be below 0.5"),
    "a template of another matcher": (plan(template=MATCH[0][0]), "crashes on CommPrefix"),
    "a template that does not compile": (plan(template={"CgroupRegex": "("}), "is not closed"),
    "a spread on one node": (
        plan([[{"NumaNode": 0}]], {"Open": {"growth_algo": "NodeSpread", "preempt": True}}),
        "NodeSpread cannot be combined",
    ),
}
REFUSED_BEFORE_THE_ENGINE_NOTICES = {
    "16 bytes of a name": (matched({"CommPrefix": "x" * 16}), "is 16 bytes long"),
    "16 bytes to exclude": (matched({"PcommPrefixExclude": "x" * 16}), "is 16 bytes long"),
    "16 bytes to join": (matched({"CmdJoin": "x" * 16}), "is 16 bytes long"),
    "4096 bytes of cgroup": (matched({"CgroupPrefix": "a" * 4096}), "is 4096 bytes long"),
    "a NUL byte in a pattern": (matched({"CommPrefix": "a\0"}), "NUL byte"),
    "a NUL byte in a name": (plan(name="a\0"), "NUL byte"),
    "a name of 128 bytes": (plan(name="n" * 128), "crashes beyond 127"),
    "a GPU matcher": (matched({"UsedGpuPid": True}), "--enable-gpu-support"),
    "a NUMA node that cannot be": (matched({"NumaNode": 32}), "nodes up to 31"),
    "a look-ahead": (matched({"CgroupRegex": "a(?=b)"}), "look-around is not supported"),
    "17 regular expressions": (
        plan(matches=[[{"CgroupRegex": "a"}]] * 17),
        "has 17 CgroupRegex matchers, the engine takes 16",
    ),
    "performance beyond the kernel's": (opened(perf=1025), "ejects the engine beyond 1024"),
    "performance beyond u32": (opened(perf=2**32), "must be 0 to 1024"),
    "no CPU for Confined": (confined(cpus_range=[0, 0]), "needs at least one CPU"),
    "a range twice, Confined": (confined(cpus_range=[1, 2], cpus_range_frac=[0, 1]), "together"),
    "a range twice, Grouped": (sized(cpus_range=[1, 2], cpus_range_frac=[0, 1]), "together"),
    "a fraction beyond 1": (sized(cpus_range_frac=[0, 1.5]), "fractions of all CPUs"),
    "reversed fractions": (sized(cpus_range_frac=[0.9, 0.1]), "0.9 must not be above 0.1"),
    "a negative utilisation": (sized(util_range=[-1, 1]), "must not be negative"),
    "a half-life on Open": (opened(util_peak_half_life_ms=5), "needs util_range"),
    "a node twice": (opened(nodes=[1, 1]), "nodes: has 1 twice"),
    "a cache that cannot be": (opened(llcs=[64]), "64 does not exist"),
    "a template in the last layer": (
        f"[{json.dumps({**REST, 'template': {'CgroupSuffix': 'no-such-cgroup'}})}]",
        "must stay the one that takes everything",
    ),
    "all four kinds": (
        layers(
            {"Open": {"preempt": True}},
            {"Grouped": {**GROUPED["Grouped"], "preempt": True}},
            GROUPED,
        ),
        "does not verify",
    ),
}
TAKEN_WITH_A_WARNING = {
    "an unknown key of a layer": (plan(coment="x"), "did you mean 'comment'"),
    "the internal cpuset": (plan(cpuset=[1]), "'cpuset', which the engine ignores"),
    "an unknown option": (opened(slice_ms=20), "did you mean 'slice_us'"),
    "an option of other kinds": (opened(util_range=5), "is an option of Confined and Grouped"),
    "an option of Grouped": (confined(idle_confined=True), "is an option of Grouped"),
    "a layer that hides others": (plan(matches=[[]]), "no later layer gets any"),
    "an empty block beside others": (plan(matches=[*MATCH, []]), "matches[1]: matches every"),
    "an empty prefix": (matched({"CommPrefix": ""}), "no later layer gets any"),
    "an empty prefix to exclude": (matched({"CommPrefixExclude": ""}), "never matches"),
    "two layers of one name": (plan(name="rest"), "is the name of 2 layers"),
    "a name of 64 bytes": (plan(name="n" * 64), "more than 63 ASCII letters"),
    "a cgroup with leading slash": (matched({"CgroupPrefix": "/kube"}), "no leading slash"),
    "a suffix without slash": (matched({"CgroupSuffix": "a.scope"}), "so must a suffix"),
    "an absolute cgroup": (matched({"CgroupContains": "sys/fs/cgroup/a"}), "start below"),
    "an expression with an end": (matched({"CgroupRegex": "scope/$"}), "end with a slash"),
    "an expression with a start": (matched({"CgroupRegex": "^kube"}), "starts with /sys/fs"),
    "threads that are not the kernel's": (matched({"IsKthread": False}), "false matches kthreads"),
    "an empty range of run times": (matched({"AvgRuntime": [5, 5]}), "no run time is from 5"),
    "a nice that cannot be": (matched({"NiceEquals": 20}), "nice values are -20 to 19"),
    "a nice above all": (matched({"NiceAbove": 19}), "nice values are"),
    "a join word of 13 bytes": (matched({"CmdJoin": "x" * 13}), "a join word has 12"),
    "a hint without its map": (matched({"HintEquals": 1}), "--task-hint-map"),
    "a template": (plan(template={"CgroupSuffix": "no-such-cgroup"}), "expands once, at start"),
    "a template with slash": (plan(template={"CgroupSuffix": "no-such/"}), "never expands"),
    "no CPU for Grouped": (sized(cpus_range=[0, 0]), "can own no CPU"),
    "a weight beyond the range": (opened(weight=10_001), "is cut to 10000"),
    "a negative fraction": (opened(yield_ignore=-0.5), "negative number has no effect"),
    "preempt with its opposite": (
        opened(preempt=True, disallow_open_after_us=1),
        "has no effect with preempt",
    ),
    "preempt_first alone": (opened(preempt_first=True), "has no effect without preempt"),
    "a deprecated option": (opened(idle_smt=True), "is deprecated"),
    "memory bandwidth": (sized(membw_gb=10), "needs resctrl"),
    "StickyDynamic": (sized(growth_algo="StickyDynamic"), "without a CPU"),
    "Topo without nodes": (sized(growth_algo={"Topo": None}), "without nodes or llcs"),
    "two Open layers": (layers({"Open": {}}), "2 Open layers without preempt ('l0', 'rest')"),
}


def parameters(table: dict[str, Any]) -> list[Any]:
    values = [value if isinstance(value, tuple) else (value,) for value in table.values()]
    return [pytest.param(*value, id=name) for name, value in zip(table, values, strict=True)]


def lines(text: str, severity: ProblemSeverity) -> list[str]:
    return [
        problem.line
        for problem in check(text, capabilities_of(None))
        if problem.severity is severity
    ]


@pytest.mark.parametrize("text", parameters(CLEAN))
def test_nothing_is_said_of_a_sound_configuration(text):
    assert check(text, capabilities_of(None)) == ()


@pytest.mark.parametrize(
    ("text", "reason"), parameters(REFUSED_BY_BOTH | REFUSED_BEFORE_THE_ENGINE_NOTICES)
)
def test_what_the_engine_cannot_run_is_refused_with_the_reason(text, reason):
    reasons = lines(text, ProblemSeverity.REFUSED)

    assert [line for line in reasons if reason in line], reasons


@pytest.mark.parametrize(("text", "warning"), parameters(TAKEN_WITH_A_WARNING))
def test_what_the_engine_ignores_or_misreads_is_a_warning(text, warning):
    warnings = lines(text, ProblemSeverity.IGNORED)

    assert [line for line in warnings if warning in line], warnings
    assert lines(text, ProblemSeverity.REFUSED) == []


@pytest.mark.parametrize(("text", "reason"), parameters(REFUSED_BY_BOTH))
def test_the_real_engine_refuses_it_too(text, reason, offline_engine):
    taken, said = verify_offline(offline_engine, text)

    assert not taken, reason
    assert said.startswith(("Error: ", "\nthread", "thread")), said


@pytest.mark.parametrize(
    "text",
    parameters(
        {
            name: value if isinstance(value, str) else value[0]
            for table in (CLEAN, TAKEN_WITH_A_WARNING, REFUSED_BEFORE_THE_ENGINE_NOTICES)
            for name, value in table.items()
        }
    ),
)
def test_the_real_engine_finds_nothing_before_it_looks_at_the_kernel(text, offline_engine):
    taken, said = verify_offline(offline_engine, text)

    assert taken, said
    assert NO_SCHED_EXT in said
