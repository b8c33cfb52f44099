"""Plays the faults of a group one after another, and writes down what became of each."""

import json
import subprocess
import sys
import time
from pathlib import Path

import kernel
from catalogue import Fault, Group
from scene import NotSo, Scene, claim, is_alive
from temper_agent import last_words
from traces import leftovers, traces

# The emulator stands still for seconds while the kernel rewrites itself for an attach.
LATEST_S = 15.0
FAILURES = (
    kernel.NotInTime,
    NotSo,
    OSError,
    ValueError,
    LookupError,
    subprocess.SubprocessError,
)


class Play:
    """Plays on *scene*; every outcome is also a line of JSON in *report*, if there is one."""

    def __init__(self, scene: Scene, report: Path | None) -> None:
        self.failed = 0
        self._scene = scene
        self._report = report
        self._from = time.monotonic()

    def fault(self, fault: Fault) -> None:
        """Play one; whatever goes wrong in it ends only this one."""
        started = time.monotonic()
        try:
            measured, holds = self._played(fault), True
        except FAILURES as problem:
            measured, holds = f"{type(problem).__name__}: {problem}", False
            self._scene.clear()
        self._tell(fault, holds, measured, time.monotonic() - started)

    def _played(self, fault: Fault) -> str:
        scene = self._scene
        scene.go_home(fault.settings)
        before = traces(scene.known)
        scene.struck_at = scene.safe_s = None
        for sleeper in scene.crowd.sleepers:
            sleeper.measure()
            sleeper.doze()
        with scene.undo:
            fault.play(scene)
        if scene.agent is not None:
            scene.order(scene.group.order)
            scene.recover()
        left = leftovers(before, scene.known)
        claim(not left, f"left behind: {', '.join(left)}")
        return self._workloads()

    def _workloads(self) -> str:
        """Hold against the workloads that they never stopped; say how late they were at most."""
        sleepers = self._scene.crowd.sleepers
        claim(all(is_alive(sleeper.pid) for sleeper in sleepers), "a workload has died")
        claim(all(sleeper.woken for sleeper in sleepers), "a workload has stood still")
        latest = max(sleeper.latest_s for sleeper in sleepers)
        claim(latest < LATEST_S, f"a workload was {latest:.1f} s late")
        return f"workloads at most {latest * 1000:.0f} ms late"

    def _tell(self, fault: Fault, holds: bool, measured: str, took_s: float) -> None:
        self.failed += not holds
        safe_s = self._scene.safe_s
        safe = f"safe after {safe_s:6.2f} s" if safe_s is not None else "safe after      ?"
        clock = time.monotonic() - self._from
        word = "ok    " if holds else "FAILED"
        sys.stdout.write(
            f"[{clock:6.1f} s] {word} {fault.id:32} {safe}  ({took_s:.1f} s; {measured})\n"
        )
        if not holds:
            sys.stdout.write(f"         {fault.claim}\n{last_words()}\n")
        sys.stdout.flush()
        self._write(
            {
                "claim": fault.id,
                "holds": holds,
                "safe_s": safe_s,
                "took_s": took_s,
                "measured": measured,
            }
        )

    def _write(self, outcome: dict[str, object]) -> None:
        if self._report is not None:
            with self._report.open("a") as file:
                file.write(json.dumps(outcome) + "\n")


def play(group: Group, chosen: list[str], engine: Path, report: Path | None) -> int:
    """Play the *chosen* faults of *group*, all without a choice; return how many failed."""
    scene = Scene(group, engine)
    player = Play(scene, report)
    try:
        for fault in group:
            if not chosen or fault.id in chosen:
                player.fault(fault)
    finally:
        scene.clear()
        scene.crowd.end()
    return player.failed
