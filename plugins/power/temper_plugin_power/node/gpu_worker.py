"""Caps of GPUs on a thread of its own: the driver may keep a caller waiting."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import structlog
from attrs import frozen

from temper_core import MachineError, StateDirectory
from temper_plugin_power.node.actions import Action
from temper_plugin_power.node.gpu_capping import GpuCapping
from temper_plugin_power.node.nvml import Library, Nvml, load_library
from temper_plugin_power.node.record_disk import RecordDisk
from temper_plugin_power.node.spec_file import CapSpec

LONGEST_S = 3.0
"""After this time NVML counts as not answering."""
CLOSE_S = 3.0
NOT_YET = "NVML was not asked yet"
NO_GPU = "NVML names no GPU whose limit can be set"
LEFT = "left by an agent that crashed"
LATE = f"NVML has not answered for more than {LONGEST_S:.0f} s"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Wish:
    """The caps that are to be in force: those of *spec*, or none for a reason."""

    spec: CapSpec | None
    why_none: str

    @property
    def is_for_caps(self) -> bool:
        """Whether it asks for caps of GPUs."""
        return self.spec is not None and self.spec.asks_for_gpu


class GpuWorker:
    """Follows the last wish. A disk that hangs delays no return of a limit.

    The thread alone calls NVML. It waits for the disk of *state* only until no cap is asked for.
    """

    def __init__(
        self,
        state: StateDirectory,
        load: Callable[[], Library] = load_library,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._disk = RecordDisk(state, self._is_given_up, self._waiting_for_disk)
        self._load = load
        self._clock = clock
        self._capping: GpuCapping | None = None
        self._wish = self._followed = Wish(None, NOT_YET)
        self._news: list[Action] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._is_lifted = threading.Event()
        self._is_lifted.set()
        self._closed_by_s: float | None = None
        self._began_s: float | None = None
        self._problem = NOT_YET
        self._thread = threading.Thread(target=self._run, name="power-gpus", daemon=True)

    def start(self) -> None:
        """Begin. Returns at once."""
        self._wake.set()
        self._thread.start()

    @property
    def problem(self) -> str:
        """Why no limit can be set, empty if one can."""
        return self.disk_problem or self._driver_problem

    @property
    def disk_problem(self) -> str:
        """What says that the disk of the record does not answer, empty while it does."""
        return self._disk.problem

    @property
    def is_here(self) -> bool:
        """Whether there is a GPU that can be capped. Its caps stand while the disk hangs."""
        return not self._driver_problem

    @property
    def caps_watts(self) -> Mapping[str, float]:
        """The limits of ours, by GPU."""
        return {} if self._capping is None else self._capping.caps_watts

    @property
    def last(self) -> Mapping[str, Action]:
        """The last action of each GPU."""
        return {} if self._capping is None else self._capping.last

    def ask(self, spec: CapSpec | None, why_none: str) -> list[Action]:
        """Set what is to be in force. Return what was done since the last call."""
        self._say(Wish(spec, why_none))
        return self._taken()

    def let_go(self, reason: str) -> list[Action]:
        """Give back every limit, and set none any more. Waits for no disk.

        Return what was done since the last call.
        """
        self._say(Wish(None, reason), is_last=True)
        self._is_lifted.wait(self._left_s())
        return self._taken()

    def close(self, reason: str) -> list[Action]:
        """Let go, and end the thread. Return what was done since the last call."""
        actions = self.let_go(reason)
        if self._thread.is_alive():
            self._thread.join(self._left_s())
        return actions + self._taken()

    @property
    def _driver_problem(self) -> str:
        began_s = self._began_s
        is_late = began_s is not None and self._clock() - began_s > LONGEST_S
        return LATE if is_late else self._problem

    def _say(self, wish: Wish, *, is_last: bool = False) -> None:
        with self._lock:
            if self._closing.is_set():
                return
            self._wish = wish
            if is_last:
                self._closed_by_s = time.monotonic() + CLOSE_S
                self._closing.set()
        self._wake.set()
        self._disk.look_again()

    def _left_s(self) -> float:
        closed_by_s = self._closed_by_s
        return 0.0 if closed_by_s is None else max(0.0, closed_by_s - time.monotonic())

    def _is_given_up(self) -> bool:
        """Whether the thread would wait for the disk on behalf of caps that nobody asks for."""
        return self._followed.is_for_caps and not self._wish.is_for_caps

    @contextmanager
    def _waiting_for_disk(self) -> Iterator[None]:
        self._began_s = None
        try:
            yield
        finally:
            self._began_s = self._clock()

    def _taken(self) -> list[Action]:
        with self._lock:
            news, self._news = self._news, []
        return news

    def _run(self) -> None:
        self._step(self._open)
        while not self._closing.is_set():
            self._wake.wait()
            self._wake.clear()
            self._follow()
        self._follow()
        self._step(self._end)

    def _follow(self) -> None:
        self._is_lifted.clear()
        self._followed = wish = self._wish
        self._step(partial(self._obey, wish))
        if not wish.is_for_caps:
            self._is_lifted.set()
        self._step(self._renew)

    def _step(self, work: Callable[[], list[Action]]) -> None:
        self._began_s = self._clock()
        try:
            done = work()
        except MachineError as error:
            self._problem = str(error)
            done = []
        except Exception as error:  # the thread has to stay, for it gives the limits back
            log.exception("gpu_caps_failed")
            self._problem = f"a call of NVML failed: {type(error).__name__}"
            done = []
        self._began_s = None
        with self._lock:
            self._news += done

    def _open(self) -> list[Action]:
        capping = GpuCapping(Nvml(self._load()), self._disk)
        capping.open()
        self._disk.wait_for(capping.recall)
        self._problem = "" if capping.count else NO_GPU
        self._capping = capping
        return capping.lift(LEFT)

    def _obey(self, wish: Wish) -> list[Action]:
        if self._capping is None:
            return []
        self._problem = "" if self._capping.count else NO_GPU
        if wish.spec is None:
            return self._capping.lift(wish.why_none)
        return self._capping.apply(wish.spec)

    def _renew(self) -> list[Action]:
        if self._capping is not None:
            self._capping.renew_record()
        return []

    def _end(self) -> list[Action]:
        return [] if self._capping is None else self._capping.close(self._wish.why_none)
