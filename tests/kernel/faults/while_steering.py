"""Damage to the map of hints and its pin while threads are steered by it."""

import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager

from acting import BPFFS, PIN, steering
from bpf_objects import Hints, pin_another_map
from catalogue import Group
from damage import unmounted
from scene import Scene, claim
from traces import CGROUPS
from while_enforcing import enduring

GROUP = Group("steering", home="enforcing", order="run")
fault = GROUP.fault

OPEN_HINT = 2
# The agent looks at its pin once a minute.
MENDED_S = 100.0


def right_hints(scene: Scene) -> dict[int, int]:
    """Return the hints of the critical pod's threads."""
    with Hints(PIN) as hints:
        return {each.pid: hints.of(each.pid) for each in scene.pods["payments"].members}


def has_right_hints(right: dict[int, int]) -> bool:
    """Whether behind the pin there is the map that gives these hints."""
    try:
        with Hints(PIN) as hints:
            return all(hints.of(tid) == hint for tid, hint in right.items())
    except OSError:
        return False


@contextmanager
def mended(scene: Scene) -> Iterator[dict[int, int]]:
    """Claim that the engine stays, and that soon the pin leads to the right hints again."""
    right = right_hints(scene)
    claim(OPEN_HINT not in right.values(), f"the critical pod is in the Open layer: {right}")
    with enduring(scene):
        scene.strike()
        yield right
        scene.safe("the right hints behind the pin", lambda _: has_right_hints(right), MENDED_S)
        mode = stat.S_IMODE(PIN.parent.stat().st_mode)
        claim(mode == 0o700, f"{PIN.parent} is mode {mode:04o}")


@fault("hints that somebody changes in the map are put right within a walk or two")
def map_poisoned(scene: Scene) -> None:
    before = steering(scene)["corrected"]
    with mended(scene) as right, Hints(PIN) as hints:
        for tid in right:
            hints.give(tid, OPEN_HINT)
    corrected = scene.wait_for("correction told", lambda: steering(scene)["corrected"] > before)
    claim(corrected, "the agent counts no correction")


@fault("a pin that is deleted is made again, and threads are steered all the time")
def pin_deleted(scene: Scene) -> None:
    with mended(scene):
        PIN.unlink()


@fault("a pin and its directory that are deleted are made again")
def pin_directory_deleted(scene: Scene) -> None:
    with mended(scene):
        PIN.unlink()
        PIN.parent.rmdir()


@fault("a pin that somebody replaces by another map is put right")
def pin_replaced(scene: Scene) -> None:
    with mended(scene):
        PIN.unlink()
        pin_another_map(PIN)


@fault("a directory that somebody opens to others is closed again")
def pin_directory_opened(scene: Scene) -> None:
    with mended(scene):
        PIN.parent.chmod(0o777)
        scene.wait_for("0700", lambda: stat.S_IMODE(PIN.parent.stat().st_mode) == 0o700, MENDED_S)


@fault("a bpffs that goes and comes back has the pin again, and threads are steered all the time")
def bpffs_missing_while_steering(scene: Scene) -> None:
    with mended(scene), unmounted(BPFFS, "bpf"):
        time.sleep(5)


@fault("a cgroup hierarchy that is gone for a while moves no thread that is steered")
def cgroups_missing_while_steering(scene: Scene) -> None:
    with mended(scene) as right, unmounted(CGROUPS, "cgroup2"):
        time.sleep(5)
        claim(has_right_hints(right), "threads were moved")
