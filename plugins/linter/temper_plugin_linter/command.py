"""``temper lint``: the current violations, from the running agent or from a saved answer."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from attrs import fields, frozen

from temper_core import InputError, MachineError, ask_agent, fit_settings, load_settings, read_json
from temper_core.console import (
    output_option,
    plain_table,
    print_json,
    results_console,
    shown,
    watch_options,
)
from temper_plugin_linter.explaining import (
    explained_document,
    explained_lines,
    find,
    id_of,
    is_invariant,
    meant_invariant,
)
from temper_plugin_linter.limits import Limits

EXIT_VIOLATIONS = 1
STALE_S = 60.0
"""The age of the last look from which its violations are no answer, in seconds."""
STALE_WINDOWS = 5.0
"""The same in windows, for agents that look seldom."""


@frozen
class _Source:
    """The source of the answer: a file, or the agent that the settings name."""

    settings: Path | None
    saved: Path | None

    def answer(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the answer. Raise MachineError if no agent answers."""
        if self.saved:
            return read_json(self.saved)
        settings = load_settings(self.settings)
        try:
            return ask_agent("/violations", settings=settings)
        except InputError as error:
            answer = ask_agent("/plugins", settings=settings)
            if (why := _why_unjudged(answer["plugins"])) is None:
                raise
            raise MachineError(f"the agent runs without the plugin 'linter': {why}") from error

    def others(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the invariants of other plugins in the agent, by name, if it is asked."""
        if self.saved:
            return {}
        try:
            answer = ask_agent("/invariants", settings=load_settings(self.settings))
        except InputError:  # an agent of an earlier version
            return {}
        rows = answer.get("invariants") if isinstance(answer, dict) else None
        known = [row for row in rows or () if isinstance(row, dict)]
        return {str(row.get("name")): row for row in known if row.get("plugin") != "linter"}


def _why_unjudged(plugins: Iterable[Mapping[str, str]]) -> str | None:
    """Return why the linter does not run in the agent with *plugins*. None if it runs."""
    for plugin in plugins:
        if plugin["name"] == "linter":
            return None if plugin["state"] in ("active", "degraded") else plugin["failure"]
    return "install temper-plugin-linter on the agent's node, and restart the agent"


@click.command("lint")
@click.option("--settings", type=click.Path(path_type=Path), help="Settings file (TOML).")
@click.option(
    "--from",
    "saved",
    type=click.Path(path_type=Path, allow_dash=True),
    help="A saved answer of /violations or /observe. - reads standard input.",
)
@output_option
@watch_options
@click.option(
    "--explain",
    metavar="ID",
    help="Explain an invariant, or a violation by its id, and exit with 0.",
)
@click.pass_context
def lint(
    context: click.Context,
    settings: Path | None,
    saved: Path | None,
    output: str,
    explain: str | None,
) -> None:
    """Show the node's violations of invariants.

    Exit code 1 if there are violations, 0 if there are none, 3 if no agent answers, or the agent
    has no snapshot yet, has stopped to look at the node, or runs without the linter.
    """
    source = _Source(settings, saved)
    if explain is not None:
        _explain(explain, source, output)
        return
    violations = _violations_in(source.answer())
    if output == "json":
        print_json(violations)
    elif violations:
        _print_table(violations)
    else:
        click.echo("No violations.")
    context.exit(EXIT_VIOLATIONS if violations else 0)


def _explain(name: str, source: _Source, output: str) -> None:
    settings = load_settings(source.settings)
    limits = fit_settings(settings.plugins.get("linter", {}), Limits, plugin="linter")
    try:
        answer = source.answer()
        standing = _violations_in(answer)
        limits = _limits_in(answer) or limits
    except MachineError as error:
        if not is_invariant(name):
            raise MachineError(f"{error}{_told(name)}") from error
        standing = []
    rules = settings.lint
    windows = (
        f"A violation is reported after {rules.fire_after} such windows of {rules.windows}, and "
        f"cleared after {rules.clear_after} clean ones in a row."
    )
    explained = find(name, standing, {} if is_invariant(name) else source.others())
    if output == "json":
        print_json(explained_document(explained, limits, windows))
    else:
        click.echo("\n".join(explained_lines(explained, limits, windows)))


def _told(name: str) -> str:
    """Return what to add to a failure to ask for *name*, if it is a mistyped invariant."""
    meant = meant_invariant(name)
    return f"; {name!r} is no invariant of the linter{meant}" if meant else ""


def _limits_in(answer: Mapping[str, Any]) -> Limits | None:
    """Return the agent's thresholds in *answer*. The local settings may differ."""
    thresholds = answer.get("thresholds")
    if not isinstance(thresholds, dict):
        return None
    known = {
        threshold.name: thresholds[threshold.name]
        for threshold in fields(Limits)
        if threshold.name in thresholds
    }
    return fit_settings(known, Limits, plugin="linter")


def _violations_in(answer: object) -> list[Mapping[str, Any]]:
    if not isinstance(answer, dict) or not isinstance(answer.get("violations"), list):
        raise InputError("not an answer of /violations or /observe: it has no 'violations'")
    if answer.get("at") is None:
        raise MachineError("the agent has no snapshot of the node yet; try again in a few seconds")
    _require_recent(answer.get("age_s"), answer.get("window_s"))
    violations: list[Mapping[str, Any]] = answer["violations"]
    if not all(isinstance(violation, dict) for violation in violations):
        raise InputError("not an answer of /violations or /observe: a violation is not an object")
    return violations


def _require_recent(age_s: object, window_s: object) -> None:
    """Raise MachineError for violations of an agent that has stopped to look at the node."""
    numbers = [value if isinstance(value, int | float) else 0.0 for value in (age_s, window_s)]
    if numbers[0] > max(STALE_S, STALE_WINDOWS * numbers[1]):
        raise MachineError(
            f"the agent's last look at the node is {numbers[0]:.0f} s old, so that its violations "
            "say nothing of now; /readyz and the agent's log have the reason"
        )


def _print_table(violations: list[Mapping[str, Any]]) -> None:
    table = plain_table("id", "subject", "what", "what to do")
    for violation in violations:
        cells = (violation.get(key, "") for key in ("subject", "message", "fix"))
        table.add_row(*map(shown, (id_of(violation), *cells)))
    results_console().print(table)
