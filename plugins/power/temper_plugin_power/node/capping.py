"""Sets the limits of packages, and gives them back."""

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from temper_core import KernelValues, MachineError
from temper_plugin_power.node.actions import NOT_ASKED, Action, LastActions, let_go, restored
from temper_plugin_power.node.energy import MICRO
from temper_plugin_power.node.kernel_numbers import known_number
from temper_plugin_power.node.limits import limit_of
from temper_plugin_power.node.spec_file import CapSpec
from temper_plugin_power.node.zones import Package

MOST_DIFFERENCE = 0.05
"""Of a limit that was read back. The kernel rounds, and the firmware may refuse."""
READ_ONLY = "is not writable here; in a cluster set agent.powercap of the chart to writable"


@frozen
class InForce:
    """A limit of ours, in microwatts."""

    asked_uw: int
    now_uw: int
    """As it was read back."""


class Capping:
    """The limits of the *packages*, recorded in *values*. Only one thread may use it."""

    def __init__(self, packages: Sequence[Package], values: KernelValues) -> None:
        self._packages = packages
        self._values = values
        self._in_force: dict[Path, InForce] = {}
        self._last = LastActions()
        self._lock = -1
        self._has_old_record = False

    @property
    def caps_watts(self) -> Mapping[str, float]:
        """The limits of ours, by package."""
        in_force = ((each.name, self._in_force.get(each.limit)) for each in self._packages)
        return {name: limit.now_uw / MICRO for name, limit in in_force if limit is not None}

    @property
    def last(self) -> Mapping[str, Action]:
        """The last action of each package."""
        return self._last.by_package()

    def is_alone(self) -> bool:
        """Take the lock of this machine's limits. Return False if another process has it.

        It is on a counter of energy, which only root may open since Linux 5.10. Each user that may
        open a file may lock it, and every user may read a limit.
        """
        if not self._packages:
            return True  # without a zone there is nothing to fight over
        if self._lock < 0:
            try:
                self._lock = os.open(self._packages[0].zone.energy, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return True  # it cannot be capped either
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def apply(self, spec: CapSpec) -> list[Action]:
        """Set the limits that *spec* asks for. Return what is new since the last call."""
        return [
            action
            for package in self._packages
            for action in self._last.new(self._set(package, spec))
        ]

    def lift(self, reason: str) -> list[Action]:
        """Give back every limit. Return an action for each that was changed."""
        changed = [each for each in self._packages if each.limit in self._values.changed]
        return list(self._last.new(self._give_back(package, reason) for package in changed))

    def let_go(self, reason: str) -> list[Action]:
        """Give back every limit, and set none any more. Waits for no disk.

        Another thread may hang in any other method meanwhile.
        """
        changed = [each for each in self._packages if each.limit in self._values.changed]
        left = {Path(each.path): each for each in self._values.let_go().left}
        self._has_old_record |= bool(changed)
        failed = {path for path, each in left.items() if each.is_failure}
        self._in_force = {path: self._in_force[path] for path in failed & self._in_force.keys()}
        done = (let_go(each.name, left.get(each.limit), reason) for each in changed)
        return list(self._last.new(done))

    def close(self, reason: str) -> list[Action]:
        """Give back every limit, and release the lock.

        All limits are back before the record is written, for the disk may hang.
        """
        actions = self.let_go(reason)
        if self._has_old_record:
            self._values.give_back_all()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        return actions

    def _set(self, package: Package, spec: CapSpec) -> Iterator[Action]:
        current_uw = known_number(package.limit)
        if current_uw is None:
            yield Action("blocked", package.name, f"{package.limit}: cannot be read")
            return
        former = self._values.former(package.limit)
        before_uw = current_uw if former is None else int(former)
        limit = limit_of(spec, package.max_uw, before_uw)
        if limit.uw is not None:
            if self._in_force.get(package.limit) != InForce(limit.uw, current_uw):
                yield self._change(package, limit.uw, limit.note)
        elif former is not None:
            yield self._give_back(package, limit.note or NOT_ASKED)
        elif limit.is_blocked:
            yield Action("blocked", package.name, limit.note)

    def _change(self, package: Package, asked_uw: int, note: str) -> Action:
        if not os.access(package.limit, os.W_OK):
            return Action("blocked", package.name, f"{package.limit}: {READ_ONLY}")
        try:
            now = self._values.change(package.limit, str(asked_uw))
        except MachineError as error:
            self._in_force.pop(package.limit, None)
            return Action("error", package.name, str(error))
        now_uw = int(now) if now.isascii() and now.isdigit() else 0
        self._in_force[package.limit] = InForce(asked_uw, now_uw)
        is_set = abs(now_uw - asked_uw) <= MOST_DIFFERENCE * asked_uw
        said = f"asked {asked_uw / MICRO:.1f} W, read back {now_uw / MICRO:.1f} W"
        detail = ", ".join(filter(None, (said, note)))
        return Action("applied" if is_set else "error", package.name, detail)

    def _give_back(self, package: Package, reason: str) -> Action:
        try:
            is_back = self._values.give_back(package.limit)
        except MachineError as error:
            return Action("error", package.name, str(error))
        self._in_force.pop(package.limit, None)
        return restored(package.name, reason, is_back=is_back)
