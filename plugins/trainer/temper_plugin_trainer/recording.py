"""Converts the threads of a sampler to a thread table with the machine and kernel."""

import platform
import re
from datetime import UTC, datetime

from attrs import evolve

from temper_core import InputError, MachineError, MachineShape
from temper_plugin_trainer.joining import table_threads
from temper_plugin_trainer.sampling import ThreadSampler
from temper_plugin_trainer.thread_tables import TableMachine, TableThread, ThreadTable

UNKNOWN = "unknown"

_RELEASE = re.compile(r"[\d.]*\d|")
_NO_PROGRAM = re.compile(r"[^a-z0-9._+-]+")


def drafted_table(
    machine: MachineShape, *, program: str, version: str, command: str
) -> ThreadTable:
    """Return a table to be filled. Raise InputError if an argument is invalid.

    Without *program*, the name of the busiest process is used later.
    """
    try:
        return ThreadTable(
            program=program or UNKNOWN,
            version=version,
            command=command,
            machine=TableMachine(machine.cores, machine.threads_per_core, machine.architecture),
            kernel=_kernel(platform.release()),
            seconds=1.0,
            date=datetime.now(UTC).date().isoformat(),
            threads=(TableThread("", ""),),
        )
    except ValueError as error:
        raise InputError(f"invalid recording: {error.args[0]}") from error


def recorded_table(draft: ThreadTable, sampler: ThreadSampler) -> ThreadTable:
    """Return *draft* with the threads of *sampler*. Raise MachineError if there are none."""
    rows = table_threads(sampler.seen(), sampler.seconds)
    if not rows:
        raise MachineError("nothing was recorded: no thread lived from one sample to the next")
    return evolve(
        draft,
        program=_program_of(rows) if draft.program == UNKNOWN else draft.program,
        seconds=round(sampler.seconds, 3),
        threads=rows,
        unseen_cpus=round(sampler.unseen_cpus, 6),
    )


def _program_of(rows: tuple[TableThread, ...]) -> str:
    busiest = max(rows, key=lambda row: row.cpus_used)
    return program_id(busiest.process)


def program_id(process: str) -> str:
    """Return the name of a *process* as the ``program`` of a table."""
    return _NO_PROGRAM.sub("-", process.lower()).strip("-._+") or UNKNOWN


def _kernel(release: str) -> str:
    """Return the version without its suffix. The suffix may name the builder and its host."""
    version = _RELEASE.match(release)
    return version.group() if version else ""
