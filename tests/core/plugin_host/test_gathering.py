import re
import time

import pytest
from structlog.testing import capture_logs

from temper_core import (
    Command,
    Endpoint,
    Invariant,
    PluginError,
    ThreadGroup,
    WorkloadProfile,
    hookimpl,
)
from temper_core.plugin_host import PluginHost
from temper_core.records.profiles import ShapeRange
from temper_core.settings.models import PluginHostSettings, Settings


def invariant(name):
    return Invariant(name, lambda _: (), why="it always holds")


class Offering:
    """A plugin whose invariants are whatever it was made with."""

    def __init__(self, answer):
        self.answer = answer

    @hookimpl
    def temper_invariants(self):
        return self.answer()


class Steady(Offering):
    def __init__(self, name="steady"):
        super().__init__(lambda: [invariant(name)])


def half_way():
    yield invariant("half")
    raise ZeroDivisionError("the rest")


def leave():
    raise SystemExit(1)


def endless():
    while True:
        yield invariant("endless")


NONSENSE = {
    "raises half way": (half_way, "ZeroDivisionError: the rest"),
    "exits": (leave, "SystemExit: 1"),
    "is no list": (lambda: 7, "returned 7, which is no list of Invariant"),
    "holds a stranger": (lambda: [invariant("a"), "b"], "returned 'b', which is no Invariant"),
    "cannot be called": (
        lambda: [Invariant("a", "not a function", why="")],
        "returned a Invariant whose 'check' cannot be called",
    ),
    "names itself twice": (
        lambda: [invariant("a"), invariant("a")],
        "returned two records named 'a'",
    ),
    "never ends": (endless, "returned more than 100000 items"),
    "breaks a record": (
        lambda: [Invariant("No Name", None, why="")],
        "ValueError: Invariant.name must be lower-case letters",
    ),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_an_answer_that_is_nonsense_costs_its_plugin_and_nobody_else(kind, host):
    answer, reason = NONSENSE[kind]
    host.add(Offering(answer), "broken")
    host.add(Steady(), "steady")

    with capture_logs() as logs:
        found = host.gather("temper_invariants", Invariant)

    assert [(c.plugin, c.record.name) for c in found] == [("steady", "steady")]
    assert reason in {state.name: state.failure for state in host.states()}["broken"]
    assert [(e["event"], e["plugin"], e["during"]) for e in logs] == [
        ("plugin_set_aside", "broken", "temper_invariants")
    ]


def test_a_wrong_answer_is_named_with_the_line_of_its_hook(host):
    host.add(Offering(lambda: [3]), "broken")
    line = Offering.temper_invariants.__code__.co_firstlineno

    with capture_logs():
        host.gather("temper_invariants", Invariant)

    place = f"test_gathering.py:{line} in temper_invariants"
    assert host.states()[0].failure == f"returned 3, which is no Invariant ({place})"


@pytest.mark.parametrize("answer", [lambda: time.sleep(60), lambda: [0 for _ in iter(int, 1)]])
def test_a_hook_that_hangs_is_left_behind_and_never_asked_again(answer):
    host = PluginHost(Settings(plugin_host=PluginHostSettings(deadline_s=0.2)))
    asked = []
    host.add(Offering(lambda: asked.append(1) or answer()), "hangs")
    host.add(Steady(), "steady")

    with capture_logs():
        first = host.gather("temper_invariants", Invariant)
        second = host.gather("temper_invariants", Invariant)

    assert [c.plugin for c in (*first, *second)] == ["steady", "steady"]
    assert asked == [1]
    assert host.failures == {"hangs": 1, "steady": 0}


def test_a_name_claimed_twice_goes_to_neither_and_the_plugins_other_names_stay(host):
    host.add(Offering(lambda: [invariant("contested"), invariant("own")]), "one")
    host.add(Steady("contested"), "other")

    with capture_logs() as logs:
        found = host.gather("temper_invariants", Invariant)

    assert [(c.plugin, c.record.name) for c in found] == [("one", "own")]
    assert [(claim.name, claim.plugins) for claim in host.contested("temper_invariants")] == [
        ("contested", ("one", "other"))
    ]
    assert [(e["event"], e["plugin"]) for e in logs] == [
        ("plugin_name_contested", "one"),
        ("plugin_name_contested", "other"),
    ]
    assert host.failures == {"one": 1, "other": 1}


def test_a_method_and_path_claimed_twice_goes_to_neither(host):
    class Serving:
        def __init__(self, name, method):
            self.endpoint = Endpoint(name, method, "/ages", "Ages.", lambda _: {})

        @hookimpl
        def temper_endpoints(self):
            return [self.endpoint]

    host.add(Serving("ages", "GET"), "one")
    host.add(Serving("years", "GET"), "other")
    host.add(Serving("set-ages", "PUT"), "third")

    with capture_logs():
        found = host.gather("temper_endpoints", Endpoint)

    assert [c.plugin for c in found] == ["third"]


def test_one_plugin_may_tune_one_profile_for_several_machines(host):
    def profile(cores):
        shape = ShapeRange(cores=cores)
        return WorkloadProfile("db", (ThreadGroup("rest"),), machine_shape=shape)

    class Tuning:
        @hookimpl
        def temper_profiles(self):
            return [profile(4), profile(8)]

    host.add(Tuning(), "tuning")

    found = host.gather("temper_profiles", WorkloadProfile)

    assert [c.record.machine_shape.cores for c in found] == [4, 8]


@pytest.mark.parametrize(
    "hook",
    [
        pytest.param(lambda seen: lambda settings: seen.append(settings) or [], id="required"),
        pytest.param(lambda seen: lambda settings=None: seen.append(settings) or [], id="default"),
    ],
)
def test_every_plugin_is_given_its_own_settings(hook):
    host = PluginHost(Settings(plugins={"mine": {"age": 3}, "other": {"age": 4}}))
    seen = []
    plugin = type("Mine", (), {})()
    plugin.temper_invariants = hookimpl(hook(seen))
    host.add(plugin, "mine")

    host.gather("temper_invariants", Invariant)

    assert [dict(settings) for settings in seen] == [{"age": 3}]


def test_a_plugin_cannot_change_the_settings():
    def meddle(settings):
        settings["age"] = 5

    host = PluginHost(Settings(plugins={"mine": {"age": 3}}))
    plugin = type("Mine", (), {})()
    plugin.temper_invariants = hookimpl(meddle)
    host.add(plugin, "mine")

    with capture_logs():
        host.gather("temper_invariants", Invariant)

    assert host.settings.plugins == {"mine": {"age": 3}}
    assert host.failures == {"mine": 1}


def test_a_misspelt_hook_is_refused_by_name_and_does_not_spoil_the_next(host):
    class Misspelt:
        @hookimpl
        def temper_invariant(self):
            return []

    with pytest.raises(PluginError, match="unknown hook 'temper_invariant'"):
        host.add(Misspelt(), "misspelt")

    host.add(Steady(), "steady")
    assert [state.name for state in host.states()] == ["steady"]


def test_a_misspelt_hook_is_told_with_its_line_and_the_hook_that_was_meant(host):
    class Misspelt:
        @hookimpl
        def temper_detector(self):
            return []

    with pytest.raises(PluginError) as caught:
        host.add(Misspelt(), "misspelt")

    line = Misspelt.temper_detector.__code__.co_firstlineno
    place = f"({__file__}:{line})"
    meant = "did you mean 'temper_detectors'?"
    assert (
        str(caught.value) == f"plugin 'misspelt': unknown hook 'temper_detector' {place}; {meant}"
    )


def test_a_hook_that_is_like_none_is_told_with_all_hooks(host):
    class Dreaming:
        @hookimpl
        def temper_wishes(self):
            return []

    with pytest.raises(PluginError, match=r"unknown hook 'temper_wishes'.*; the hooks are temper_"):
        host.add(Dreaming(), "dreaming")


def test_a_hook_of_a_later_agent_may_be_optional(host):
    class Ahead(Steady):
        @hookimpl(optionalhook=True)
        def temper_wishes(self):
            return []

    host.add(Ahead(), "ahead")

    assert [state.hooks for state in host.states()] == [("temper_invariants",)]


def test_an_argument_that_a_hook_does_not_have_is_told_with_its_line(host):
    class Greedy:
        @hookimpl
        def temper_commands(self, settings):
            return [settings]

    with pytest.raises(PluginError) as caught:
        host.add(Greedy(), "greedy")

    line = Greedy.temper_commands.__code__.co_firstlineno
    problem = "has the unknown argument 'settings'; it takes no arguments"
    assert caught.value.reason == f"temper_commands ({__file__}:{line}) {problem}"


def test_a_name_already_taken_is_refused_and_its_owner_stays(host):
    host.add(Steady(), "steady")

    with pytest.raises(PluginError, match="another plugin already has this name"):
        host.add(Steady("usurper"), "steady")

    assert [c.record.name for c in host.gather("temper_invariants", Invariant)] == ["steady"]


def test_a_clash_is_an_error_where_plugins_are_held_strictly():
    host = PluginHost(Settings(plugin_host=PluginHostSettings(strict=True)))
    host.add(Steady(), "one")
    host.add(Steady(), "other")

    with capture_logs(), pytest.raises(PluginError, match="'steady' is claimed by one and other"):
        host.gather("temper_invariants", Invariant)


def test_without_a_log_a_warning_goes_to_stderr_and_leaves_stdout_to_results(
    host, capsys, monkeypatch
):
    monkeypatch.setattr("structlog.is_configured", lambda: False)
    host.add(Offering(leave), "broken")

    host.gather("temper_invariants", Invariant)

    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(
        r"temper: plugin 'broken': SystemExit: 1 \(test_gathering.py:\d+ in leave\)\n", printed.err
    )


@pytest.mark.parametrize(
    ("groups", "count"),
    [(("temper", "kubectl temper"), 2), (("temper", "temper"), 0)],
    ids=["in two groups", "in one group"],
)
def test_a_plugin_may_give_one_name_to_a_command_of_each_group(host, groups, count):
    class Commanding:
        @hookimpl
        def temper_commands(self):
            return [Command("waits", "", lambda: None, under=group) for group in groups]

    host.add(Commanding(), "commanding")

    with capture_logs():
        found = host.gather("temper_commands", Command)

    assert len(found) == count
