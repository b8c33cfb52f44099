import pytest
from attrs import evolve
from structlog.testing import capture_logs

from temper_core import Invariant, PluginError, hookimpl
from temper_core.plugin_host import load_host
from tests.patience import PATIENCE_S

BROKEN = {
    "cannot-import": "import a_module_that_nobody_has\n",
    "raises": "raise ValueError('no licence')\n",
    "exits": "raise SystemExit(3)\n",
    "interrupts": "raise KeyboardInterrupt\n",
    "hangs": "import time\ntime.sleep(60)\n",
    "spins": "while True: pass\n",
    "empty": "",
    "misspelt": """
        from temper_core import hookimpl

        @hookimpl
        def temper_invariant():
            return []
        """,
    "asks-too-much": """
        from temper_core import hookimpl

        @hookimpl
        def temper_invariants(kernel):
            return []
        """,
    "wraps": """
        from temper_core import hookimpl

        @hookimpl(wrapper=True)
        def temper_invariants():
            return (yield)
        """,
}
WHY = {
    "cannot-import": "ModuleNotFoundError: No module named 'a_module_that_nobody_has'",
    "raises": "ValueError: no licence",
    "exits": "SystemExit: 3",
    "interrupts": "KeyboardInterrupt",
    "hangs": "did not return within 0.2 s",
    "spins": "did not return within 0.2 s",
    "empty": "implements no hook; mark its functions with @hookimpl",
    "misspelt": "unknown hook 'temper_invariant'",
    "asks-too-much": "has the unknown argument 'kernel'; allowed is settings",
    "wraps": "wraps temper_invariants; no plugin may change what another answers",
}


def by_name(host):
    return {state.name: state for state in host.states()}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_plugin_that_cannot_be_loaded_is_set_aside_and_the_next_one_works(
    kind, install, steady, settings
):
    install(f"a-{kind}", BROKEN[kind])
    install("zz-steady", steady.format(name="steady"))

    deadline_s = 0.2 if "did not return" in WHY[kind] else PATIENCE_S
    with capture_logs() as logs:
        host = load_host(settings(deadline_s=deadline_s, allow=(f"a-{kind}", "zz-steady")))

    broken, works = by_name(host)[f"a-{kind}"], by_name(host)["zz-steady"]
    assert (broken.state, works.state) == ("set_aside", "active")
    assert WHY[kind] in broken.failure
    assert "\n" not in broken.failure
    assert host.failures[f"a-{kind}"] == 1
    assert [(entry["event"], entry["plugin"], entry["log_level"]) for entry in logs] == [
        ("plugin_set_aside", f"a-{kind}", "warning")
    ]
    assert "zz-steady" in {c.plugin for c in host.gather("temper_invariants", Invariant)}


def test_a_plugin_is_shown_with_its_distribution_version_and_hooks(install, steady, settings):
    install("steady", steady.format(name="steady"), distribution="acme-temper", version="3.1")

    state = by_name(load_host(settings()))["steady"]

    assert (state.distribution, state.version) == ("acme-temper", "3.1")
    assert state.hooks == ("temper_invariants",)
    assert (state.state, state.failure) == ("active", "")


def test_one_name_offered_by_two_distributions_goes_to_neither(install, steady, settings):
    install("twin", steady.format(name="one"), distribution="acme-one")
    install("twin", steady.format(name="other"), distribution="acme-other")

    with capture_logs():
        host = load_host(settings())

    state = by_name(host)["twin"]
    assert state.state == "set_aside"
    assert "acme-one and acme-other" in state.failure
    assert "twin" not in {c.plugin for c in host.gather("temper_invariants", Invariant)}


def test_a_plugin_that_is_not_allowed_is_not_even_imported(install, settings):
    install("stranger", "raise AssertionError('was imported')\n")

    host = load_host(settings(allow=()))

    assert by_name(host)["stranger"].state == "not_allowed"
    assert {state.state for state in host.states()} == {"not_allowed"}


def test_an_allowed_name_that_nothing_offers_is_reported(settings):
    with capture_logs() as logs:
        load_host(settings(allow=("lintr",)))

    assert [(entry["event"], entry["plugin"]) for entry in logs] == [("plugin_missing", "lintr")]


def test_settings_for_a_plugin_that_is_not_there_are_reported(settings):
    with capture_logs() as logs:
        load_host(evolve(settings(), plugins={"kubernets": {"node": "one"}}))

    assert [(entry["event"], entry["plugin"]) for entry in logs] == [
        ("plugin_missing", "kubernets")
    ]


@pytest.mark.parametrize(
    ("table", "meant"),
    [("tea_limits", "; did you mean 'tea-limits'?"), ("tea-timer", ""), ("coffee", "")],
)
def test_a_misspelt_table_is_told_with_its_file_and_the_plugin_that_takes_settings(
    install, settings, steady, table, meant
):
    without = steady.replace("{name}", "timers")
    install("tea-timers", without)
    install("tea-limits", without.replace("invariants()", "invariants(settings)"))

    with capture_logs() as logs:
        load_host(evolve(settings(), plugins={table: {}}), source="/etc/agent.toml")

    [reason] = [entry["reason"] for entry in logs if entry["event"] == "plugin_missing"]
    expected = "has a table of settings in /etc/agent.toml, but is not installed"
    assert reason == expected + meant


def test_strictness_turns_a_broken_plugin_into_an_error(install, settings):
    install("raises", BROKEN["raises"])

    with capture_logs(), pytest.raises(PluginError, match="'raises': ValueError: no licence"):
        load_host(settings(strict=True, allow=("raises",)))


@pytest.mark.parametrize(
    "entry_points",
    ["[temper.plugins]\nno equals sign\n", "[temper.plugins]\nbroken = not a module!\n"],
)
def test_broken_metadata_spoils_nothing_else(entry_points, install, steady, settings):
    install("broken", "", entry_points=entry_points)
    install("steady", steady.format(name="steady"))

    with capture_logs():
        states = by_name(load_host(settings()))

    assert states["steady"].state == "active"
    assert states["broken"].state == "set_aside"


def test_an_installed_plugin_cannot_take_the_place_of_one_that_is_built_in(
    install, steady, settings
):
    class BuiltIn:
        @hookimpl
        def temper_pod_sources(self):
            return []

    install("core", steady.format(name="intruder"))

    with capture_logs() as logs:
        host = load_host(settings(), extra={"core": BuiltIn()})

    assert by_name(host)["core"].distribution == "temper-agent"
    assert by_name(host)["core"].state == "active"
    assert ("plugin_refused", "core") in [(entry["event"], entry["plugin"]) for entry in logs]


@pytest.mark.parametrize("file", ["entry_points.txt", "METADATA"])
def test_metadata_that_is_no_text_costs_its_own_distribution_only(
    file, install, steady, settings, tmp_path
):
    install("garbage", steady.format(name="garbage"))
    install("steady", steady.format(name="steady"))
    (tmp_path / "garbage-1.2.dist-info" / file).write_bytes(b"\xff\xfe\x00[\x80")

    with capture_logs():
        states = by_name(load_host(settings()))

    assert states["steady"].state == "active"
    assert file == "METADATA" or "cannot be read" in states["garbage"].failure
