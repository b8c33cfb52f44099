"""Commands that plugins add to ``temper profiles``, ``temper k8s`` and ``kubectl temper``."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.cli.test_command_line import install, temper

KUBECTL_TEMPER = str(Path(sys.executable).with_name("kubectl-temper"))

CAFE = """
import click
from temper_core import Command, hookimpl

@click.command()
def brew():
    "Make coffee."
    click.echo("coffee")

@click.group()
def beans():
    "Look after beans."

@beans.command("list")
@click.option("--kind", default="arabica")
def list_beans(kind):
    "List the beans."
    click.echo(f"beans: {{kind}}")

@hookimpl
def temper_commands():
    return [
        Command("brew", "Make coffee.", lambda: brew, under="{under}"),
        Command("beans", "Look after beans.", lambda: beans, under="{under}"),
    ]
"""
GROUPS = {
    "temper profiles": ("profiles",),
    "kubectl temper": ("k8s",),
}


def both(under):
    return pytest.param(under, GROUPS[under], id=under)


EVERY = [both(under) for under in GROUPS]


def one(name, under, summary="Make coffee.", body="lambda: None"):
    return (
        "from temper_core import Command, hookimpl\n"
        "@hookimpl\ndef temper_commands():\n"
        f"    return [Command({name!r}, {summary!r}, {body}, under={under!r})]\n"
    )


@pytest.mark.parametrize(("under", "group"), EVERY)
def test_a_plugin_adds_a_command_and_a_group_that_the_help_lists(tmp_path, under, group):
    environment = install(tmp_path, "cafe", CAFE.format(under=under))

    told = temper(*group, "--help", env=environment)
    brewed = temper(*group, "brew", env=environment)
    listed = temper(*group, "beans", "list", "--kind", "robusta", env=environment)
    explained = temper(*group, "beans", "--help", env=environment)

    assert "  brew " in told.stdout
    assert "Look after beans." in told.stdout
    assert (brewed.returncode, brewed.stdout) == (0, "coffee\n")
    assert (listed.returncode, listed.stdout) == (0, "beans: robusta\n")
    assert "List the beans." in explained.stdout
    assert "brew" not in temper("--help", env={**environment, "XDG_CACHE_HOME": "/none"}).stdout


@pytest.mark.parametrize(
    ("group", "options"),
    [
        ("plugins", ("--settings", "--strict-plugins", "--agent", "--plugins-dir", "--output")),
        ("profiles", ("--settings", "--output")),
    ],
)
def test_the_help_of_a_group_that_lists_has_the_options_of_the_list(group, options):
    told = temper(group, "--help").stdout

    _, _, after = told.partition("Options without a sub-command, as of list:")
    listed, _, _ = after.partition("Commands:")
    assert [option for option in options if option in listed] == list(options)


def test_kubectl_temper_has_the_same_commands(tmp_path):
    environment = install(tmp_path, "cafe", CAFE.format(under="kubectl temper"))

    def kubectl(*arguments):
        return subprocess.run(
            [KUBECTL_TEMPER, *arguments],
            check=False,
            capture_output=True,
            text=True,
            env=environment,
        )

    assert "  beans " in kubectl("--help").stdout
    assert kubectl("brew").stdout == "coffee\n"
    assert kubectl("beans", "list").stdout == "beans: arabica\n"


@pytest.mark.parametrize(("under", "group"), EVERY)
@pytest.mark.parametrize(
    "source",
    [
        "raise ImportError('no beans here')",
        "from temper_core import hookimpl\n@hookimpl\ndef temper_commands():\n    1 / 0\n",
        one("brew", "kubectl brew"),
        one("brew", "temper", body="3"),
    ],
    ids=["import", "hook", "unknown group", "nothing to load"],
)
def test_a_broken_plugin_is_named_and_hurts_no_other_command(tmp_path, under, group, source):
    install(tmp_path, "broken", source)
    environment = install(tmp_path, "cafe", CAFE.format(under=under))

    told = temper(*group, "--help", env=environment)
    missed = temper(*group, "drip", env=environment)

    assert told.returncode == 0
    assert "  brew " in told.stdout
    assert temper(*group, "brew", env=environment).stdout == "coffee\n"
    assert "plugin 'broken'" in told.stderr
    assert missed.returncode == 2
    assert "no plugin offers 'drip'; plugin 'broken' is set aside: " in missed.stderr


@pytest.mark.parametrize(("under", "group"), EVERY)
def test_a_command_that_cannot_be_loaded_names_its_plugin(tmp_path, under, group):
    environment = install(tmp_path, "broken", one("brew", under, body="lambda: 1 / 0"))

    done = temper(*group, "brew", env=environment)

    assert done.returncode == 2
    assert "plugin 'broken'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("under", "group", "own"),
    [
        ("temper profiles", ("profiles",), "check"),
        ("kubectl temper", ("k8s",), "status"),
    ],
)
def test_an_own_command_wins_over_a_plugins_of_the_same_name(tmp_path, under, group, own):
    environment = install(tmp_path, "rival", one(own, under, "Something else."))
    bare = temper(*group, own, "--help")

    done = temper(*group, own, "--help", env=environment)

    assert done.stdout == bare.stdout
    assert "Something else." not in temper(*group, "--help", env=environment).stdout


@pytest.mark.parametrize(("under", "group"), EVERY)
def test_a_name_that_two_plugins_claim_in_a_group_goes_to_neither(tmp_path, under, group):
    install(tmp_path, "acme", one("brew", under))
    environment = install(tmp_path, "zeta", one("brew", under))

    told = temper(*group, "--help", env=environment)
    done = temper(*group, "brew", env=environment)

    assert told.returncode == 0
    assert "brew" not in told.stdout
    assert done.returncode == 2
    assert f"'{under} brew' is claimed by acme and zeta, and goes to neither" in done.stderr


def test_the_same_name_in_two_groups_is_two_commands(tmp_path):
    install(tmp_path, "acme", CAFE.format(under="temper profiles"))
    environment = install(tmp_path, "zeta", CAFE.format(under="kubectl temper"))

    profiles = temper("profiles", "brew", env=environment)
    cluster = temper("k8s", "brew", env=environment)

    assert (profiles.stdout, profiles.stderr) == ("coffee\n", "")
    assert (cluster.stdout, cluster.stderr) == ("coffee\n", "")


FAILING = """
import click
from temper_core import Command, InputError, hookimpl

@click.command()
@click.option("--how", default="bug")
def brew(how):
    "Make coffee."
    if how == "known":
        raise InputError("no beans")
    if how == "exit":
        raise click.exceptions.Exit(7)
    raise RuntimeError("the pot\\nis cracked")

@hookimpl
def temper_commands():
    return [Command("brew", "Make coffee.", lambda: brew, under="{under}")]
"""


@pytest.mark.parametrize(("under", "group"), [*EVERY, pytest.param("temper", (), id="temper")])
def test_a_command_that_raises_is_one_line_with_its_plugin_and_exit_code_2(tmp_path, under, group):
    environment = install(tmp_path, "cafe", FAILING.format(under=under))

    done = temper(*group, "brew", env=environment)
    traced = temper(*group, "brew", env={**environment, "TEMPER_TRACEBACK": "1"})

    line = "temper: plugin 'cafe': the command 'brew' failed: RuntimeError: the pot is cracked\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)
    assert traced.returncode == 2
    assert "Traceback" in traced.stderr
    assert traced.stderr.endswith(line)


@pytest.mark.parametrize(
    ("how", "code", "words"), [("known", 2, "temper: no beans\n"), ("exit", 7, "")]
)
def test_a_command_chooses_its_own_error_and_exit_code(tmp_path, how, code, words):
    environment = install(tmp_path, "cafe", FAILING.format(under="temper"))

    done = temper("brew", "--how", how, env=environment)

    assert (done.returncode, done.stderr) == (code, words)


def test_a_command_of_an_unknown_group_is_refused_with_the_groups(tmp_path):
    environment = install(tmp_path, "cafe", one("brew", "kubectl brew"))

    done = temper("brew", env=environment)

    assert (
        "command 'brew': under is 'kubectl brew', and must be one of 'temper', "
        "'temper profiles', 'kubectl temper'"
    ) in done.stderr


def test_the_help_shows_one_line_of_a_long_summary(tmp_path):
    summary = "Make coffee.\x1b[31m\n" + "very " * 100
    environment = install(tmp_path, "cafe", one("brew", "temper profiles", summary))

    done = temper("profiles", "--help", env={**environment, "COLUMNS": "200"})

    assert "\x1b" not in done.stdout
    assert done.stdout.count("very") < 20
    assert "…\n" in done.stdout
