"""The captures of this agent: begins them, one at a time, and keeps account of them."""

import json
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from attrs import asdict

from temper_core import (
    DiskThread,
    EventKind,
    HelperBounds,
    InstrumentContext,
    MachineError,
    PluginError,
    SilentDiskError,
    Snapshot,
    remove_tracing_instances,
)
from temper_plugin_tracer.capture.backend_names import AUTO
from temper_plugin_tracer.capture.bounds import MIB, Ending
from temper_plugin_tracer.capture.capture_events import (
    BEGUN,
    DELETED,
    ENDED,
    FAILED,
    FINISHED,
    result_in_words,
)
from temper_plugin_tracer.capture.capture_files import CaptureFiles, Files
from temper_plugin_tracer.capture.choosing import Chooser
from temper_plugin_tracer.capture.flight_status import FLIGHT
from temper_plugin_tracer.capture.node_lock import DIRECTORY, NodeLock
from temper_plugin_tracer.capture.node_notes import look_of, notes
from temper_plugin_tracer.capture.request import TraceRequest
from temper_plugin_tracer.capture.running import HeldError, Holder, Running
from temper_plugin_tracer.capture.selection import Selection
from temper_plugin_tracer.capture.store import END, NODE, SUMMARY, TRACE, Store, new_id
from temper_plugin_tracer.capture.unlinked_file import PARTIAL

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

HELPER_MEMORY = 384 * MIB
"""With its children: bcc takes 165 MiB to compile."""
WRITING_S = 600.0
"""How long the helper may take to write the trace after the recording, at the lowest priority."""
Note = Mapping[str, Any]
STOP_S = 3.0
"""How long a stopped helper may take to end."""


class Captures:
    """Begins, ends, lists and deletes captures. Any thread may call every method.

    ``tell`` takes ``_lock``, so nobody uses the disk while holding it.
    """

    def __init__(
        self,
        context: InstrumentContext,
        *,
        lock_directory: Path = DIRECTORY,
        free_bytes: int | None = None,
        backend: str = AUTO,
    ) -> None:
        self._context = context
        self.files = CaptureFiles(context, DiskThread("the traces", context.charge))
        self._lock = threading.RLock()
        self._beginning = threading.Lock()
        self._opening = threading.Lock()
        self._node_lock = NodeLock(lock_directory)
        self._free_bytes = free_bytes
        self._backend = backend
        self._running: Running | None = None
        self._failed: dict[str, Any] | None = None
        self._snapshot: Snapshot | None = None
        self._store: Store | None = None

    @property
    def store(self) -> Store:
        """The kept captures. Unfinished captures of an earlier agent are removed first.

        Raises MachineError if there is no state directory.
        """
        with self._opening:
            if self._store is None:
                store = Store(self._context.state.path)
                remains = store.clean()
                if remains:
                    log.info("trace_remains_removed", files=remains)
                self._store = store
            return self._store

    def clean(self) -> None:
        """Remove what an earlier agent left unfinished, without making the directory."""
        _remove_instances()
        if self._context.state.used_bytes():
            with suppress(MachineError, OSError):
                _ = self.store

    def begin(self, request: TraceRequest, by: str) -> dict[str, Any]:
        """Begin a capture in the name of *by*, and return its entry.

        Raises HeldError while another one runs, InputError if there is nothing of that name,
        MachineError if it cannot begin.
        """
        with self._beginning:
            holder = self.running
            if holder is not None:
                raise HeldError(holder.holder(time.monotonic()))
            cpus = frozenset(cpu.id for cpu in self._context.machine.cpus)
            chooser = Chooser(self._context.lookup, self._snapshot, cpus=cpus)
            selection = chooser.choose(request)
            self._take_node(request, by)
            try:
                running = self._start(request, selection, by)
            except BaseException:
                self._node_lock.release()
                raise
            return self._begun(running)

    def _begun(self, running: Running) -> dict[str, Any]:
        with self._lock:
            self._running, self._failed = running, None
            kind = running.request.plan.shown.get("kind")
            reason = f"{kind}, asked by {running.by}" if kind else f"asked by {running.by}"
            self._record(BEGUN, running.selection.shown, reason)
            return running.document(time.monotonic())

    @property
    def running(self) -> Running | None:
        """The capture that is recorded or written now."""
        with self._lock:
            self.settle()
            return self._running

    def end(self, capture: str, by: str, ending: Ending = Ending.ASKED) -> dict[str, Any] | None:
        """End the recording of a running capture, and keep it. Return its entry, None without.

        The first call determines the reported ending. Raises MachineError if the disk does not take
        the order to end it in time.
        """
        with self._lock:
            self.settle()
            running = self._running
            if running is None or running.id != capture:
                return None
            if running.is_ending:
                return running.document(time.monotonic())
            files = self._ending_files(running, _end_order(ending, by))
        self.files.disk.ask(partial(self._write_end, running, files))
        return running.document(time.monotonic())

    def end_soon(self, capture: str, cause: str, ending: Ending) -> None:
        """End the recording of a running capture, without waiting for the disk.

        Every look tries again, until the disk has the order to end it.
        """
        with self._lock:
            running = self._running
            if running is not None and running.id == capture:
                running.end_order = running.end_order or _end_order(ending, cause)
                self._write_soon(running)

    def stop(self, capture: str, by: str) -> bool:
        """End a running capture at once, and keep nothing of it. Return whether there was one."""
        with self._lock:
            self.settle()
            running = self._running
            if running is None or running.id != capture:
                return False
            running.stopped_by = by
            running.helper.stop()
            with suppress(PluginError, TimeoutError):
                running.helper.result(STOP_S)
            self.settle()
            return True

    def delete(self, capture: str, by: str) -> bool:
        """Delete a finished or failed capture. Return whether there was one. Raises OSError."""
        with self._lock:
            self.settle()
            was_failed = self._failed is not None and self._failed["id"] == capture
            if was_failed:
                self._failed = None
        if not was_failed:
            if self.store.trace(capture) is None:
                return False
            self.store.remove(capture)
        self._record(DELETED, capture, f"asked by {by}")
        return True

    def documents(self) -> list[dict[str, Any]]:
        """Return the running capture, the last one if it failed, and the kept ones.

        A trace whose helper is about to end is that of the running capture, and no kept one yet.
        """
        with self._lock:
            self.settle()
            running = self._running
            entries = [] if running is None else [running.document(time.monotonic())]
            if self._failed is not None:
                entries.append(self._failed)
        kept = [each for each in self.store.ids() if running is None or each != running.id]
        return [*entries, *(dict(self.store.summary(each)) for each in kept)]

    def is_running(self, capture: str) -> bool:
        """Whether this capture is recorded or written now."""
        with self._lock:
            self.settle()
            return self._running is not None and self._running.id == capture

    def trace(self, capture: str) -> Path | None:
        """Return the file of a finished capture."""
        return self.store.trace(capture)

    def tell(self, snapshot: Snapshot) -> None:
        """Take a look at the node, which a running capture writes to its trace.

        It does not wait for the disk. What that has not taken by the next look is written then.
        """
        with self._lock:
            self._snapshot = snapshot
            self.settle()
            running = self._running
            if running is None:
                return
            running.looks.append(look_of(snapshot))
            running.add_events(self._context.events_after(running.last_event))
            self._write_soon(running)

    def settle(self) -> None:
        """Take the result of a capture whose helper has ended."""
        running = self._running
        if running is None or running.helper.is_running():
            return
        self._running = None
        _remove_instances()  # a helper that was killed has left its own
        self._node_lock.release()
        try:
            result = running.helper.result()
        except (PluginError, TimeoutError) as error:
            if running.stopped_by:
                self._tell_end(running, f"stopped by {running.stopped_by}")
            else:
                self._fail(running, getattr(error, "reason", "") or str(error))
        else:
            reason, unkept = result.get("error", ""), result.get("unkept", "")
            if reason:
                self._fail(running, reason)
            elif unkept:
                self._tell_end(running, unkept)
            else:
                self._record(FINISHED, running.id, result_in_words(result, running.by))
        self.files.begin_removal(partial(self._remove_notes, running.id))

    def close(self) -> None:
        """End the running capture at once. Nothing of it is kept."""
        with self._lock:
            running = self._running
            if running is not None:
                running.helper.stop()
                with suppress(PluginError, TimeoutError):
                    running.helper.result(STOP_S)
                _remove_instances()
                if running.request.plan.follows:
                    self._record(FAILED, running.id, "the agent ends")
                else:
                    self._tell_end(running, "the agent ends")
                self._running = None
            self._node_lock.release()
        if running is not None:
            with suppress(MachineError):
                self.files.disk.ask(partial(self._remove_notes, running.id))

    def _start(self, request: TraceRequest, selection: Selection, by: str) -> Running:
        capture = new_id()
        looks = [look_of(self._snapshot)] if self._snapshot is not None else []
        earlier = self._context.events_after()
        directory = self._prepared(capture, self._notes(capture, looks))
        bounds, plan = asdict(request.bounds), request.plan
        if self._free_bytes is not None:
            bounds["free_bytes"] = self._free_bytes
        argument = {
            "id": capture,
            "directory": str(directory),
            "node": self._context.node,
            "by": by,
            "backend": request.backend or self._backend,
            "bounds": bounds,
            "selection": selection.document(),
            "cores": [[cpu.id, cpu.core] for cpu in self._context.machine.cpus],
            **plan.argument,
        }
        try:
            helper = self._context.helper(
                plan.entry_point,
                argument,
                HelperBounds(
                    memory_bytes=HELPER_MEMORY,
                    cpu_s=plan.cpu_s,
                    seconds=request.seconds + WRITING_S,
                ),
            )
        except BaseException:
            self.files.begin_removal(partial(self._remove_notes, capture))
            raise
        running = Running(capture, by, request, selection, time.time(), time.monotonic(), helper)
        running.looks.extend(looks)
        running.last_event = earlier[-1].number if earlier else 0
        return running

    def _prepared(self, capture: str, files: Files) -> Path:
        """Have the directory made and *files* written. Return the directory."""

        def prepare() -> Path:
            directory = self.store.directory
            self.files.write(files)
            return directory

        try:
            return self.files.disk.ask(prepare)
        except SilentDiskError:
            self.files.begin_removal(partial(self._remove_notes, capture))
            raise

    def _take_node(self, request: TraceRequest, by: str) -> None:
        note = {"by": f"{by} ({self._context.node})", "until": time.time() + request.seconds}
        holder = self._node_lock.take(note)
        if holder is None:
            return
        until = holder.get("until")
        left_s = until - time.time() if isinstance(until, float | int) else 0.0
        by = str(holder.get("by") or "another agent of this host")
        raise HeldError(Holder("", by, max(0.0, left_s)))

    def _tell_end(self, running: Running, reason: str) -> None:
        self._record(ENDED, running.selection.shown, f"{reason} (asked by {running.by})")

    def _fail(self, running: Running, reason: str) -> None:
        self._failed = {
            **running.document(time.monotonic()),
            "state": "failed",
            "remaining_s": 0.0,
            "reason": reason,
        }
        self._record(FAILED, running.id, f"{reason} (asked by {running.by})")

    def _write_soon(self, running: Running) -> None:
        """Have the order to end a capture written, or its notes, unless the disk is at work."""
        if self.files.is_at_work:
            return
        if running.end_order and not running.is_ending:
            files = self._ending_files(running, running.end_order)
            self.files.begin(partial(self._write_end, running, files))
        elif running.request.plan.follows:
            files = self._notes(running.id, running.looks, running.events)
            self.files.begin(partial(self._write_notes, running, files))

    def _ending_files(self, running: Running, order: bytes) -> Files:
        """Return the files that tell the helper to end the recording."""
        end = {f"{running.id}{END}": order}
        if running.request.plan.follows:
            return end
        running.add_events(self._context.events_after(running.last_event))
        return {**self._notes(running.id, running.looks, running.events), **end}

    def _notes(self, capture: str, looks: Iterable[Note], events: Iterable[Note] = ()) -> Files:
        known = notes(list(looks), list(events), self._snapshot, self._context.lookup)
        return {f"{capture}{NODE}": json.dumps(known).encode()}

    def _write_end(self, running: Running, files: Files) -> None:
        if not running.is_ending:
            self._write_notes(running, files)
            running.is_ending = True

    def _write_notes(self, running: Running, files: Files) -> None:
        """Write *files*, unless they were removed with the capture."""
        if self._running is running:
            self.files.write(files)

    def _remove_notes(self, capture: str) -> None:
        store = self._store
        if store is None:
            return
        suffixes = [NODE, END, FLIGHT, f"{FLIGHT}{PARTIAL}"]
        if store.trace(capture) is None:
            suffixes += [SUMMARY, TRACE]
        for suffix in suffixes:
            with suppress(OSError):
                (store.directory / f"{capture}{suffix}").unlink(missing_ok=True)

    def _record(self, kind: EventKind, subject: str, reason: str) -> None:
        self._context.record(kind.name, subject, reason)


def _end_order(ending: Ending, cause: str) -> bytes:
    return f"{ending}\n{cause}".encode(errors="replace")


def _remove_instances() -> None:
    removal = remove_tracing_instances()
    if removal.removed:
        log.info("tracing_instances_removed", instances=removal.removed)
