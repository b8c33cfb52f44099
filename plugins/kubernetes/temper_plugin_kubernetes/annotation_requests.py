"""Requests to the agent in the node's annotations: safe mode, or restoring of the host.

``temper.codes/safe-mode-requested`` is the kill switch. ``temper.codes/restore-requested`` requests
safe mode and restoring of the host. ``temper.codes/restored`` is the answer, with the time. While
the request stands, a starting agent obeys it at once and writes nothing on the host.
"""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import structlog
from attrs import frozen

from temper_core import InstrumentContext, Restored
from temper_plugin_kubernetes.annotations import (
    LEFT,
    LONGEST_MESSAGE,
    RESTORED,
    Annotations,
    Patch,
)

KILL_SWITCH = "temper.codes/safe-mode-requested"
RESTORE = "temper.codes/restore-requested"
UNINSTALL = "uninstall"
"""The value of a request before the agent's removal: once the host is restored, the agent writes
nothing more to the cluster, and stays in safe mode although the annotation is removed."""
REFUSALS = ("", "false", "no", "off", "0")
"""Values that count as no request. Every other value counts as one, to be safe."""
LONGEST_VALUE = 100

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class _Annotation:
    """The annotation in force and its value. Empty without a request."""

    key: str = ""
    value: str = ""


class AnnotationRequests:
    """Obeys the annotations on the watching thread. ``answer`` may be called from any thread.

    Annotations are applied on each change and once at the start, since the agent may have kept a
    request that was withdrawn while it did not run. *answered* is called once there is an answer.
    """

    def __init__(
        self, context: InstrumentContext, answered: Callable[[], None] = lambda: None
    ) -> None:
        self._context = context
        self._answered = answered
        self._lock = threading.Lock()
        self._obeyed: _Annotation | None = None
        self._done: dict[str, Patch] = {}
        self._is_leaving = False

    @property
    def is_leaving(self) -> bool:
        """Whether the agent is about to be removed, and writes no more annotations."""
        return self._is_leaving

    @property
    def is_beside_agent(self) -> bool:
        """Whether another agent of the host answers, and writes to the Node."""
        return self._context.is_beside_agent()

    def obey(self, annotations: Annotations) -> None:
        """Apply the request in the annotations, if it has changed."""
        annotation = _in_force(annotations)
        if annotation == self._obeyed or self._is_leaving:
            return
        self._obeyed = annotation
        with self._lock:
            self._done = {}  # the same request again needs another answer
        if annotation.key == RESTORE:
            self._is_leaving = annotation.value == UNINSTALL
            log.warning("restore_requested", value=annotation.value[:LONGEST_VALUE])
            self._context.restore(_reason(annotation), partial(self._note, annotation))
        elif annotation.key:
            self._context.request_safe_mode(_reason(annotation))
        else:
            self._context.release_safe_mode()

    def answer(self, present: Annotations) -> Patch:
        """Return the patch of *present*: the time of restoring, and the leftovers.

        Without a request an existing answer is removed.
        """
        with self._lock:
            done = self._done.get(_asked(present, RESTORE), {})
        target = {key: done.get(key) for key in (RESTORED, LEFT)}
        return {key: value for key, value in target.items() if present.get(key) != value}

    def _note(self, annotation: _Annotation, restored: Restored) -> None:
        """Record that *annotation* was fulfilled. A withdrawn request is not answered."""
        if annotation is not self._obeyed:
            return
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        left = "; ".join(f"{leftover.path}: {leftover.why}" for leftover in restored.left)[
            :LONGEST_MESSAGE
        ]
        with self._lock:
            self._done = {annotation.value: {RESTORED: now, LEFT: left or None}}
        self._answered()


def _in_force(annotations: Annotations) -> _Annotation:
    for key in (RESTORE, KILL_SWITCH):
        if value := _asked(annotations, key):
            return _Annotation(key, value)
    return _Annotation()


def _asked(annotations: Annotations, key: str) -> str:
    value = str(annotations.get(key, ""))
    return "" if value.strip().lower() in REFUSALS else value


def _reason(annotation: _Annotation) -> str:
    return f"the node annotation {annotation.key}={annotation.value[:LONGEST_VALUE]} is set"
