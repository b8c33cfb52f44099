"""What the node's annotations ask of the agent: safe mode, or to leave nothing on the host.

``temper.codes/safe-mode-requested`` is the kill switch. ``temper.codes/restore-requested`` asks for
safe mode and for the host to be restored. ``temper.codes/restored`` answers, with the time. While
it stands an agent that starts does the same at once, and writes nothing on the host.
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
"""The value by which whoever asks tells that the agent is about to be removed: once it is restored
it tells the cluster nothing more, and stays as it is although the annotation goes."""
REFUSALS = ("", "false", "no", "off", "0")
"""What counts as not asking. Whatever else is written there errs on the safe side."""
LONGEST_VALUE = 100

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class _Wish:
    """The annotation that counts, and its value. Empty where nothing is asked for."""

    key: str = ""
    value: str = ""


class AnnotationRequests:
    """Obeys the annotations, on the thread that watches. Knows what to answer, from any thread.

    Whoever asked is obeyed on each change and once at the beginning, since a request may be
    remembered that was withdrawn while no agent ran. *answered* hears when there is an answer.
    """

    def __init__(
        self, context: InstrumentContext, answered: Callable[[], None] = lambda: None
    ) -> None:
        self._context = context
        self._answered = answered
        self._lock = threading.Lock()
        self._obeyed: _Wish | None = None
        self._done: dict[str, Patch] = {}
        self._is_leaving = False

    @property
    def is_leaving(self) -> bool:
        """Whether the agent is about to be removed, and tells nothing of the node any more."""
        return self._is_leaving

    def obey(self, annotations: Annotations) -> None:
        """Do what the annotations ask for, where that is something else than before."""
        wish = _wish(annotations)
        if wish == self._obeyed or self._is_leaving:
            return
        self._obeyed = wish
        with self._lock:
            self._done = {}  # whoever asks for the same again waits for another answer
        if wish.key == RESTORE:
            self._is_leaving = wish.value == UNINSTALL
            log.warning("restore_requested", value=wish.value[:LONGEST_VALUE])
            self._context.restore(_reason(wish), partial(self._note, wish))
        elif wish.key:
            self._context.request_safe_mode(_reason(wish))
        else:
            self._context.release_safe_mode()

    def answer(self, present: Annotations) -> Patch:
        """Return what to write over *present*: when the host was restored, and what was left.

        Without a request there is no answer, and one that is there goes.
        """
        with self._lock:
            said = self._done.get(_asked(present, RESTORE), {})
        wanted = {key: said.get(key) for key in (RESTORED, LEFT)}
        return {key: value for key, value in wanted.items() if present.get(key) != value}

    def _note(self, wish: _Wish, found: Restored) -> None:
        """Know that *wish* was fulfilled. One that was taken back meanwhile is not answered."""
        if wish is not self._obeyed:
            return
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        left = "; ".join(f"{each.path}: {each.why}" for each in found.left)[:LONGEST_MESSAGE]
        with self._lock:
            self._done = {wish.value: {RESTORED: now, LEFT: left or None}}
        self._answered()


def _wish(annotations: Annotations) -> _Wish:
    for key in (RESTORE, KILL_SWITCH):
        if value := _asked(annotations, key):
            return _Wish(key, value)
    return _Wish()


def _asked(annotations: Annotations, key: str) -> str:
    value = str(annotations.get(key, ""))
    return "" if value.strip().lower() in REFUSALS else value


def _reason(wish: _Wish) -> str:
    return f"the node annotation {wish.key}={wish.value[:LONGEST_VALUE]} is set"
