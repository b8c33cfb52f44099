"""Keeps demand in the history, without waiting for a disk that hangs."""

from collections.abc import Collection, Iterable, Mapping
from functools import partial

from attrs import define, field, frozen

from temper_core import DiskThread, MachineError, SilentDiskError
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.window import ContainerKey
from temper_plugin_rightsizer.store.history import History, Interval
from temper_plugin_rightsizer.store.unwritten import UnwrittenInterval, UnwrittenIntervals


@frozen
class Known:
    """The demand of each container. *unread* is why that of the history is not in it."""

    demands: Mapping[ContainerKey, IntervalDemand]
    unread: str = ""


@define
class Keeper:
    """Uses *history* on *disk*, the only thread that does. Intervals that fail are tried again.

    *failure* is the error of the last turn, if it is none of the machine but a bug.
    """

    history: History
    disk: DiskThread = field(factory=partial(DiskThread, "the history"))
    failure: str = field(default="", init=False)
    _unwritten: UnwrittenIntervals = field(factory=UnwrittenIntervals, init=False)
    _defect: str = field(default="", init=False)
    _is_at_work: bool = field(default=False, init=False)

    @property
    def defect(self) -> str:
        """Why the history is not kept. Empty if it is."""
        return str(self.disk.silence or self._defect)

    def add(self, at: int, seconds: int, demands: dict[ContainerKey, IntervalDemand]) -> None:
        """Let the *demands* of the interval that began at *at* be written by the next turn."""
        self._unwritten.add(UnwrittenInterval(at, seconds, demands))

    def turn(self, *, compacts: bool) -> bool:
        """Have all intervals written, without waiting, and the history made small if *compacts*.

        Returns False if the last turn has not ended. Without an interval it looks whether the
        history can be used.
        """
        if self._is_at_work:
            return False
        self._is_at_work = True
        try:
            self.disk.begin(partial(self._work, compacts=compacts))
        except MachineError as error:
            self._is_at_work, self._defect = False, str(error)
        return True

    def read(self, since: int, uids: Collection[str], day_before: range) -> Known:
        """Return what ``History.read`` does, with the intervals that are not written.

        These alone if the disk does not answer. Raises MachineError if the history cannot be read.
        """
        unread = ""
        demands: dict[ContainerKey, IntervalDemand] = {}
        try:
            demands.update(self.disk.ask(lambda: self.history.read(since, uids, day_before)))
        except SilentDiskError as silent:
            unread = str(silent)
        for interval in self._unwritten.all():
            if interval.at + interval.seconds > since:
                _add(demands, interval, uids)
        return Known(demands, unread)

    def fill(self, seconds: int, intervals: Iterable[Interval]) -> int:
        """Do as ``History.fill``. Raises MachineError also if the disk does not answer in time.

        The intervals may be kept after that.
        """
        return self.disk.ask(lambda: self.history.fill(seconds, intervals))

    def close(self) -> None:
        """Write all intervals, if the disk answers."""
        try:
            self.disk.ask(partial(self._work, compacts=False))
        except MachineError as error:
            self._defect = str(error)

    def _work(self, *, compacts: bool) -> None:
        """Use the disk. It compacts first: its time is that of the turn, whatever follows."""
        failure = ""
        try:
            if compacts:
                self.history.compact()
            self._write()
        except MachineError as error:
            self._defect = str(error)
        except Exception as error:
            self._defect = failure = f"the history is not kept: {error!r}"
            raise
        else:
            self._defect = self.history.defect
        finally:
            self.failure = failure
            self._is_at_work = False

    def _write(self) -> None:
        interval = self._unwritten.take()
        if interval is None:
            self.history.check()
        while interval is not None:
            is_written = False
            try:
                self.history.add(interval.at, interval.seconds, interval.demands)
                is_written = True
            finally:
                self._unwritten.end(is_written=is_written)
            interval = self._unwritten.take()


def _add(
    demands: dict[ContainerKey, IntervalDemand],
    interval: UnwrittenInterval,
    uids: Collection[str],
) -> None:
    for key, demand in interval.demands.items():
        if key.uid in uids:
            copy = IntervalDemand()
            copy.merge(demand)
            copy.note_floor(interval.at)
            demands.setdefault(key, IntervalDemand()).merge(copy)
