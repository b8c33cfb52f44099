"""When the node's limits are set, and when they are lifted."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from temper_core import (
    DocumentError,
    InstrumentContext,
    KernelValues,
    MachineError,
    Mode,
    Snapshot,
)
from temper_plugin_power.node.actions import Action
from temper_plugin_power.node.capping import Capping
from temper_plugin_power.node.spec_file import CapSpec, read_spec, spec_of
from temper_plugin_power.node.zones import Package
from temper_plugin_power.settings.durations import seconds
from temper_plugin_power.settings.node import NodeSettings

OFF = "actuate is off"
NO_FILE = "spec_file is not set, and twin_from_cluster is false"
NOT_ALONE = "another process of this host holds the limits"
ONLY_OBSERVES = "not_asked"
"""The status' reason of an agent that was started to observe."""
STOPPED = "the agent stops"
LET_GO = "caps are not followed any more, because the look that sets them was set aside"


Found = Callable[[], tuple[Mapping[str, Any] | None, str]]
"""Returns the NodeTwin that was last read, or None and why there is none."""


class Control:
    """Follows the specification of the node.

    Only one thread may use it. Another one may call ``let_go``.

    *found* returns a NodeTwin of the cluster. Without it a file is read. *why_no_gpus* returns why
    no GPU can be capped, empty if one can. ``spec`` is what is followed.
    """

    def __init__(
        self,
        settings: NodeSettings,
        context: InstrumentContext,
        packages: Sequence[Package],
        *,
        found: Found | None = None,
        why_no_gpus: Callable[[], str] = lambda: OFF,
    ) -> None:
        self._found = found
        self._why_no_gpus = why_no_gpus
        self.spec: CapSpec | None = None
        self._settings = settings
        self._context = context
        self._values = KernelValues(context.state)
        self.capping = Capping(packages, self._values)
        self._has_packages = bool(packages)
        self._has_taken_over = False
        self._message = OFF
        self.has_let_go = False

    @property
    def message(self) -> str:
        """Why no limit is set, empty while the specification is followed."""
        return LET_GO if self.has_let_go else self._message

    @property
    def is_off(self) -> bool:
        """Whether the settings do not let the agent set caps."""
        return not self._settings.actuate

    def turn(self, now: float, snapshot: Snapshot) -> list[Action]:
        """Set or lift the limits at *now*, in seconds since 1970. Return what is new."""
        self.spec = None  # the limits of GPUs are lifted wherever this turn ends early
        try:
            return self._turn(now, snapshot)
        except MachineError as error:
            self._message = str(error)
            return []

    def let_go(self) -> list[Action]:
        """Lift every limit for good, while ``turn`` may still hang in another thread."""
        self.has_let_go = not self.is_off
        self.spec = None
        return self.capping.let_go(LET_GO)

    def close(self) -> list[Action]:
        """Lift every limit."""
        self.spec = None
        return self.capping.close(STOPPED)

    def _turn(self, now: float, snapshot: Snapshot) -> list[Action]:
        if not self._may_have_left_something() and not self._settings.actuate:
            self._message = OFF
            return []
        why_no_gpus = "" if self._has_packages else self._why_no_gpus()
        if why_no_gpus:
            self._message = f"there is no package, and no GPU can be capped: {why_no_gpus}"
            return []
        if not self.capping.is_alone():
            self._message = NOT_ALONE
            return []
        actions = self._take_over()
        spec, self._message = self._spec(now, snapshot)
        self.spec = spec
        return actions + (
            self.capping.lift(self._message) if spec is None else self.capping.apply(spec)
        )

    def _may_have_left_something(self) -> bool:
        return not self._has_taken_over and self._context.state.used_bytes() > 0

    def _take_over(self) -> list[Action]:
        """Give back the limits of an agent that crashed, once."""
        if self._has_taken_over:
            return []
        restored = self._values.take_over()
        self._has_taken_over = True
        told = [
            Action("restored", path, "left by an agent that crashed") for path in restored.removed
        ]
        return told + [Action("error", left.path, left.why) for left in restored.left]

    def _spec(self, now: float, snapshot: Snapshot) -> tuple[CapSpec | None, str]:
        """Return what to follow, or None and why there is nothing."""
        why = self._why_not(snapshot)
        if why:
            return None, why
        try:
            spec, source = self._read()
        except DocumentError as error:
            return None, error.lines[0]
        except MachineError as error:
            return None, str(error)
        if spec.is_stale(now, seconds(self._settings.spec_timeout)):
            return None, f"{source}: is of {spec.age_s(now):.0f} s ago, and spec_timeout is over"
        return spec, ""

    def _read(self) -> tuple[CapSpec, str]:
        """Return the specification and the name of its source."""
        if self._found is None:
            path = Path(self._settings.spec_file)
            return read_spec(path, self._context.node), str(path)
        document, why_none = self._found()
        if document is None:
            raise MachineError(why_none)
        source = f"NodeTwin {self._context.node}"
        return spec_of(document, self._context.node, source), source

    def _why_not(self, snapshot: Snapshot) -> str:
        if not self._settings.actuate:
            return OFF
        if self._found is None and not self._settings.spec_file:
            return NO_FILE
        if self._context.is_safe_mode_requested():
            return "safe mode is requested"
        status = snapshot.status
        if status.mode is Mode.OBSERVE_ONLY and status.reason == ONLY_OBSERVES:
            return "the agent only observes"
        return ""
