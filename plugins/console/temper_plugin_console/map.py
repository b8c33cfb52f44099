"""``temper map``: the CPUs by socket, NUMA node, cache and core, with their threads."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from temper_core import MachineError, ask_observation, read_machine
from temper_core.console import (
    output_option,
    plain_table,
    print_json,
    read_settings,
    settings_option,
    sys_root_option,
    watch_options,
)
from temper_core.observed import number, pod_key, rows, text, whole_numbers
from temper_plugin_console.occupants import Occupant, running_threads
from temper_plugin_console.picture import save as write_picture
from temper_plugin_console.picture import save_option

if TYPE_CHECKING:
    from rich.table import Table

    from temper_core import Cpu, MachineShape

SCHEMA_VERSION = 1
THREADS_ASKED_FOR = 1_000
THREADS_SHOWN = 3


@click.command("map")
@sys_root_option
@settings_option
@output_option
@watch_options
@save_option
def command(sys_root: Path, settings_path: Path | None, output: str, save: Path | None) -> None:
    """Draw the CPUs by core, with the threads that run there and the layer that owns them.

    The layers and threads are the agent's. Without an agent it shows the threads that run at this
    moment.
    """
    machine = read_machine(sys_root)
    source, layers, threads = _seen(settings_path)
    if output == "json":
        print_json(_document(machine, source, layers, threads))
        return
    if save is not None:
        write_picture(save, "temper map", _table(machine, layers, threads), _CAPTIONS[source])
        return
    from temper_core.console import results_console

    results_console().print(_table(machine, layers, threads))
    click.echo(_CAPTIONS[source])


_CAPTIONS = {
    "agent": "threads: the busiest of the agent's last window, with the CPUs each used",
    "proc": "threads: those that run at this moment; no agent answers",
}

Threads = Mapping[int, Sequence[Occupant]]


def _seen(settings_path: Path | None) -> tuple[str, Mapping[int, str], Threads]:
    """Return the source, ``agent`` or ``proc``, the owning layer by CPU, and the threads by CPU."""
    settings = read_settings(settings_path)
    try:
        document = ask_observation(settings, THREADS_ASKED_FOR)
    except MachineError:
        return "proc", {}, _by_cpu(running_threads())
    layers = {
        cpu: text(layer, "name")
        for layer in rows(document, "layers")
        for cpu in whole_numbers(layer, "cpus")
    }
    return "agent", layers, _by_cpu(map(_observed, rows(document, "threads")))


def _observed(thread: Mapping[str, Any]) -> Occupant:
    return Occupant(
        cpu=_whole(thread, "cpu", -1),
        tid=_whole(thread, "tid"),
        tgid=_whole(thread, "tgid"),
        comm=text(thread, "comm"),
        pod=pod_key(thread),
        layer=text(thread, "layer"),
        cpu_used=number(thread, "cpu_used") or 0.0,
    )


def _whole(thread: Mapping[str, Any], key: str, default: int = 0) -> int:
    value = number(thread, key)
    return default if value is None else int(value)


def _by_cpu(threads: Iterable[Occupant]) -> Threads:
    unsorted: defaultdict[int, list[Occupant]] = defaultdict(list)
    for thread in threads:
        unsorted[thread.cpu].append(thread)
    return {
        cpu: sorted(occupants, key=lambda thread: -(thread.cpu_used or 0.0))
        for cpu, occupants in unsorted.items()
    }


def _document(
    machine: "MachineShape", source: str, layers: Mapping[int, str], threads: Threads
) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "source": source,
        "cpus": [
            {
                **attrs.asdict(cpu),
                "layer": layers.get(cpu.id, ""),
                "threads": [attrs.asdict(thread) for thread in threads.get(cpu.id, ())],
            }
            for cpu in _in_order(machine)
        ],
        "offline": list(machine.offline),
        "isolated": list(machine.isolated),
    }


def _in_order(machine: "MachineShape") -> "list[Cpu]":
    return sorted(machine.cpus, key=lambda cpu: (cpu.socket, cpu.node, cpu.llc, cpu.core, cpu.id))


def _table(machine: "MachineShape", layers: Mapping[int, str], threads: Threads) -> "Table":
    capacity = ["capacity"] if machine.is_hybrid else []
    table = plain_table("socket", "node", "cache", "core", "cpu", *capacity, "layer", "threads")
    above: tuple[int, ...] = ()
    for cpu in _in_order(machine):
        place = (cpu.socket, cpu.node, cpu.llc, cpu.core)
        cells = [*_without_repeats(above, place), str(cpu.id)]
        cells += [str(cpu.capacity)] if machine.is_hybrid else []
        isolated = " (isolated)" if cpu.id in machine.isolated else ""
        cells += [layers.get(cpu.id, "-") + isolated, _threads_text(threads.get(cpu.id, ()))]
        table.add_row(*cells)
        above = place
    return table


def _without_repeats(above: Sequence[int], place: Sequence[int]) -> list[str]:
    """Return the cells of *place*, empty as long as they repeat those of the row above."""
    same = 0
    while same < len(above) and above[same] == place[same]:
        same += 1
    return ["" if column < same else str(number) for column, number in enumerate(place)]


def _threads_text(threads: Sequence[Occupant]) -> str:
    from temper_core.console import shown

    texts = []
    for thread in threads[:THREADS_SHOWN]:
        used = "" if thread.cpu_used is None else f" {thread.cpu_used:.2f}"
        pod = f" [{thread.pod}]" if thread.pod else ""
        texts.append(shown(f"{thread.comm}{pod}{used}"))
    more = len(threads) - THREADS_SHOWN
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")
