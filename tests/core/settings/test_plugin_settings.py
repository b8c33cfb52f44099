"""``temper settings`` with plugins that declare their tables."""

import json

import pytest

from tests.core.cli.test_command_line import install, temper

ACME = """
from attrs import frozen
from attrs.validators import gt
from temper_core import SettingsTable, hookimpl, setting

@frozen
class Bounds:
    most: int = setting(3, "Most of them.")

@frozen
class Options:
    period_s: float = setting(2.5, "Seconds between two cups.", validator=gt(0))
    beans: tuple[str, ...] = setting(("arabica",), "Kinds of beans.")
    bounds: Bounds = Bounds()

@hookimpl
def temper_settings():
    return [SettingsTable(Options)]
"""


def rows_of(done):
    assert done.returncode == 0, done.stderr
    return {row["setting"]: row for row in json.loads(done.stdout)}


def settings_with(tmp_path, text, environment, *arguments):
    path = tmp_path / "agent.toml"
    path.write_text(text)
    return temper("settings", "--settings", str(path), *arguments, env=environment), path


def test_a_plugins_keys_have_value_default_meaning_and_origin(tmp_path):
    environment = install(tmp_path, "acme", ACME)
    text = "[plugins.acme]\nperiod_s = 4\n[plugins.acme.bounds]\nmost = 9\n"

    done, path = settings_with(tmp_path, text, environment, "--output", "json")

    rows = rows_of(done)
    assert rows["plugins.acme.period_s"] == {
        "setting": "plugins.acme.period_s",
        "value": 4.0,
        "source": str(path),
        "default": 2.5,
        "meaning": "Seconds between two cups.",
    }
    assert rows["plugins.acme.beans"]["source"] == "default"
    assert rows["plugins.acme.beans"]["value"] == ["arabica"]
    assert (
        rows["plugins.acme.bounds.most"]["value"],
        rows["plugins.acme.bounds.most"]["default"],
    ) == (9, 3)
    assert "plugins.acme" not in rows


def test_the_table_shows_a_plugins_keys_with_the_default_that_was_replaced(tmp_path):
    environment = install(tmp_path, "acme", ACME)

    done, path = settings_with(tmp_path, "[plugins.acme]\nperiod_s = 4\n", environment)

    lines = {line.split()[0]: line.split() for line in done.stdout.splitlines()}
    assert lines["plugins.acme.period_s"][1:4] == ["4.0", str(path), "2.5"]
    assert lines["plugins.acme.beans"][1:3] == ['["arabica"]', "default"]


def test_every_mistake_in_a_plugins_table_is_one_line_with_file_key_value_and_what_is_allowed(
    tmp_path,
):
    environment = install(tmp_path, "acme", ACME)
    text = (
        "[plugins.acme]\nperiod_s = -1\nbean = 3\n[plugins.acme.bounds]\nmost = 'x'\n"
        "[plugins.linter]\nhot_cpu = 7\n"
    )

    done, path = settings_with(tmp_path, text, environment)

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        f"temper: {path}: plugins.acme.bounds.most: must be a whole number, not 'x'",
        (
            f"temper: {path}: plugins.acme: unknown key 'bean'; allowed are beans, bounds, "
            "period_s; did you mean 'beans'?"
        ),
        f"temper: {path}: plugins.acme.period_s: must be > 0: -1.0",
        f"temper: {path}: plugins.linter.hot_cpu: must be <= 1.0: 7.0",
    ]


BROKEN = {
    "it raises": "raise RuntimeError('out of coffee')",
    "no record": "return [3]",
    "no class": "return [SettingsTable({})]",
    "a key without a default": "return [SettingsTable(Bare)]",
    "two tables": "return [SettingsTable(Whole), SettingsTable(Whole)]",
    "a default that raises": "return [SettingsTable(Raising)]",
}
SPOILT = """
from attrs import Factory, field, frozen
from temper_core import SettingsTable, hookimpl

@frozen
class Bare:
    key: int

@frozen
class Whole:
    key: int = 1

def fail():
    raise RuntimeError("no default today")

@frozen
class Raising:
    key: int = Factory(fail)

@hookimpl
def temper_settings():
    {}
"""


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_a_plugin_that_fails_in_its_declaration_is_named_and_hurts_nothing(tmp_path, body):
    environment = install(tmp_path, "acme", SPOILT.format(body))

    done, _ = settings_with(tmp_path, "[plugins.acme]\nkey = 3\n", environment, "--output", "json")

    rows = rows_of(done)
    assert done.stderr.startswith("temper: plugin 'acme': ")
    assert len(done.stderr.splitlines()) == 1
    assert rows["plugins.acme"]["value"] == {"key": 3}
    assert rows["plugins.linter.hot_cpu"]["value"] == 0.5


def test_a_table_that_no_plugin_declares_is_printed_as_it_was_given(tmp_path):
    environment = install(tmp_path, "acme", "")

    done, path = settings_with(
        tmp_path, "[plugins.acme]\nkey = 3\n", environment, "--output", "json"
    )

    row = rows_of(done)["plugins.acme"]
    assert (row["value"], row["source"]) == ({"key": 3}, str(path))


def test_a_plugin_that_the_settings_keep_out_declares_nothing(tmp_path):
    environment = install(tmp_path, "acme", ACME)

    done, _ = settings_with(
        tmp_path, "[plugin_host]\nallow = ['linter']\n", environment, "--output", "json"
    )

    rows = rows_of(done)
    assert not [name for name in rows if name.startswith("plugins.acme")]
    assert "plugins.linter.hot_cpu" in rows


def test_the_tables_of_the_plugins_that_ship_say_what_every_key_means():
    rows = rows_of(temper("settings", "--output", "json"))

    keys = [row for name, row in rows.items() if name.startswith("plugins.")]
    assert {row["setting"].split(".")[1] for row in keys} >= {"kubernetes", "linter"}
    assert all(row["meaning"].endswith(".") for row in keys)


@pytest.mark.parametrize("plugin", ["builtin-profiles", "console", "density", "trainer"])
def test_a_plugin_of_ours_without_settings_refuses_every_key(tmp_path, plugin):
    done, path = settings_with(tmp_path, f"[plugins.{plugin}]\ncolour = 'red'\n", None)
    empty, _ = settings_with(tmp_path, f"[plugins.{plugin}]\n", None)

    assert done.returncode == 2
    assert done.stderr == (
        f"temper: {path}: plugins.{plugin}: unknown key 'colour'; no key is allowed\n"
    )
    assert empty.returncode == 0


def test_a_pod_source_that_the_agent_refuses_is_refused_by_settings_too(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text('[pods]\nsource = "kubernets"\n')

    done = temper("settings", "--settings", str(path))

    assert done.returncode == 2
    assert "no pod source is named 'kubernets'; there are: file, kubernetes, local" in done.stderr
