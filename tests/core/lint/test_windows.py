from collections import Counter
from itertools import count

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from temper_core import hookimpl
from temper_core.errors import PluginError
from temper_core.lint.cases import MOST_SUBJECTS
from temper_core.lint.windows import MOST_WARNINGS, Linter
from temper_core.plugin_host import PluginHost
from temper_core.records.invariants import Invariant
from temper_core.records.lint import Finding, Severity
from temper_core.records.snapshots import Mode, Observing, Overhead, PluginState, Status
from temper_core.settings.models import LintSettings
from temper_core.testing import make_snapshot

START = 1_750_000_000.0


def guard(plugin, function, *arguments, part):
    """Do as the plugin host does: a failure has the plugin's name."""
    assert part == "invariants"
    try:
        return list(function(*arguments))
    except ZeroDivisionError as error:
        raise PluginError(plugin, "divides by zero") from error


class Script:
    """An invariant that finds, window after window, the subjects it is told."""

    def __init__(self, *windows):
        self.windows = [window.split() for window in windows]

    def __call__(self, snapshot):
        for subject in self.windows.pop(0):
            if subject == "fails":
                raise ZeroDivisionError
            yield Finding(subject, f"{subject} at {snapshot.at:.0f}", "mend it", {"n": 1})


def linter_of(*checks, **changes):
    invariants = [
        ("linter", Invariant(f"rule_{number}", check, "because"))
        for number, check in enumerate(checks)
    ]
    return Linter(invariants, evolve(LintSettings(), **changes), guard)


def windows(how_many, **changes):
    for number in range(how_many):
        yield make_snapshot(at=START + 5 * number, monotonic_s=100.0 + 5 * number, **changes)


def judge_all(linter, how_many, **changes):
    return [linter.judge(snapshot) for snapshot in windows(how_many, **changes)]


def test_a_violation_stands_from_the_third_broken_window_on():
    verdicts = judge_all(linter_of(Script("a", "", "a", "a")), 4)

    assert [len(verdict) for verdict in verdicts] == [0, 0, 0, 1]
    [violation] = verdicts[-1]
    assert (violation.invariant, violation.subject, violation.plugin) == ("rule_0", "a", "linter")
    assert violation.message == f"a at {START + 15:.0f}"
    assert (violation.fix, violation.evidence) == ("mend it", {"n": 1})
    assert violation.severity is Severity.WARNING


def test_it_stands_since_its_first_finding():
    verdicts = judge_all(linter_of(Script("", "a", "", "a", "a")), 5)

    assert verdicts[-1][0].since == START + 5


def test_broken_windows_too_far_apart_never_count():
    verdicts = judge_all(linter_of(Script(*["a", "", "a", "", "", ""] * 4)), 24)

    assert not any(verdicts)


def test_it_clears_after_five_clean_windows_in_a_row():
    script = Script("a", "a", "a", "", "", "", "", "a", "", "", "", "", "")

    verdicts = judge_all(linter_of(script), 13)

    assert [len(verdict) for verdict in verdicts] == [0, 0, *[1] * 10, 0]


def test_after_clearing_it_takes_three_windows_again():
    script = Script("a", "a", "a", "", "", "a", "a", "a")

    verdicts = judge_all(linter_of(script, clear_after=2), 8)

    assert [len(verdict) for verdict in verdicts] == [0, 0, 1, 1, 0, 0, 0, 1]
    assert verdicts[-1][0].since == START + 25


def test_subjects_are_judged_apart():
    verdicts = judge_all(linter_of(Script("a b", "a", "a b", "b a")), 4)

    assert [violation.subject for violation in verdicts[2]] == ["a"]
    assert [violation.subject for violation in verdicts[3]] == ["a", "b"]


def test_a_single_window_can_be_enough():
    assert len(judge_all(linter_of(Script("a"), windows=1, fire_after=1), 1)[0]) == 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.booleans(), max_size=30), st.integers(1, 6), st.integers(0, 5), st.integers(1, 6)
)
def test_whatever_the_settings_only_enough_evidence_makes_a_violation(story, fire, more, clear):
    back = fire + more
    script = Script(*("a" if is_broken else "" for is_broken in story))
    linter = linter_of(script, windows=back, fire_after=fire, clear_after=clear)

    verdicts = judge_all(linter, len(story))

    for index, verdict in enumerate(verdicts):
        recent = story[max(0, index + 1 - back) : index + 1]
        was_standing = index > 0 and bool(verdicts[index - 1])
        clean = index + 1 >= clear and not any(story[index + 1 - clear : index + 1])
        if verdict and not was_standing:
            assert sum(recent) >= fire
        if was_standing:
            assert bool(verdict) != clean


def test_the_baseline_changes_nothing():
    linter = linter_of(Script("a", "a", "a"))
    judge_all(linter, 2)

    assert linter.judge(make_snapshot(window_s=0.0)) == ()
    assert len(linter.judge(make_snapshot(at=START + 10))) == 1


def seen_windows(*changes):
    """Return one snapshot per change of the usual one, five seconds apart."""
    return [
        evolve(snapshot, **change)
        for snapshot, change in zip(windows(len(changes)), changes, strict=True)
    ]


def subjects_of(linter, snapshots):
    return [[violation.subject for violation in linter.judge(s)] for s in snapshots]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(Status(Mode.RELOADING, generation=1), id="mode"),
        pytest.param(Status(Mode.ENFORCING, generation=2), id="generation"),
        pytest.param(Status(Mode.ENFORCING, generation=1, engine="other"), id="engine"),
    ],
)
def test_what_was_found_under_another_engine_is_forgotten(change):
    before = {"status": Status(Mode.ENFORCING, generation=1)}
    after = {"status": change}
    linter = linter_of(Script("a", "a", "a", "a", "a", "a"))

    found = subjects_of(linter, seen_windows(before, before, after, after, after, after))

    assert found == [[], [], [], [], [], ["a"]]


def test_what_stands_stands_until_the_new_engine_has_clean_windows():
    before = {"status": Status(Mode.ENFORCING, generation=1)}
    after = {"status": Status(Mode.ENFORCING, generation=2)}
    linter = linter_of(Script("a", "a", "a", "", ""), clear_after=2)

    found = subjects_of(linter, seen_windows(*[before] * 3, *[after] * 3))

    assert found == [[], [], ["a"], ["a"], ["a"], []]


def test_a_window_of_which_it_is_not_known_who_ran_is_neither_broken_nor_clean():
    blind = {"observing": Observing(knows_threads=False)}
    linter = linter_of(Script("a", "a", "a", ""), clear_after=2)

    found = subjects_of(linter, seen_windows({}, blind, {}, {}, blind, blind, {}))

    assert found == [[], [], [], ["a"], ["a"], ["a"], ["a"]]


def test_a_window_that_spans_a_pause_is_neither_broken_nor_clean():
    usual = {"overhead": Overhead(period_s=5.0)}
    paused = {**usual, "window_s": 60.0}
    linter = linter_of(Script("a", "a", "a"))

    found = subjects_of(linter, seen_windows(usual, paused, usual, usual))

    assert found == [[], [], [], ["a"]]


def test_a_period_that_was_stretched_is_no_pause():
    stretched = {"window_s": 60.0, "observing": Observing(period_s=60.0, asked_period_s=5.0)}
    linter = linter_of(Script("a", "a", "a"))

    assert subjects_of(linter, seen_windows(*[stretched] * 3)) == [[], [], ["a"]]


def test_all_invariants_of_a_plugin_are_asked_in_one_call():
    calls = []

    def counted(plugin, function, *arguments, **given):
        calls.append(plugin)
        return guard(plugin, function, *arguments, **given)

    names = [("mine", "one"), ("theirs", "two"), ("mine", "three")]
    invariants = [(plugin, Invariant(name, Script("a"), "because")) for plugin, name in names]
    linter = Linter(invariants, LintSettings(windows=1, fire_after=1), counted)

    [verdict] = judge_all(linter, 1)

    assert calls == ["mine", "theirs"]
    assert [v.invariant for v in verdict] == ["one", "two", "three"]


def test_who_failed_is_asked_first_so_that_others_success_ends_the_row_of_failures():
    host = PluginHost()
    host.add(TwoInvariants(), "two")
    invariants = [(c.plugin, c.record) for c in host.gather("temper_invariants", Invariant)]
    linter = Linter(invariants, LintSettings(windows=1, fire_after=1), host.call)

    with capture_logs():
        verdicts = judge_all(linter, 6)

    assert all([v.invariant for v in verdict] == ["works", "plugin_health"] for verdict in verdicts)
    assert (host.states()[0].state, host.states()[0].lost) == ("active", ())


class TwoInvariants:
    """A plugin of which the last invariant always fails."""

    @hookimpl
    def temper_invariants(self):
        return [
            Invariant("works", lambda _: [Finding("a", "is broken", "mend it")], "because"),
            Invariant("fails", lambda _: 1 / 0, "because"),
        ]


def test_what_is_no_finding_is_the_plugins_failure():
    linter = linter_of(lambda _: ["nonsense"], windows=1, fire_after=1)

    with pytest.raises(TypeError, match="rule_0 returned 'nonsense', which is not a Finding"):
        judge_all(linter, 1)


def test_an_invariant_is_not_listened_to_for_ever():
    endless = (Finding(f"s{number}", "is broken", "mend it") for number in count())

    [verdict] = judge_all(linter_of(lambda _: endless, windows=1, fire_after=1), 1)

    assert len(verdict) == MOST_SUBJECTS


def test_an_invariant_that_fails_is_named_and_the_others_are_judged():
    linter = linter_of(Script("fails"), Script("a"), windows=1, fire_after=1)

    [other, health] = judge_all(linter, 1)[0]

    assert (other.invariant, other.subject) == ("rule_1", "a")
    assert (health.invariant, health.subject) == ("plugin_health", "linter")
    assert "divides by zero" in health.message
    assert health.evidence == {"invariants_lost": "rule_0, rule_1"}
    assert health.since == START


def test_a_plugin_that_works_again_is_well_again():
    verdicts = judge_all(linter_of(Script("fails", "fails", "")), 3)

    assert [len(verdict) for verdict in verdicts] == [1, 1, 0]
    assert verdicts[1][0].since == START


def test_a_window_that_could_not_be_judged_is_neither_broken_nor_clean():
    verdicts = judge_all(
        linter_of(Script("a", "a", "fails", "a", *["fails"] * 2, ""), windows=9), 7
    )

    subjects = [[violation.subject for violation in verdict] for verdict in verdicts]
    assert subjects == [[], [], ["linter"], ["a"], ["a", "linter"], ["a", "linter"], ["a"]]


def test_evidence_that_is_too_old_is_forgotten_though_nothing_was_judged_since():
    verdicts = judge_all(linter_of(Script("a", "a", "a", *["fails"] * 6)), 9)

    assert [v.invariant for v in verdicts[6]] == ["rule_0", "plugin_health"]
    assert [v.invariant for v in verdicts[8]] == ["plugin_health"]


@pytest.mark.parametrize(("state", "count"), [("set_aside", 1), ("active", 0), ("not_allowed", 0)])
def test_a_plugin_that_was_set_aside_is_a_violation_even_if_it_has_no_invariant(state, count):
    plugin = PluginState("power", "1", "temper-power", (), state, failure="cannot be imported")

    [verdict] = judge_all(linter_of(), 1, plugins=(plugin,))

    assert [violation.subject for violation in verdict] == ["power"] * count


def test_a_part_of_a_plugin_that_was_set_aside_is_a_violation_and_costs_no_invariant():
    lost = ("exporter slow: did not return within 5 s",)
    plugin = PluginState("linter", "1", "temper-linter", (), "active", lost=lost)

    [[other, health]] = judge_all(
        linter_of(Script("a"), windows=1, fire_after=1), 1, plugins=(plugin,)
    )

    assert (other.invariant, health.invariant) == ("rule_0", "plugin_health")
    assert health.message == f"plugin 'linter' failed: {lost[0]}"
    assert health.evidence == {"invariants_lost": ""}


def test_the_names_are_those_of_all_invariants():
    assert linter_of(Script(), Script()).names == ("rule_0", "rule_1", "plugin_health")


def test_a_warning_is_logged_once_in_a_while():
    linter = linter_of(Script(*["a"] * 70), warn_every_s=100)

    with capture_logs() as logs:
        judge_all(linter, 70)

    events = Counter(log["event"] for log in logs)
    assert events == {"violation_stands": 4}
    assert (logs[0]["invariant"], logs[0]["subject"], logs[0]["evidence_n"]) == ("rule_0", "a", 1)


def test_a_violation_that_flaps_is_not_logged_more_often():
    linter = linter_of(Script(*["a", ""] * 30), windows=1, fire_after=1, clear_after=1)

    with capture_logs() as logs:
        judge_all(linter, 60)

    assert [log["event"] for log in logs].count("violation_stands") == 1


def test_an_error_is_logged_as_one():
    invariant = Invariant("rule", Script("a"), "because", Severity.ERROR)
    linter = Linter([("linter", invariant)], LintSettings(windows=1, fire_after=1), guard)

    with capture_logs() as logs:
        judge_all(linter, 1)

    assert [log["log_level"] for log in logs] == ["error"]


def test_a_thousand_violations_are_few_lines():
    subjects = " ".join(f"s{number}" for number in range(1_500))
    linter = linter_of(Script(*[subjects] * 20), warn_every_s=300)

    with capture_logs() as logs:
        verdicts = judge_all(linter, 20)

    assert len(verdicts[-1]) == MOST_SUBJECTS
    assert len(logs) <= MOST_WARNINGS + 1
    assert logs[-1]["event"] == "violations_not_logged"


def test_what_cleared_is_logged_in_one_line():
    linter = linter_of(Script("a b c d", "", ""), windows=1, fire_after=1, clear_after=2)

    with capture_logs() as logs:
        judge_all(linter, 3)

    [cleared] = [log for log in logs if log["event"] == "violations_cleared"]
    assert (cleared["count"], cleared["log_level"]) == (4, "info")
    assert cleared["first"] == ["rule_0: a", "rule_0: b", "rule_0: c"]


def of_owner(*windows):
    """Make an invariant that finds, window after window, subjects named OWNER/NAME."""
    script = [window.split() for window in windows]

    def check(_):
        for subject in script.pop(0):
            yield Finding(subject, "broken", "mend it", owner=subject.partition("/")[0])

    return check


def test_an_owner_that_renames_what_breaks_a_rule_is_a_violation():
    verdicts = judge_all(linter_of(of_owner("p/a", "p/b q/a", "p/c")), 3)

    assert [len(verdict) for verdict in verdicts] == [0, 0, 1]
    assert verdicts[-1][0].subject == "p (different threads)"


def test_a_subject_that_keeps_its_name_is_the_only_violation_of_its_owner():
    verdicts = judge_all(linter_of(of_owner(*["p/a"] * 8)), 8)

    assert [violation.subject for verdict in verdicts for violation in verdict] == ["p/a"] * 6


def test_new_names_of_one_owner_displace_no_subject_of_another():
    crowds = [" ".join(f"p/{window}-{number}" for number in range(300)) for window in range(7)]
    script = of_owner(*crowds[:4], *[f"{crowd} q/a" for crowd in crowds[4:]])

    verdicts = judge_all(linter_of(script), 7)

    assert [violation.subject for violation in verdicts[-1]] == ["p (different threads)", "q/a"]


def test_a_window_with_hot_threads_left_out_ends_no_violation():
    linter = linter_of(Script("a", "a", "a", *[""] * 20))
    judge_all(linter, 3)

    short = judge_all(linter, 10, observing=Observing(least_s=2.0, unlisted=300))
    whole = judge_all(linter, 6, observing=Observing(least_s=0.5, unlisted=300))

    assert [len(verdict) for verdict in short] == [1] * 10
    assert [len(verdict) for verdict in whole] == [1, 1, 1, 1, 0, 0]
