"""``temper observe``: the agent's last observation, as tables or JSON."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core.cli.observe_record import record, recording_options, recording_request
from temper_core.client import ask_observation
from temper_core.console import (
    Column,
    Row,
    output_option,
    print_json,
    read_settings,
    results_console,
    settings_option,
    shown,
    table_of,
    watch_options,
)
from temper_core.observed import (
    count,
    cpu_list,
    headline,
    layer_of,
    number,
    pod_key,
    pressure_of,
    rows,
    thread_name,
    whole_numbers,
)

if TYPE_CHECKING:
    from rich.console import Group

MOST_THREADS = 5_000


@click.command("observe")
@click.option(
    "--top",
    type=click.IntRange(1, MOST_THREADS),
    help="Busiest threads to show; default: the agent's.",
)
@recording_options
@settings_option
@output_option
@watch_options
def command(
    top: int | None,
    settings_path: Path | None,
    output: str,
    **recording: Any,  # noqa: ANN401 - the options of a recording
) -> None:
    """Show the agent's last observation: layers, pods, busiest threads, pressure, violations.

    With --record nothing is shown: the observations are written into a file for 'temper simulate'.
    Without an agent this process observes the node itself, as far as its user may. Exit code 3 if
    no agent answers.
    """
    options = recording_request(recording)
    if options is not None:
        if click.get_current_context().params["is_watched"]:
            raise click.UsageError("--watch shows observations, and --record shows none")
        record(options, read_settings(settings_path))
        return
    document = ask_observation(read_settings(settings_path), top)
    if output == "json":
        print_json(document)
        return
    results_console().print(observation_tables(document))


def observation_tables(document: Row) -> "Group":
    """Render an observation as tables, the busiest first."""
    from rich.console import Group
    from rich.text import Text

    busiest_pods = _sorted(_pod_rows(document), "cpu_used")
    tables = [
        table_of("layers", _LAYERS, rows(document, "layers")),
        table_of("pods", _PODS, busiest_pods),
        table_of("threads", _THREADS, _sorted(rows(document, "threads"), "cpu_used")),
        table_of("pressure", _PRESSURE, list(_pressure_rows(document.get("pressure")))),
        table_of("violations", _VIOLATIONS, rows(document, "violations")),
    ]
    return Group(Text(shown(headline(document))), *(table for table in tables if table is not None))


def _sorted(unsorted_rows: Iterable[Row], key: str) -> list[Row]:
    return sorted(unsorted_rows, key=lambda row: -(number(row, key) or 0.0))


def _pod_rows(document: Row) -> list[Row]:
    return [
        {**row, "pressure": pressure_of(document, pod_key(row))} for row in rows(document, "pods")
    ]


def _of(key: str) -> Callable[[Row], object]:
    return lambda row: row.get(key)


def _share(key: str) -> Callable[[Row], object]:
    def read(row: Row) -> object:
        value = row.get(key)
        return f"{value:.1%}" if isinstance(value, int | float) else value

    return read


def _cpus(row: Row) -> str:
    return cpu_list(whole_numbers(row, "cpus")) or "-"


def _switches(row: Row) -> str | None:
    """Return voluntary and involuntary switches, None if the tier does not count both."""
    kinds = [count(row, key) for key in ("voluntary", "involuntary")]
    return None if None in kinds else "+".join(map(str, kinds))


def _pressure_rows(pressure: object) -> Iterable[Row]:
    if not isinstance(pressure, dict):
        return
    node = pressure.get("node", pressure)
    if not isinstance(node, dict):
        return
    for resource, lines in sorted(node.items()):
        for kind, line in lines.items() if isinstance(lines, dict) else ():
            if isinstance(line, dict):
                yield {"resource": resource, "kind": kind, **line}


_LAYERS: Sequence[Column] = (
    ("layer", _of("name")),
    ("kind", _of("kind")),
    ("cpus", _cpus),
    ("used", _of("cpus_used")),
    ("util", _share("util")),
    ("tasks", _of("tasks")),
    ("demoted", lambda row: "yes" if row.get("demoted") else ""),
    ("reason", _of("reason")),
)
_PODS: Sequence[Column] = (
    ("pod", pod_key),
    ("tier", _of("tier")),
    ("profile", _of("profile")),
    ("threads", _of("threads")),
    ("cpus used", _of("cpu_used")),
    ("delay", _of("run_delay")),
    ("throttled", _share("throttled_ratio")),
    ("pressure", _share("pressure")),
)
_THREADS: Sequence[Column] = (
    ("tid", _of("tid")),
    ("thread", thread_name),
    ("pod", pod_key),
    ("cpu", _of("cpu")),
    ("cpus used", _of("cpu_used")),
    ("delay", _share("run_delay_ratio")),
    ("switches", _switches),
    ("migr", _of("migrations")),
    ("layer", layer_of),
)
_PRESSURE: Sequence[Column] = (
    ("resource", _of("resource")),
    ("kind", _of("kind")),
    ("10s", _share("avg10")),
    ("60s", _share("avg60")),
    ("300s", _share("avg300")),
)
_VIOLATIONS: Sequence[Column] = (
    ("invariant", _of("invariant")),
    ("subject", _of("subject")),
    ("message", _of("message")),
)
