"""The helper processes of all instruments: started, bounded and ended by one thread."""

import os
import select
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from queue import Empty, SimpleQueue
from typing import Any

import structlog
from attrs import define, field, frozen

from temper_core.errors import MachineError
from temper_core.instruments.charges import free_of_charge
from temper_core.instruments.family_pace import FamilyLook, FamilyPace
from temper_core.instruments.helper_child import HelperChild, is_over, spawn_helper
from temper_core.instruments.helper_order import HelperOrder, order_of
from temper_core.records.instruments import MIB, HelperBounds

MOST_EACH = 2
"""Concurrent helpers of one instrument."""
TICK_S = 1.0
"""The period of measuring a running helper."""
START_S = 10.0
END_S = 3.0
AGENT_ENDS = "no helper process is started any more: the agent ends"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class HelperCost:
    """The cost of one instrument's helpers: the running ones, and the CPU time of all so far."""

    running: int = 0
    memory_bytes: int = 0
    cpu_s: float = 0.0


@frozen
class HelperHandle:
    """Implements ``HelperProcess``."""

    _child: HelperChild
    _stop: Callable[[HelperChild, str], None]

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return not self._child.has_ended.is_set()

    def result(self, timeout_s: float = 0.0) -> Any:  # noqa: ANN401 - JSON
        """Return the function's result. See ``HelperProcess``."""
        if not self._child.has_ended.wait(timeout_s):
            order = self._child.order
            raise TimeoutError(f"helper {order.entry_point} of {order.owner} still runs")
        return self._child.outcome()

    def stop(self) -> None:
        """End it. Returns at once, and may be called twice."""
        self._stop(self._child, "was stopped")


@define(eq=False)
class _Start:
    """An order for the thread, and the resulting child or error."""

    order: HelperOrder
    is_given_up: bool = False
    answers: "SimpleQueue[HelperChild | MachineError]" = field(factory=SimpleQueue)


class HelperProcesses:
    """Implements ``HelperStarter``.

    The thread starts with the first helper and lives as long as the agent, because the kernel ends
    a helper with the thread that started it. At most *most* helpers run at once, and their memory
    bounds add up to at most *memory_bytes*.
    """

    def __init__(
        self,
        *,
        most: int = 4,
        memory_bytes: int = 512 * MIB,
        charge: Callable[[str], AbstractContextManager[None]] = free_of_charge,
    ) -> None:
        self._most = most
        self._memory_bytes = memory_bytes
        self._charge = charge
        self._lock = threading.Lock()
        self._taken: list[HelperOrder] = []
        self._children: list[HelperChild] = []
        self._spent_s: dict[str, float] = {}
        self._requests: SimpleQueue[_Start | tuple[HelperChild, str]] = SimpleQueue()
        self._wake = -1
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def start(
        self,
        owner: str,
        entry_point: str,
        argument: Any,  # noqa: ANN401 - JSON
        bounds: HelperBounds,
    ) -> HelperHandle:
        """Run *entry_point* for the instrument *owner*.

        Raises InputError for an invalid order, MachineError if no helper can be started.
        """
        request = _Start(order_of(owner, entry_point, argument, bounds))
        with self._lock:
            self._refuse_excess(owner, bounds)
            self._run_thread()
            self._taken.append(request.order)
            self._ask(request)
        try:
            answer = request.answers.get(timeout=START_S)
        except Empty:
            request.is_given_up = True
            raise MachineError(f"a helper process has not started within {START_S:g} s") from None
        if isinstance(answer, MachineError):
            raise answer
        return HelperHandle(answer, self._stop)

    def stop_all(self, owner: str) -> None:
        """End every helper of *owner*, and wait up to ``END_S`` for their end."""
        children = [child for child in self._running() if child.order.owner == owner]
        self._end(children, "was stopped: its instrument is closed")

    def end_all(self, reason: str) -> bool:
        """End every helper as in ``stop_all``. Return whether there was one."""
        children = self._running()
        self._end(children, reason)
        return bool(children)

    def _end(self, children: Iterable[HelperChild], reason: str) -> None:
        for child in children:
            self._stop(child, reason)
        deadline = time.monotonic() + END_S
        for child in children:
            child.has_ended.wait(max(0.0, deadline - time.monotonic()))

    def costs(self) -> Mapping[str, HelperCost]:
        """Return the cost of each instrument's helpers, ended ones included."""
        with self._lock:
            spent, children = dict(self._spent_s), tuple(self._children)
        for child in children:
            spent[child.order.owner] = spent.get(child.order.owner, 0.0) + child.cpu_s
        by_owner = {name: [c for c in children if c.order.owner == name] for name in spent}
        return {
            name: HelperCost(len(own), sum(child.memory_bytes for child in own), spent[name])
            for name, own in by_owner.items()
        }

    def close(self) -> None:
        """End all helpers and the thread. No helper starts afterwards."""
        with self._lock:
            self._is_closed, thread = True, self._thread
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)
        if thread is not None:
            thread.join(timeout=END_S)

    def _running(self) -> tuple[HelperChild, ...]:
        with self._lock:
            return tuple(self._children)

    def _refuse_excess(self, owner: str, bounds: HelperBounds) -> None:
        if self._is_closed:
            raise MachineError(AGENT_ENDS)
        if len(self._taken) >= self._most:
            raise MachineError(
                f"{len(self._taken)} helper processes run; [plugin_host] helpers allows "
                f"{self._most} at once"
            )
        if sum(order.owner == owner for order in self._taken) >= MOST_EACH:
            raise MachineError(f"{MOST_EACH} helper processes of {owner} run already")
        memory = sum(order.bounds.memory_bytes for order in self._taken) + bounds.memory_bytes
        if memory > self._memory_bytes:
            raise MachineError(
                f"helper processes would have {memory // MIB} MiB of memory together; "
                f"[plugin_host] helper_memory_mib allows {self._memory_bytes // MIB}"
            )

    def _run_thread(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            return
        try:
            if self._wake < 0:
                self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            thread = threading.Thread(target=self._serve, name="helpers", daemon=True)
            thread.start()
        except (OSError, RuntimeError) as error:
            raise MachineError(f"cannot start a thread for helper processes: {error}") from error
        self._thread = thread

    def _stop(self, child: HelperChild, reason: str) -> None:
        with self._lock:
            if not child.has_ended.is_set():
                self._ask((child, reason))

    def _ask(self, request: "_Start | tuple[HelperChild, str]") -> None:
        self._requests.put(request)
        if self._wake >= 0:
            os.eventfd_write(self._wake, 1)

    def _serve(self) -> None:
        tick_due, pace = 0.0, FamilyPace()
        while not self._is_closed or self._children:
            self._wait(tick_due)
            self._take_requests()
            now = time.monotonic()
            if self._is_closed:
                for child in self._children:
                    child.kill("was stopped: the agent ends")
            is_tick = now >= tick_due
            look = pace.due(now) if is_tick else FamilyLook.NOTHING
            for child in self._running():
                with self._charge(child.order.owner):
                    self._tend(child, now, look, is_tick=is_tick)
            if is_tick:
                tick_due = now + TICK_S
                ended = time.monotonic()
                pace.took(look, ended - now, ended)
        with self._lock:
            os.close(self._wake)
            self._wake = -1
        self._take_requests()

    def _wait(self, tick_due: float) -> None:
        poll, now = select.poll(), time.monotonic()
        poll.register(self._wake, select.POLLIN)
        moments = [tick_due] if self._children else []
        for child in self._children:
            for descriptor in child.descriptors(now):
                poll.register(descriptor, select.POLLIN)
            if child.quiet_until > now:
                moments.append(child.quiet_until)
        poll.poll(max(1.0, (min(moments) - now) * 1000) if moments else None)
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)

    def _take_requests(self) -> None:
        while True:
            try:
                request = self._requests.get_nowait()
            except Empty:
                return
            if isinstance(request, _Start):
                if request.is_given_up:
                    self._let_go(request.order)
                    continue
                request.answers.put(self._spawn(request.order))
            elif not request[0].has_ended.is_set():
                request[0].kill(request[1])

    def _spawn(self, order: HelperOrder) -> HelperChild | MachineError:
        if self._wake < 0:
            return MachineError(AGENT_ENDS)
        try:
            child = spawn_helper(order)
        except MachineError as error:
            self._let_go(order)
            return error
        with self._lock:
            self._children.append(child)
        log.info("helper_started", instrument=order.owner, helper=order.entry_point, pid=child.pid)
        return child

    def _tend(self, child: HelperChild, now: float, look: FamilyLook, *, is_tick: bool) -> None:
        if not is_over(child):
            child.read(now)
            if is_tick:
                child.keep_bounds(now, look)
            return
        with self._lock:
            self._children.remove(child)
        child.finish(now)
        self._let_go(child.order, child.cpu_s)
        _log_end(child)

    def _let_go(self, order: HelperOrder, cpu_s: float = 0.0) -> None:
        with self._lock:
            self._taken = [running for running in self._taken if running is not order]
            self._spent_s[order.owner] = self._spent_s.get(order.owner, 0.0) + cpu_s


def _log_end(child: HelperChild) -> None:
    facts: dict[str, Any] = {
        "instrument": child.order.owner,
        "helper": child.order.entry_point,
        "cpu_s": round(child.cpu_s, 3),
    }
    if child.left_behind:
        facts["processes_ended"] = child.left_behind
    if child.reason:
        log.warning("helper_failed", reason=child.reason, **facts)
    else:
        log.info("helper_ended", **facts)
