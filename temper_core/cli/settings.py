"""``temper settings``: what is in force, and where each value came from."""

from pathlib import Path
from typing import Any

import click


@click.command("settings")
@click.option("--settings", "path", type=click.Path(path_type=Path), help="Settings file (TOML).")
@click.option("--output", type=click.Choice(["table", "json"]), default="table")
def command(path: Path | None, output: str) -> None:
    """Print the effective settings and where each came from.

    A file with mistakes gives all of them at once and exit code 2.
    """
    from temper_core.settings import load

    effective = load(path)
    rows = [(origin.path, _plain(origin.value), origin.source) for origin in effective.origins()]
    if output == "json":
        import json

        click.echo(json.dumps([dict(zip(_COLUMNS, row, strict=True)) for row in rows], indent=2))
        return
    _print_table(rows)


_COLUMNS = ("setting", "value", "source")


def _plain(value: object) -> Any:  # noqa: ANN401 - whatever JSON can say
    import attrs

    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if attrs.has(type(value)):
        return attrs.asdict(value)  # type: ignore[arg-type]
    return value


def _print_table(rows: list[tuple[str, Any, str]]) -> None:
    import json

    from temper_core.console import plain_table, results_console

    table = plain_table(*_COLUMNS)
    for setting, value, source in rows:
        table.add_row(setting, json.dumps(value), source)
    results_console().print(table)
