"""Intervals of demand by container: as measured, then by the hour, then by the day."""

import json
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TypeGuard

import structlog
from attrs import define, field

from temper_core import MachineError
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.window import ContainerKey
from temper_plugin_rightsizer.store.packing import DamagedError, OversizedError, pack, unpack

FILE = "demand.sqlite"
HOUR_S = 3600
DAY_S = 24 * HOUR_S
DETAIL_S = 2 * HOUR_S
"""How long intervals stay as they were measured. Older ones are merged by the hour."""
HOURLY_S = 2 * DAY_S
"""How long hours are kept. Older ones are merged by the day (UTC)."""
READ_S = 2.0
"""CPU seconds of one ``read``, which shares the agent's interpreter."""
MOST_DAYS_MERGED = 100
"""Days of single containers that are merged at once, which takes some 0.3 s."""
PAGE_BYTES = 4096
LATEST = 2**40
"""Seconds since 1970. The kernel's clock ends before (``KTIME_SEC_MAX``)."""
VERSION = 5
TAKEN_UP = (2, 3, 4)
"""Versions whose rows this one reads as they are. The file gets this version."""
_CACHE_PAGES = 32
_DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError)
"""sqlite3 decodes SQLite's message about a damaged file, which may hold bytes of the file."""
_SCHEMA = """
CREATE TABLE container (
  id INTEGER PRIMARY KEY,
  uid TEXT NOT NULL, namespace TEXT NOT NULL, pod TEXT NOT NULL, container TEXT NOT NULL,
  UNIQUE (uid, container)
);
CREATE TABLE interval (
  container INTEGER NOT NULL, at INTEGER NOT NULL, seconds INTEGER NOT NULL, demand BLOB NOT NULL,
  PRIMARY KEY (container, at)
) WITHOUT ROWID;
CREATE INDEX interval_at ON interval (at);
"""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_SHAPE = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
ROW_BYTES = 24
"""Of an interval besides its demand."""
_SIZES = (
    f"SELECT namespace, sum(length(demand) + {ROW_BYTES}) FROM interval"  # noqa: S608 - a constant
    " JOIN container ON id = interval.container GROUP BY namespace"
)
_OF_NAMESPACE = "interval WHERE container IN (SELECT id FROM container WHERE namespace = ?)"
INTERVALS = (
    "SELECT uid, namespace, pod, container.container, at, demand FROM interval"
    " JOIN container ON id = interval.container"
)


Interval = tuple[ContainerKey, int, IntervalDemand]
"""A container, the begin of an interval in seconds since 1970, and the demand in it."""


class OtherVersionError(sqlite3.DatabaseError):
    """The file is a history of another version of Temper."""

    def __init__(self, version: int) -> None:
        self.version = version
        super().__init__(f"the history has version {version}, and this agent has {VERSION}")


@define
class History:
    """The history in the directory that *directory* returns or raises MachineError for.

    It has at most *limit_bytes* and *keep_s* seconds. A damaged file is set aside, and a new one
    begun. The file of another version is kept beside it for an agent of that version, which takes
    it up again. *clock* returns wall-clock seconds.
    """

    directory: Callable[[], Path]
    limit_bytes: int
    keep_s: int = 14 * DAY_S
    clock: Callable[[], float] = time.time
    defect: str = field(default="", init=False)

    def add(self, at: int, seconds: int, demands: Mapping[ContainerKey, IntervalDemand]) -> None:
        """Keep the *demands* of the interval that began at *at*, in one transaction.

        Raises MachineError if they cannot be written, as on a full disk. The former rows stay.
        """
        with self._database() as database:
            self._shrink(database)
            with database:
                for key, demand in demands.items():
                    number = _number_of(database, key)
                    stored = _read(database, number, at)
                    if stored is not None:
                        stored.merge(demand)  # not the other way: a failed interval is tried again
                    packed = _packed(demand if stored is None else stored)
                    if packed is not None:
                        row = (number, at, seconds, packed)
                        database.execute("INSERT OR REPLACE INTO interval VALUES (?, ?, ?, ?)", row)

    def fill(self, seconds: int, intervals: Iterable[Interval]) -> int:
        """Keep *intervals* of *seconds* that end before those of their container begin.

        They are added in their order, in one transaction, so the newest should come first. Others
        are left out. Returns the number of those that were kept. Raises MachineError if they
        cannot be written.
        """
        kept = 0
        with self._database() as database:
            self._shrink(database)
            with database:
                for key, at, demand in intervals:
                    number = _number_of(database, key)
                    begin = _begin_of(database, number)
                    packed = _packed(demand) if begin is None or at + seconds <= begin else None
                    if packed is not None:
                        row = (number, at, seconds, packed)
                        database.execute("INSERT INTO interval VALUES (?, ?, ?, ?)", row)
                        kept += 1
        return kept

    def check(self) -> None:
        """Open the file, or begin one. Raises MachineError if it cannot be used."""
        with self._database():
            pass

    def compact(self) -> None:
        """Merge old intervals by hour and day, forget those too old, and keep the bound."""
        now = int(self.clock())
        with self._database() as database:
            with database:
                database.execute("DELETE FROM interval WHERE at < ?", (now - self.keep_s,))
                # These are of a clock that was set back since.
                future = database.execute("DELETE FROM interval WHERE at > ?", (now + HOUR_S,))
                if future.rowcount:
                    log.warning("intervals_of_the_future_forgotten", intervals=future.rowcount)
                _merge(database, HOUR_S, (now - DETAIL_S) // HOUR_S * HOUR_S)
                _merge(database, DAY_S, (now - HOURLY_S) // DAY_S * DAY_S, MOST_DAYS_MERGED)
                database.execute(
                    "DELETE FROM container WHERE id NOT IN (SELECT container FROM interval)"
                )
            self._shrink(database)

    def read(
        self,
        since: int,
        uids: Collection[str] | None = None,
        day_before: range = range(0),
    ) -> Mapping[ContainerKey, IntervalDemand]:
        """Return the merged demand of each container in the intervals from *since* on.

        Older intervals count with their peak of memory and their floors only, also of a container
        that has no demand since. *since* is rounded down to the beginning of an interval of that
        age. *uids* are those of the pods, all by default. Intervals that begin in *day_before* are
        kept apart. These and those from *since* on are read first, and of each the newest. Rows
        beyond ``READ_S`` of CPU time are left out: the demands then cover less time.
        """
        demands: dict[ContainerKey, IntervalDemand] = {}
        begins_at = self._rounded(since)
        ends_at = time.thread_time() + READ_S
        spans = _spans(begins_at, day_before)
        for key, at, demand in chain.from_iterable(self.intervals(*span, uids) for span in spans):
            demand.note_floor(at)
            known = demands.setdefault(key, IntervalDemand())
            if at >= begins_at:
                known.merge(demand)
            else:
                known.take_peak(demand)
                if at in day_before:
                    known.add_day_before(demand)
            if time.thread_time() > ends_at:
                break
        return demands

    def _rounded(self, since: int) -> int:
        age_s = self.clock() - since
        span_s = DAY_S if age_s > HOURLY_S else HOUR_S if age_s > DETAIL_S else 1
        return since // span_s * span_s

    def intervals(
        self, since: int, before: int = LATEST + 1, uids: Collection[str] | None = None
    ) -> Iterator[Interval]:
        """Yield container, beginning and demand of intervals, newest first.

        They begin from *since* on and earlier than *before*.
        """
        wanted = None if uids is None else json.dumps(sorted(uids))
        with self._database() as database:
            rows = database.execute(
                f"{INTERVALS} WHERE at >= ? AND at < ?"  # noqa: S608 - a constant
                " AND (? IS NULL OR uid IN (SELECT value FROM json_each(?)))"
                " ORDER BY at DESC",
                (since, before, wanted, wanted),
            )
            for row in rows:
                key, at, packed = require_interval(row)
                try:
                    yield key, at, unpack(packed)
                except DamagedError as error:
                    self.defect = f"an interval of the history is damaged: {error}"

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one use. Raises MachineError if that fails, or the use does."""
        path = self.directory() / FILE
        try:
            with closing(self._opened(path)) as database:
                yield database
        except _DAMAGE as error:
            if not isinstance(error, sqlite3.OperationalError):
                self._set_aside(path, error)
            raise MachineError(f"{path}: {error}") from error

    def _opened(self, path: Path) -> sqlite3.Connection:
        try:
            return self._prepared(path)
        except sqlite3.OperationalError:
            raise
        except OtherVersionError as error:
            self._take_turns(path, error)
            return self._prepared(path)
        except _DAMAGE as error:
            self._set_aside(path, error)
            return self._prepared(path)

    def _prepared(self, path: Path) -> sqlite3.Connection:
        database = sqlite3.connect(path, timeout=5.0, isolation_level="IMMEDIATE")
        try:
            _prepare(database, self.limit_bytes // PAGE_BYTES)
        except BaseException:
            database.close()
            raise
        return database

    def _take_turns(self, path: Path, error: OtherVersionError) -> None:
        """Keep the file of another version, and take up one that was kept for this version."""
        kept = _kept_for(path, error.version)
        try:
            path.replace(kept)
            path.with_name(f"{FILE}-journal").unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                _kept_for(path, VERSION).replace(path)
        except OSError as failure:
            raise MachineError(f"{path}: {error}, and it cannot be kept: {failure}") from error
        self.defect = f"{error}; it is kept as {kept.name}"
        log.warning("history_of_another_version_kept", file=str(kept), version=error.version)

    def _set_aside(self, path: Path, error: Exception) -> None:
        """Keep the newest damaged file for a look. Raises MachineError if it cannot be renamed."""
        try:
            path.replace(path.with_suffix(".damaged"))
            path.with_name(f"{FILE}-journal").unlink(missing_ok=True)
        except OSError as failure:
            raise MachineError(f"{path} is damaged and stays in the way: {failure}") from error
        self.defect = f"the history was damaged and begun anew: {error}"
        log.warning("damaged_history_set_aside", file=str(path), reason=str(error))

    def _shrink(self, database: sqlite3.Connection) -> None:
        """Forget hours while the file takes more than nine tenths of its bound.

        They are the oldest of the namespace with the most bytes, so that no tenant makes the
        history of another shorter.
        """
        most_pages = self.limit_bytes * 9 // 10 // PAGE_BYTES
        if _used_pages(database) > most_pages:
            sizes = dict(database.execute(_SIZES).fetchall())
            while sizes and _used_pages(database) > most_pages:
                largest = max(sizes, key=sizes.__getitem__)
                with database:
                    freed = _forget_hour(database, largest)
                sizes[largest] -= freed
                if not freed:
                    del sizes[largest]
        database.execute("PRAGMA incremental_vacuum").fetchall()


def _spans(begins_at: int, day_before: range) -> Iterator[tuple[int, int]]:
    """Yield the begins and ends of all time: that from *begins_at* on, *day_before*, the rest."""
    yield begins_at, LATEST + 1
    if day_before:
        yield day_before.start, day_before.stop
        yield day_before.stop, begins_at
        begins_at = day_before.start
    yield 0, begins_at


def _kept_for(path: Path, version: int) -> Path:
    return path.with_suffix(f".v{version}.sqlite")


def _forget_hour(database: sqlite3.Connection, namespace: str) -> int:
    """Forget the oldest hour of a namespace. Return its bytes, 0 if there is none."""
    (oldest,) = database.execute(
        f"SELECT min(at) FROM {_OF_NAMESPACE}",  # noqa: S608 - a constant
        (namespace,),
    ).fetchone()
    if oldest is None:
        return 0
    within = (namespace, _require_time(oldest) + HOUR_S)
    (size,) = database.execute(
        f"SELECT sum(length(demand) + {ROW_BYTES}) FROM {_OF_NAMESPACE} AND at < ?",  # noqa: S608
        within,
    ).fetchone()
    database.execute(f"DELETE FROM {_OF_NAMESPACE} AND at < ?", within)  # noqa: S608 - a constant
    return int(size)


def _prepare(database: sqlite3.Connection, most_pages: int) -> None:
    """Bound the file and the memory, and make the tables in an empty file."""
    database.execute(f"PRAGMA cache_size = {_CACHE_PAGES}")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version == 0:
        # Pages of deleted rows go back to the file system.
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        database.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
    elif version != VERSION and version not in TAKEN_UP:
        raise OtherVersionError(version)
    else:
        require_shape(database)
        if version != VERSION:
            database.execute(f"PRAGMA user_version = {VERSION}")
    database.execute(f"PRAGMA max_page_count = {most_pages}")


def require_shape(database: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError unless the tables of a file are those of a history.

    A view or a computed column of a foreign file may never end.
    """
    with closing(sqlite3.connect(":memory:")) as own:
        own.executescript(_SCHEMA)
        expected = own.execute(_SHAPE).fetchall()
    if database.execute(_SHAPE).fetchmany(len(expected) + 1) != expected:
        raise sqlite3.DatabaseError("it is no history of this version")


def require_interval(row: Sequence[object]) -> tuple[ContainerKey, int, bytes]:
    """Return the container, the beginning and the demand of a *row* of ``INTERVALS``.

    Raises sqlite3.DatabaseError for values of other types: SQLite keeps any in any column.
    """
    *names, at, packed = row
    texts = [name for name in names if isinstance(name, str)]
    if len(texts) != len(names):
        raise sqlite3.DatabaseError("the name of a container is no text")
    if not isinstance(packed, bytes):
        raise sqlite3.DatabaseError("the demand of an interval is no bytes")
    return ContainerKey(*texts), _require_time(at), packed


def _require_time(at: object) -> int:
    if not _is_time(at):
        raise sqlite3.DatabaseError("an interval begins at no time")
    return at


def _is_time(seconds: object) -> TypeGuard[int]:
    return isinstance(seconds, int) and 0 <= seconds <= LATEST


def _used_pages(database: sqlite3.Connection) -> int:
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    (free,) = database.execute("PRAGMA freelist_count").fetchone()
    return int(pages - free)


def _number_of(database: sqlite3.Connection, key: ContainerKey) -> int:
    names = (key.uid, key.namespace, key.pod, key.container)
    database.execute(
        "INSERT OR IGNORE INTO container (uid, namespace, pod, container) VALUES (?, ?, ?, ?)",
        names,
    )
    (number,) = database.execute(
        "SELECT id FROM container WHERE uid = ? AND container = ?", (key.uid, key.container)
    ).fetchone()
    return int(number)


def _begin_of(database: sqlite3.Connection, number: int) -> int | None:
    (begin,) = database.execute(
        "SELECT min(at) FROM interval WHERE container = ?", (number,)
    ).fetchone()
    return None if begin is None else _require_time(begin)


def _read(database: sqlite3.Connection, number: int, at: int) -> IntervalDemand | None:
    row = database.execute(
        "SELECT demand FROM interval WHERE container = ? AND at = ?", (number, at)
    ).fetchone()
    return _readable([row[0]]) if row else None


def _merge(database: sqlite3.Connection, span_s: int, before: int, most: int = -1) -> None:
    """Replace the intervals of each *span_s* before *before* by one. *most* spans, -1 for all."""
    spans = database.execute(
        "SELECT container, at / ? AS span FROM interval WHERE at < ?"
        " GROUP BY container, span HAVING count(*) > 1 LIMIT ?",
        (span_s, before, most),
    ).fetchall()
    for number, span in spans:
        within = (number, span * span_s, (span + 1) * span_s)
        found = database.execute(
            "SELECT seconds, demand FROM interval WHERE container = ? AND at >= ? AND at < ?",
            within,
        ).fetchall()
        rows = [(seconds, packed) for seconds, packed in found if _is_time(seconds)]
        database.execute("DELETE FROM interval WHERE container = ? AND at >= ? AND at < ?", within)
        demand = _readable(packed for _, packed in rows)
        packed = None if demand is None else _packed(demand)
        if packed is not None:
            seconds = sum(seconds for seconds, _ in rows)
            row = (number, span * span_s, seconds, packed)
            database.execute("INSERT INTO interval VALUES (?, ?, ?, ?)", row)


def _packed(demand: IntervalDemand) -> bytes | None:
    """Return the bytes of *demand*. None if it is too large for a row, and so is forgotten."""
    try:
        return pack(demand)
    except OversizedError as error:
        log.warning("oversized_demand_forgotten", reason=str(error))
        return None


def _readable(rows: Iterable[bytes]) -> IntervalDemand | None:
    """Return the sum of the rows that are not damaged, None without any."""
    total: IntervalDemand | None = None
    for packed in rows:
        try:
            demand = unpack(packed)
        except DamagedError:
            continue
        total = total or IntervalDemand()
        total.merge(demand)
    return total
