"""Caps of GPUs on a thread of its own: the driver may keep a caller waiting."""

import threading
import time
from collections.abc import Callable, Mapping

import structlog
from attrs import frozen

from temper_core import MachineError, StateDirectory
from temper_plugin_power.node.actions import Action
from temper_plugin_power.node.gpu_capping import GpuCapping
from temper_plugin_power.node.nvml import Library, Nvml, load_library
from temper_plugin_power.node.spec_file import CapSpec

LONGEST_S = 3.0
"""After this time NVML counts as not answering."""
CLOSE_S = 3.0
NOT_YET = "NVML was not asked yet"
NO_GPU = "NVML names no GPU whose limit can be set"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Wish:
    """The caps that are to be in force: those of *spec*, or none for a reason."""

    spec: CapSpec | None
    why_none: str


class GpuWorker:
    """Follows the last wish. ``problem`` is why no GPU can be capped."""

    def __init__(
        self,
        state: StateDirectory,
        load: Callable[[], Library] = load_library,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state = state
        self._load = load
        self._clock = clock
        self._capping: GpuCapping | None = None
        self._wish = Wish(None, NOT_YET)
        self._news: list[Action] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._began_s: float | None = None
        self._problem = NOT_YET
        self._thread = threading.Thread(target=self._run, name="power-gpus", daemon=True)

    def start(self) -> None:
        """Begin. Returns at once."""
        self._wake.set()
        self._thread.start()

    @property
    def problem(self) -> str:
        """Why no GPU can be capped, empty if one can."""
        began_s = self._began_s
        if began_s is not None and self._clock() - began_s > LONGEST_S:
            return f"NVML has not answered for more than {LONGEST_S:.0f} s"
        return self._problem

    @property
    def is_here(self) -> bool:
        """Whether there is a GPU that can be capped."""
        return not self.problem

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
        self._wish = Wish(spec, why_none)
        self._wake.set()
        return self._taken()

    def close(self, reason: str) -> list[Action]:
        """Give back every limit, and end the thread. Return what was done since the last call."""
        self._wish = Wish(None, reason)
        self._closing.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_S)
        return self._taken()

    def _taken(self) -> list[Action]:
        with self._lock:
            news, self._news = self._news, []
        return news

    def _run(self) -> None:
        self._step(self._open)
        while not self._closing.is_set():
            self._wake.wait()
            self._wake.clear()
            self._step(self._follow)
        self._step(self._end)

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
        capping = GpuCapping(Nvml(self._load()), self._state)
        done = capping.open()
        self._problem = "" if capping.count else NO_GPU
        self._capping = capping
        return done

    def _follow(self) -> list[Action]:
        if self._capping is None:
            return []
        wish = self._wish
        self._problem = "" if self._capping.count else NO_GPU
        if wish.spec is None:
            return self._capping.lift(wish.why_none)
        return self._capping.apply(wish.spec)

    def _end(self) -> list[Action]:
        return [] if self._capping is None else self._capping.close(self._wish.why_none)
