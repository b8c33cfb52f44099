"""``temper settings``: the settings in force, and the source of each value."""

from pathlib import Path
from typing import Any

import click

from temper_core.console import output_option, print_json


@click.command("settings")
@click.option("--settings", "path", type=click.Path(path_type=Path), help="Settings file (TOML).")
@click.option("--changed", is_flag=True, help="Only those that differ from their default.")
@output_option
def command(path: Path | None, changed: bool, output: str) -> None:
    """Print the effective settings and where each came from.

    A plugin's settings are in its table [plugins.NAME]. For a file with errors all of them
    are printed, those of plugins once the others are mended, and the exit code is 2.
    """
    from temper_core.cli.plugin_tables import lenient_host, plugin_origins
    from temper_core.node.pod_watch import chosen_pod_source
    from temper_core.settings import load

    effective = load(path)
    host = lenient_host(effective)
    origins = [*effective.origins(), *plugin_origins(effective, host)]
    chosen_pod_source(host, effective.settings.pods.source)
    rows = [
        (origin.path, _plain(origin.value), origin.source, _plain(origin.default), origin.meaning)
        for origin in origins
        if not changed or origin.value != origin.default
    ]
    if output == "json":
        print_json([dict(zip(_COLUMNS, row, strict=True)) for row in rows])
        return
    _print_table(rows)


_COLUMNS = ("setting", "value", "source", "default", "meaning")


def _plain(value: object) -> Any:  # noqa: ANN401 - any JSON
    import attrs

    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if attrs.has(type(value)):
        return attrs.asdict(value)  # type: ignore[arg-type]
    return value


def _print_table(rows: list[tuple[str, Any, str, Any, str]]) -> None:
    import json

    from temper_core.console import plain_table, results_console

    table = plain_table(*_COLUMNS)
    for setting, value, source, default, meaning in rows:
        changed = "" if value == default else json.dumps(default)
        items = _items(setting, value)
        table.add_row(*items[0], source, changed, meaning)
        for item in items[1:]:
            table.add_row(*item, source, "", "")
    results_console().print(table)


def _items(setting: str, value: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - any JSON
    """Return the rows of a setting: one, or one for each table of a list, without absent keys."""
    import json

    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        given = [{key: item for key, item in each.items() if item} for each in value]
        return [(f"{setting}[{number}]", json.dumps(each)) for number, each in enumerate(given)]
    return [(setting, json.dumps(value))]
