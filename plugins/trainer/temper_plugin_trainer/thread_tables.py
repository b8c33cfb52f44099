"""Thread tables: the threads of one real program under load, for testing profiles.

A table is a JSON document that ``temper profiles record`` writes, one line per thread. It contains
no host names, user names and paths. Titles are stored once, in a list of their own. A thread's
``title`` in the file is an index into it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, field, fields, frozen
from attrs.validators import and_, deep_iterable, ge, gt, in_, le, matches_re, max_len, min_len

from temper_core import (
    DocumentError,
    Lifetime,
    ThreadBehaviour,
    ThreadIdentity,
    fit,
    parse_json,
    read_text,
)

SCHEMA_VERSION = 1
LONGEST_COMM = 15
LONGEST_FILE_NAME = 255
OLD_S = 1e6
"""An age beyond all that a match may ask for."""
LEAST_LIFE_S = 1e-6
"""Life of a thread whose share of a short recording rounds to nothing."""
LONGEST_TITLE = 1_024
"""Characters of a command line that matchers compare."""
MOST_THREADS = 10_000
LARGEST_CHARACTERS = 4 * 1024 * 1024
LONGEST_PROBLEM = 240
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_SHARE = and_(ge(0.0), le(1.0))
_RATE = and_(ge(0.0), le(1e9))


@frozen
class TableMachine:
    """The recording machine's properties that may affect the program's threads."""

    cores: int = field(validator=and_(ge(1), le(4_096)))
    threads_per_core: int = field(default=1, validator=and_(ge(1), le(64)))
    architecture: str = field(default="x86_64", validator=matches_re(r"[a-z0-9_]{1,32}"))


@frozen
class TableThread:
    """One thread, or ``count`` alike ones. The rates are means per thread while it lived.

    ``comm`` is its most frequent name, ``names`` are the others. ``process`` is the name of its
    process's leading thread, ``title`` that process's command line with paths cut to their
    last part. ``cpu_share`` and ``wait_share`` (runnable, without a CPU) are in CPUs. ``run_us``
    is microseconds on a CPU per run, 0 without runs. ``wakeups_per_s`` is the rate of runs.
    ``lived_share`` is the part of the recording in which it lived, ``age_s`` its age at the first
    look at it, -1 if unknown. ``exe`` is the file name of its process's executable and ``parent``
    the name of the parent process, both empty if unknown. ``child`` is whether the process
    was forked and has executed no program since.
    """

    comm: str = field(validator=max_len(LONGEST_COMM))
    process: str = field(validator=max_len(LONGEST_COMM))
    title: str = field(default="", validator=max_len(LONGEST_TITLE))
    leader: bool = False
    cpu_share: float = field(default=0.0, validator=_SHARE)
    wait_share: float = field(default=0.0, validator=_SHARE)
    wakeups_per_s: float = field(default=0.0, validator=_RATE)
    run_us: float = field(default=0.0, validator=_RATE)
    count: int = field(default=1, validator=and_(ge(1), le(1_000_000)))
    container: str = field(default="", validator=max_len(253))
    names: tuple[str, ...] = field(
        default=(), validator=[max_len(64), deep_iterable(max_len(LONGEST_COMM))]
    )
    lived_share: float = field(default=1.0, validator=and_(gt(0.0), le(1.0)))
    age_s: float = field(default=-1.0, validator=and_(ge(-1.0), le(1e9)))
    exe: str = field(default="", validator=max_len(LONGEST_FILE_NAME))
    parent: str = field(default="", validator=max_len(LONGEST_COMM))
    child: bool = False

    @property
    def cpus_used(self) -> float:
        """CPUs that all ``count`` threads used together, on average over the recording."""
        return self.cpu_share * self.lived_share * self.count

    def identity(self, comm: str | None = None) -> ThreadIdentity:
        """Return the properties that matchers compare, with *comm* for its name if given."""
        return ThreadIdentity(
            cgroup="",
            comm=self.comm if comm is None else comm,
            process=self.process,
            is_leader=self.leader,
            title=self.title,
            behaviour=ThreadBehaviour(self.cpu_share, self.run_us or None, self.wakeups_per_s),
            exe=self.exe,
            parent=self.parent,
            is_child=self.child if self.exe or self.parent else None,
        )

    def lifetime(self, seconds: float) -> Lifetime:
        """Return its life within a recording of *seconds*.

        Without a known age, a thread that lived throughout is old, and any other one began in it.
        """
        age_s = self.age_s
        if age_s < 0:
            age_s = OLD_S if self.lived_share == 1.0 else 0.0
        return Lifetime(max(LEAST_LIFE_S, self.lived_share * seconds), age_s)


@frozen
class ThreadTable:
    """The threads of one program under load.

    ``command`` repeats the recording, ``seconds`` is its length, ``date`` is ISO 8601.
    ``unseen_cpus`` are the CPUs used by threads that lived between two samples.
    """

    program: str = field(validator=matches_re(r"[a-z0-9][a-z0-9._+-]{0,62}"))
    version: str = field(validator=and_(min_len(1), max_len(64)))
    command: str = field(validator=and_(min_len(1), max_len(1_000)))
    machine: TableMachine
    kernel: str = field(validator=max_len(128))
    seconds: float = field(validator=and_(gt(0.0), le(86_400.0)))
    date: str = field(validator=matches_re(r"\d{4}-\d{2}-\d{2}"))
    threads: tuple[TableThread, ...] = field(validator=[min_len(1), max_len(MOST_THREADS)])
    schema_version: int = field(default=SCHEMA_VERSION, validator=in_([SCHEMA_VERSION]))
    unseen_cpus: float = field(default=0.0, validator=and_(ge(0.0), le(1e6)))

    @property
    def cpus_used(self) -> float:
        """CPUs that all threads with a row used together, on average."""
        return sum(thread.cpus_used for thread in self.threads)


def read_thread_table(path: Path) -> ThreadTable:
    """Read the table at *path*. Raise DocumentError, one line, if it is invalid."""
    return parse_thread_table(read_text(path), source=str(path))


def parse_thread_table(text: str, *, source: str) -> ThreadTable:
    """Read a table from its JSON. Raise DocumentError, one line that names *source*."""
    if len(text) > LARGEST_CHARACTERS:
        raise DocumentError(source, [f"is longer than {LARGEST_CHARACTERS} characters"])
    try:
        document = _with_titles(parse_json(text, source=source), source)
        table = fit(document, ThreadTable, source=source)
    except DocumentError as error:
        raise in_one_line(source, error.problems) from error
    problems = list(_misfits(table))
    if problems:
        raise in_one_line(source, problems)
    return table


def thread_table_text(table: ThreadTable) -> str:
    """Return *table* as JSON with one thread per line. Defaults of threads are omitted."""
    apart = ("schema_version", "threads")
    titles = list(dict.fromkeys(filter(None, (thread.title for thread in table.threads))))
    head = {
        "schema_version": table.schema_version,
        **asdict(table, filter=lambda field, _: field.name not in apart),
        "titles": titles,
    }
    numbers = {title: number for number, title in enumerate(titles)}
    rows = [json.dumps(_without_defaults(thread, numbers)) for thread in table.threads]
    lines = json.dumps(head, indent=2).removesuffix("\n}")
    return f'{lines},\n  "threads": [\n    ' + ",\n    ".join(rows) + "\n  ]\n}\n"


def _without_defaults(thread: TableThread, titles: Mapping[str, int]) -> dict[str, Any]:
    defaults = {attribute.name: attribute.default for attribute in fields(TableThread)}
    values = asdict(thread, filter=lambda field, value: value != defaults[field.name])
    return {key: titles[value] if key == "title" else value for key, value in values.items()}


def _with_titles(document: object, source: str) -> object:
    """Replace the indexes of titles by the titles. Raise DocumentError for an invalid index."""
    if not isinstance(document, dict) or not isinstance(document.get("threads"), list):
        return document
    titles = document.pop("titles", [])
    if not isinstance(titles, list):
        raise DocumentError(source, ["titles: must be a list of strings"])
    threads = [_with_title(row, titles, source) for row in document["threads"]]
    return {**document, "threads": threads}


def _with_title(row: object, titles: Sequence[object], source: str) -> object:
    if not isinstance(row, dict) or type(row.get("title")) is not int:
        return row
    if not 0 <= row["title"] < len(titles):
        raise DocumentError(source, [f"title: {row['title']} is none of the {len(titles)} titles"])
    return {**row, "title": titles[row["title"]]}


def _misfits(table: ThreadTable) -> Iterator[str]:
    for number, thread in enumerate(table.threads):
        for name in ("comm", "process", "parent"):
            # The kernel keeps 15 bytes. A byte that is not UTF-8 is read as a longer replacement.
            length = len(getattr(thread, name).replace(REPLACEMENT, "?").encode(errors="replace"))
            if length > LONGEST_COMM:
                yield f"threads[{number}].{name}: must be at most {LONGEST_COMM} bytes of UTF-8"


def in_one_line(source: str, problems: Sequence[str]) -> DocumentError:
    """Return an error of the first of *problems* and the number of the others, on one line."""
    problem = "".join(char if char.isprintable() else REPLACEMENT for char in problems[0])
    if len(problem) > LONGEST_PROBLEM:
        problem = f"{problem[:LONGEST_PROBLEM]}…"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return DocumentError(source, [problem + more])
