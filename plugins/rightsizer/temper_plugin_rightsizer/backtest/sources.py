"""The input of a replay: files of samples, a node's history, and the made-up shapes."""

import csv
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from io import TextIOWrapper
from math import isfinite
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

from temper_core import InputError, open_file
from temper_plugin_rightsizer.backtest.samples import Name, Place, Sample, demand_at
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.store.history import INTERVALS, require_interval, require_shape
from temper_plugin_rightsizer.store.packing import DamagedError, unpack

COLUMNS = (
    "container",
    "replica",
    "at",
    "seconds",
    "cpu",
    "threads",
    "memory_bytes",
    "throttled_s",
    "oom_kill",
)
"""Of a CSV file, and the keys of a line of JSON. All but container, at and cpu may be left out."""
SECONDS = 60
"""A window without a length takes this."""
MOST = 1e18
LONGEST_LINE = 64 * 1024
STEPS_BETWEEN = 100_000
PIPE_WAIT_S = 10.0
"""For a program to write the first samples into a pipe."""


def samples_of_file(path: Path) -> Iterator[tuple[Name, Sample]]:
    """Yield the samples of a file or pipe: CSV with a head, or JSON in lines (``.jsonl``).

    Raises InputError if it cannot be read, with the number of the line.
    """
    read = 0
    try:
        with (
            open_file(path, pipe_wait_s=PIPE_WAIT_S) as content,
            TextIOWrapper(content, encoding="utf-8", newline="") as file,
        ):
            for record in _records(path, file):
                sample = str(record["container"]), _sample(record)
                read += 1
                yield sample
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except KeyError as error:
        raise InputError(f"{path}: sample {read + 1} has no {error}") from error
    except (ValueError, TypeError, csv.Error, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: sample {read + 1}: {error}") from error


def demands_of_history(path: Path) -> dict[Place, IntervalDemand]:
    """Return the steps of each container of a node's history. The file is not changed.

    Damaged intervals are left out. Raises InputError if the file cannot be read.
    """
    demands: dict[Place, IntervalDemand] = {}
    open_file(path).close()  # SQLite waits for the writer of a pipe
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            # Between its steps SQLite lets Python take Ctrl-C.
            database.set_progress_handler(lambda: 0, STEPS_BETWEEN)
            require_shape(database)
            for row in database.execute(INTERVALS):
                key, at, packed = require_interval(row)
                name = "/".join(filter(None, (key.namespace, key.pod, key.container)))
                try:
                    demand = unpack(packed)
                except DamagedError:
                    continue
                demand_at(demands, name, key.uid, at).merge(demand)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from error
    return demands


def _records(path: Path, file: TextIO) -> Iterable[Mapping[str, object]]:
    if path.suffix == ".csv":
        return csv.DictReader(_lines(file))
    return (json.loads(line) for line in _lines(file) if line.strip())


def _lines(file: TextIO) -> Iterator[str]:
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise ValueError(f"the line is longer than {LONGEST_LINE} characters")
        yield line


def _sample(record: Mapping[str, object]) -> Sample:
    seconds = _number(record.get("seconds") or SECONDS, "seconds")
    if seconds < 1:
        raise ValueError(f"seconds must be 1 or more, not {seconds:g}")
    return Sample(
        at=int(_number(record["at"], "at")),
        seconds=int(seconds),
        cpu=_number(record["cpu"], "cpu"),
        threads=_threads(record.get("threads")),
        memory_bytes=int(_number(record.get("memory_bytes") or 0, "memory_bytes")),
        replica=str(record.get("replica") or ""),
        throttled_s=_number(record.get("throttled_s") or 0, "throttled_s"),
        oom_kill=int(_number(record.get("oom_kill") or 0, "oom_kill")),
    )


def _threads(value: object) -> tuple[tuple[str, float], ...]:
    """Read ``{"name": cpus}``, or ``name=cpus;name=cpus`` of a CSV file."""
    if isinstance(value, Mapping):
        pairs: Iterable[tuple[object, object]] = value.items()
    elif isinstance(value, str) and value:
        parts = (part.rpartition("=") for part in value.split(";"))
        pairs = ((name, used) for name, _, used in parts)
    elif not value:
        return ()
    else:
        raise ValueError("threads must be names with their CPUs")
    return tuple((str(name), _number(used, "threads")) for name, used in pairs)


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"{name} must be a number")  # noqa: TRY004 - one error for a bad sample
    number = float(value)
    if not (isfinite(number) and 0 <= number <= MOST):
        raise ValueError(f"{name} must be a number from 0 on, not {value}")
    return number
