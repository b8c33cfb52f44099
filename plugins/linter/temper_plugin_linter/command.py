"""``temper lint``: the violations that stand, from the running agent or from a saved answer."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from attrs import fields, frozen

from temper_core import InputError, MachineError, ask_agent, fit_settings, load_settings, read_json
from temper_core.console import plain_table, results_console, shown
from temper_plugin_linter.explaining import (
    explained_document,
    explained_lines,
    find,
    id_of,
    is_invariant,
)
from temper_plugin_linter.limits import Limits

EXIT_VIOLATIONS = 1


@frozen
class _Source:
    """Where the answer comes from: a file, or the agent that the settings name."""

    settings: Path | None
    saved: Path | None

    def answer(self) -> Any:  # noqa: ANN401 - JSON may say anything
        """Return the answer. Raise MachineError where no agent gives one."""
        if self.saved:
            return read_json(self.saved)
        settings = load_settings(self.settings)
        try:
            return ask_agent("/violations", settings=settings)
        except InputError as error:
            told = ask_agent("/plugins", settings=settings)
            if (why := _why_unjudged(told["plugins"])) is None:
                raise
            raise MachineError(f"the agent runs without the plugin 'linter': {why}") from error


def _why_unjudged(plugins: Iterable[Mapping[str, str]]) -> str | None:
    """Return why the linter does not run in the agent that has *plugins*; None if it runs."""
    for plugin in plugins:
        if plugin["name"] == "linter":
            return None if plugin["state"] == "active" else plugin["failure"]
    return "install temper-plugin-linter where that agent is, and start it anew"


@click.command("lint")
@click.option("--settings", type=click.Path(path_type=Path), help="Settings file (TOML).")
@click.option(
    "--from",
    "saved",
    type=click.Path(path_type=Path, allow_dash=True),
    help="A saved answer of /violations or /observe; - reads it from standard input.",
)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option(
    "--explain",
    metavar="ID",
    help="Say what an invariant, or a violation by its id, means and what to do; exit with 0.",
)
@click.pass_context
def lint(
    context: click.Context,
    settings: Path | None,
    saved: Path | None,
    output: str,
    explain: str | None,
) -> None:
    """Show where the node does not keep its promises.

    Exit code 1 where a violation stands, 0 where none does, 3 where no agent answers, or it has
    not looked yet, or runs without the linter.
    """
    source = _Source(settings, saved)
    if explain is not None:
        _explain(explain, source, output)
        return
    found = _violations_in(source.answer())
    if output == "json":
        click.echo(json.dumps(found, indent=2))
    elif found:
        _print_table(found)
    else:
        click.echo("No violation stands.")
    context.exit(EXIT_VIOLATIONS if found else 0)


def _explain(asked: str, source: _Source, output: str) -> None:
    settings = load_settings(source.settings)
    limits = fit_settings(settings.plugins.get("linter", {}), Limits, plugin="linter")
    try:
        answer = source.answer()
        standing = _violations_in(answer)
        limits = _limits_in(answer) or limits
    except MachineError:
        if not is_invariant(asked):
            raise
        standing = []
    rules = settings.lint
    windows = (
        f"A violation stands after {rules.fire_after} such windows of {rules.windows}, and is "
        f"gone after {rules.clear_after} clean ones in a row."
    )
    explained = find(asked, standing)
    if output == "json":
        click.echo(json.dumps(explained_document(explained, limits, windows), indent=2))
    else:
        click.echo("\n".join(explained_lines(explained, limits, windows)))


def _limits_in(answer: Mapping[str, Any]) -> Limits | None:
    """Return the thresholds that the agent told of. The settings here may be others."""
    told = answer.get("thresholds")
    if not isinstance(told, dict):
        return None
    known = {each.name: told[each.name] for each in fields(Limits) if each.name in told}
    return fit_settings(known, Limits, plugin="linter")


def _violations_in(answer: object) -> list[Mapping[str, Any]]:
    if not isinstance(answer, dict) or not isinstance(answer.get("violations"), list):
        raise InputError("this is no answer of /violations or /observe: it has no 'violations'")
    if answer.get("at") is None:
        raise MachineError("the agent has not looked at the node yet; ask again in a few seconds")
    found: list[Mapping[str, Any]] = answer["violations"]
    if not all(isinstance(violation, dict) for violation in found):
        raise InputError("this is no answer of /violations or /observe: a violation is no object")
    return found


def _print_table(found: list[Mapping[str, Any]]) -> None:
    table = plain_table("id", "subject", "what", "what to do")
    for violation in found:
        cells = (violation.get(key, "") for key in ("subject", "message", "fix"))
        table.add_row(*map(shown, (id_of(violation), *cells)))
    results_console().print(table)
