"""``temper machine``: the shape of this machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from temper_core.console import output_option, print_json, sys_root_option

if TYPE_CHECKING:
    from temper_core.records.machine import MachineShape


@click.command("machine")
@sys_root_option
@output_option
def command(sys_root: Path, output: str) -> None:
    """Show the shape of this machine: sockets, NUMA nodes, caches, cores, CPUs.

    The JSON is a machine file, which temper plan takes with --machine. Exit code 3 where sysfs
    cannot be read.
    """
    from temper_core.node.topology import read_machine

    machine = read_machine(sys_root)
    if output == "json":
        from temper_core.node.machine_file import machine_document

        print_json(machine_document(machine))
        return
    for name, value in _lines(machine):
        click.echo(f"{name:<18}{value}")


def _lines(machine: "MachineShape") -> Iterator[tuple[str, object]]:
    from temper_core.node.cpulist import format_cpulist

    yield "architecture", machine.architecture
    yield "sockets", machine.sockets
    yield "NUMA nodes", machine.numa_nodes
    yield "last-level caches", machine.llcs
    yield "cores", machine.cores
    yield "threads per core", machine.threads_per_core
    yield "CPUs", f"{len(machine.cpus)} ({format_cpulist(cpu.id for cpu in machine.cpus)})"
    yield "offline", format_cpulist(machine.offline) or "none"
    yield "isolated", format_cpulist(machine.isolated) or "none"
    if machine.is_hybrid:
        yield "capacities", _capacities(machine)


def _capacities(machine: "MachineShape") -> str:
    from temper_core.node.cpulist import format_cpulist

    values = sorted({cpu.capacity for cpu in machine.cpus}, reverse=True)
    cpus = {
        value: format_cpulist(cpu.id for cpu in machine.cpus if cpu.capacity == value)
        for value in values
    }
    return ", ".join(f"{value} (CPUs {cpus[value]})" for value in values)
