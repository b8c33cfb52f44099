"""What the CPUs ran while an engine attached: ``python -m bench.failures.attaching TRACE``.

Reads a trace of ``--trace``, whole or cut, as text or compressed by gzip. Prints a table in
Markdown: for each 20 ms the longest wait of a thread of the request server, and how long each kind
of thread ran on all CPUs. Times are in ms since the kernel lets the engine's programs decide.
"""

import argparse
import gzip
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import define, field, frozen

WINDOW_MS = 20
SHOWN_MS = range(-80, 220, WINDOW_MS)
CYCLE_MS = 1.0
"""A turn of the engine's main thread of this length is a cycle, or a part of attaching."""
REQUEST_THREADS = ("ladder-server", "ladder-client")
KINDS: Mapping[str, str] = {
    "ladder-spin": "busy threads",
    **dict.fromkeys(REQUEST_THREADS, "requests"),
    "scx_layered": "engine",
    "temper": "agent",
    "swapper": "idle",
}
EVENT = re.compile(r"\s*.{16}-(\d+)\s+\[(\d+)\] \S+\s+([\d.]+): (\w+): (.*)")
SWITCH = re.compile(r".* prev_pid=(\d+) .*prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+)")
WAKING = re.compile(r"comm=.* pid=(\d+)")
BYPASS = re.compile(r"name SCX_EV_BYPASS_DURATION delta (\d+)")


@frozen
class Turn:
    """One turn of a thread on a CPU, after a wait. All times are in ms."""

    name: str
    pid: int
    begin: float
    end: float
    waited: float


@define
class Attaching:
    """The turns of all threads around the attaching of an engine.

    ``attached`` is when the kernel ended its bypass of the engine's programs, and ``bypass`` how
    long that had lasted, both in ms. ``engine`` is the id of the engine's main thread.
    """

    attached: float = 0.0
    bypass: float = 0.0
    engine: int = 0
    turns: list[Turn] = field(factory=list)
    _now: dict[int, tuple[str, int, float, float]] = field(factory=dict)
    _waits_since: dict[int, float] = field(factory=dict)

    def take(self, line: str) -> None:
        """Take in a line of the trace. One of another kind changes nothing."""
        if not (event := EVENT.match(line)):
            return
        pid, cpu, at_ms = int(event[1]), int(event[2]), float(event[3]) * 1000
        if event[4] == "sched_waking" and (woken := WAKING.match(event[5])):
            self._waits_since.setdefault(int(woken[1]), at_ms)
        elif event[4] == "sched_switch" and (switch := SWITCH.match(event[5])):
            self._switch(cpu, at_ms, switch)
        elif bypass := BYPASS.match(event[5]):
            self.attached, self.bypass, self.engine = at_ms, int(bypass[1]) / 1e6, pid

    def _switch(self, cpu: int, at_ms: float, switch: re.Match[str]) -> None:
        if cpu in self._now:
            name, pid, begin, waited = self._now[cpu]
            self.turns.append(Turn(name, pid, begin, at_ms, waited))
        previous, following = int(switch[1]), int(switch[4])
        if switch[2].startswith("R"):
            self._waits_since[previous] = at_ms
        else:
            self._waits_since.pop(previous, None)
        waited = at_ms - self._waits_since.pop(following, at_ms)
        self._now[cpu] = (switch[3], following, at_ms, waited)


def read(path: Path) -> Attaching:
    """Read a trace. Raise ValueError if no engine attaches in it."""
    packed = path.read_bytes()
    text = gzip.decompress(packed) if path.suffix == ".gz" else packed
    attaching = Attaching()
    for line in text.decode(errors="replace").splitlines():
        attaching.take(line)
    if not attaching.engine:
        raise ValueError(f"{path}: no engine attaches in this trace")
    return attaching


def cycles(attaching: Attaching) -> list[float]:
    """Return when the engine's main thread ran for a while, in ms since it was attached."""
    return [
        round(turn.begin - attaching.attached, 1)
        for turn in attaching.turns
        if turn.pid == attaching.engine
        and turn.end - turn.begin >= CYCLE_MS
        and turn.begin >= attaching.attached
    ]


def longest_wait(turns: Iterable[Turn], begin: float, end: float) -> float:
    """Return the longest wait that ended in a window, of the threads that requests need, in ms."""
    ended = (turn for turn in turns if begin <= turn.begin < end)
    return max((turn.waited for turn in ended if turn.name in REQUEST_THREADS), default=0.0)


def ran(turns: Iterable[Turn], begin: float, end: float) -> Counter[str]:
    """Return how long each kind of thread ran in a window, in ms of all CPUs."""
    times: Counter[str] = Counter()
    for turn in turns:
        inside = min(turn.end, end) - max(turn.begin, begin)
        if inside > 0:
            times[KINDS.get(turn.name.partition("/")[0], "others")] += inside
    return times


def table(attaching: Attaching) -> Iterator[str]:
    """Yield the lines of the table."""
    kinds = list(dict.fromkeys(KINDS.values()))
    yield f"| ms since attached | longest wait, ms | {' | '.join(kinds)} |"
    yield f"| --- | --: |{' --: |' * len(kinds)}"
    for at_ms in SHOWN_MS:
        begin = attaching.attached + at_ms
        times = ran(attaching.turns, begin, begin + WINDOW_MS)
        wait = longest_wait(attaching.turns, begin, begin + WINDOW_MS)
        cells = " | ".join(f"{times[kind]:.0f}" for kind in kinds)
        yield f"| {at_ms} to {at_ms + WINDOW_MS} | {wait:.1f} | {cells} |"


def main() -> None:
    """Print the table of a trace, and the cycles of its engine."""
    parser = argparse.ArgumentParser(prog="python -m bench.failures.attaching", description=__doc__)
    parser.add_argument("trace", type=Path)
    attaching = read(parser.parse_args().trace)
    print(*table(attaching), sep="\n")
    print(f"\nbypass: {attaching.bypass:.1f} ms; the engine ran at {cycles(attaching)} ms")


if __name__ == "__main__":
    main()
