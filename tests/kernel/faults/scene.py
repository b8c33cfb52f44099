"""The node on which faults are played: its pods, its agent, its engine, and what is expected."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kernel
from catalogue import Group
from temper_agent import ENGINE, PODS, PROFILES, SETTINGS, Agent, write_settings
from traces import OWN, traces
from workloads import Crowd, Pod, write_podlist

ORDERS = OWN / "orders"
BELL = OWN / "bell"
STAND_IN = Path(__file__).with_name("scx_layered")
# An attach takes 20 s in a quiet emulator and minutes in a busy one.
SAFE_S = 400.0
QUIET_S = 180.0
LOOK_S = 0.05


class NotSo(Exception):  # noqa: N818 - reads as the fact it reports
    """Something is not as claimed."""


def claim(holds: object, what: str) -> None:
    """Raise NotSo where *holds* is false."""
    if not holds:
        raise NotSo(what)


@dataclass(frozen=True)
class Seen:
    """One look: the kernel's scheduler, the engines' process ids, and what the agent says."""

    kernel: str
    operations: str
    engines: tuple[int, ...]
    mode: str
    reason: str
    detail: str

    @property
    def is_stock(self) -> bool:
        """Whether the stock scheduler runs everything and no engine is there."""
        return self.kernel == "disabled" and not self.engines


class Scene:
    """A node with its pods. ``agent`` is the one that runs; ``undo`` is run after each case."""

    def __init__(self, group: Group, engine: Path) -> None:
        self.group = group
        self.undo = ExitStack()
        self.struck_at: float | None = None
        self.safe_s: float | None = None
        self.agent: Agent | None = None
        self._settings: Mapping[str, Any] = {}
        self.prepare(engine)
        self.crowd = Crowd([Pod("payments", 1_000_000, "1"), Pod("backup", -1000)])
        self.pods = self.crowd.pods
        self.list_pods()
        self.empty = traces(self.known)

    def prepare(self, engine: Path) -> None:
        """Put the engine's stand-in and the folders in place."""
        for folder in (ENGINE.parent, PROFILES):
            folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(STAND_IN, ENGINE)
        os.environ.update(FAULT_ENGINE=str(engine), FAULT_ORDERS=str(ORDERS), FAULT_BELL=str(BELL))
        os.mkfifo(BELL)

    @property
    def known(self) -> list[int]:
        """Process ids of the workloads."""
        return [sleeper.pid for sleeper in self.crowd.sleepers]

    def list_pods(self) -> None:
        """Let the agent's pod source say what the pods are now."""
        write_podlist(PODS, self.pods.values())

    def order(self, *words: str) -> None:
        """Tell the next engines what to do; see scx_layered."""
        beside = ORDERS.with_suffix(".new")
        beside.write_text(" ".join(words) + "\n")
        beside.rename(ORDERS)

    def ring(self, *words: str) -> None:
        """Have the engine that hangs do something else now: the fault begins with it."""
        descriptor = _opened_by_a_reader(BELL)
        self.order(*words)
        self.strike()
        os.write(descriptor, b"\n")
        os.close(descriptor)

    def start_agent(self, settings: Mapping[str, Any] | None = None) -> Agent:
        """Start an agent with *settings* by section on top of the suite's; remember them."""
        self._settings = self._settings if settings is None else settings
        write_settings(SETTINGS, self._settings)
        self.agent = Agent()
        return self.agent

    def go_home(self, settings: Mapping[str, Any]) -> None:
        """Have an agent with *settings* in the group's mode, however things stand."""
        self.order(self.group.order)
        if self.agent is None or not self.agent.is_alive or settings != self._settings:
            self.clear()
            self.start_agent(settings)
        self.recover()

    def clear(self) -> None:
        """End agent and engines by force."""
        if self.agent is not None:
            self.agent.kill()
            self.agent = None
        for pid in kernel.engines():
            os.kill(pid, signal.SIGKILL)
        kernel.wait_until("the stock scheduler", lambda: self.look().is_stock, SAFE_S)

    def look(self) -> Seen:
        """Look at the kernel and ask the agent."""
        told = (
            self.agent.ask("/safe-mode") if self.agent is not None and self.agent.is_alive else {}
        )
        return Seen(
            kernel.state(),
            kernel.operations(),
            tuple(kernel.engines()),
            *(str(told.get(key, "")) for key in ("mode", "reason", "detail")),
        )

    def strike(self) -> None:
        """The fault begins now; from here the way to the safe state is timed."""
        self.struck_at = time.monotonic()

    def expect(self, what: str, holds: Callable[[Seen], object], within_s: float = 0.0) -> Seen:
        """Wait until what is seen *holds*; raise NotSo with the last look where it does not."""
        within_s = within_s or (SAFE_S if self.group.order == "run" else QUIET_S)
        latest = time.monotonic() + within_s
        while not holds(seen := self.look()):
            if time.monotonic() > latest:
                raise NotSo(f"not {what} within {within_s:.0f} s, but {seen}")
            time.sleep(LOOK_S)
        return seen

    def wait_for(self, what: str, tell: Callable[[], Any], within_s: float = QUIET_S) -> Any:
        """Return what *tell* returns as soon as that is something; raise NotSo if it never is."""
        latest = time.monotonic() + within_s
        while not (told := tell()):
            claim(time.monotonic() < latest, f"no {what} within {within_s:.0f} s")
            time.sleep(LOOK_S)
        return told

    def safe(self, what: str, holds: Callable[[Seen], object], within_s: float = 0.0) -> Seen:
        """As expect; what is waited for is the safe state, and the time to it is kept."""
        seen = self.expect(what, holds, within_s)
        if self.safe_s is None and self.struck_at is not None:
            self.safe_s = time.monotonic() - self.struck_at
        return seen

    def safe_on_stock(self, reason: str, detail: str = "") -> Seen:
        """Expect the stock scheduler, no engine, and safe mode for that reason."""
        return self.safe(
            f"on the stock scheduler for {reason} ({detail})",
            lambda seen: (
                seen.is_stock
                and (seen.mode, seen.reason) == ("safe_mode", reason)
                and detail in seen.detail
            ),
        )

    def safe_without_agent(self) -> Seen:
        """Expect the stock scheduler and no engine; there is no agent to ask."""
        return self.safe("on the stock scheduler", lambda seen: seen.is_stock)

    def safe_while_loading(self) -> Seen:
        """Expect the stock scheduler while an engine loads."""
        return self.safe("loading", is_loading)

    def safe_still_enforcing(self, engine: int) -> Seen:
        """Expect the same engine to be in force as before."""
        seen = self.safe("enforcing", is_enforcing)
        claim(seen.engines == (engine,), f"engine {engine} was replaced: {seen}")
        self.claim_in_force(engine)
        return seen

    def recover(self) -> Seen:
        """Expect the group's mode again, with the plan in force that the agent tells."""
        if self.group.home == "reloading":
            return self.expect("loading again", is_loading)
        seen = self.expect("enforcing again", is_enforcing)
        self.claim_in_force(seen.engines[0])
        return seen

    def claim_in_force(self, engine: int) -> None:
        """Hold the file that the engine was given against what the agent says is in force."""
        assert self.agent is not None
        told = self.agent.ask("/config")
        given = json.loads(Path(_argument_of(engine)).read_text())
        claim(told == given, f"in force is {given}, the agent says {told}")

    def heir(self, engine: int) -> int:
        """Wait until another engine loads beside *engine*; return its process id."""
        seen = self.expect("a second engine", lambda seen: len(seen.engines) > 1)
        (heir,) = {*seen.engines} - {engine}
        return heir

    def engine(self) -> int:
        """Return the process id of the one engine."""
        engines = kernel.engines()
        claim(len(engines) == 1, f"not one engine, but {engines}")
        return engines[0]


def is_loading(seen: Seen) -> bool:
    """Whether an engine loads and has attached nothing."""
    return seen.kernel == "disabled" and seen.mode == "reloading" and bool(seen.engines)


def is_enforcing(seen: Seen) -> bool:
    """Whether one engine is attached, by the kernel's word and the agent's."""
    return (
        (seen.kernel, seen.mode) == ("enabled", "enforcing")
        and seen.operations.startswith("layered")
        and len(seen.engines) == 1
    )


def is_alive(pid: int) -> bool:
    """Whether a child of this process has not ended."""
    return os.waitpid(pid, os.WNOHANG) == (0, 0)


def _opened_by_a_reader(pipe: Path) -> int:
    latest = time.monotonic() + QUIET_S
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody waits in it yet
            if time.monotonic() > latest:
                raise
            time.sleep(LOOK_S)


def _argument_of(engine: int) -> str:
    words = Path(f"/proc/{engine}/cmdline").read_text().split("\0")
    return next(word for word in words if word.startswith("f:")).removeprefix("f:")
