"""Requests to the agent in the node's annotations: safe mode, or restoring of the host.

``temper.codes/safe-mode-requested`` is the kill switch. ``temper.codes/restore-requested`` requests
safe mode and restoring of the host. ``temper.codes/restored`` is the answer, with the time. While
the request stands, a starting agent obeys it at once and writes nothing on the host.

A request is one of a Node object. That object may be deleted and registered anew, by a cloud or a
kubelet, without anybody's wish to withdraw the request: it stands until the new one has the key.
``temper.codes/agent-former-requests`` has the keys of such requests.
"""

import re
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial

import structlog
from attrs import evolve, frozen

from temper_core import InstrumentContext, Restored
from temper_plugin_kubernetes.annotations import (
    ANSWERS,
    FORMER,
    LEFT,
    LONGEST_MESSAGE,
    RESTORED,
    Annotations,
    Patch,
)
from temper_plugin_kubernetes.node import NodeState

KILL_SWITCH = "temper.codes/safe-mode-requested"
RESTORE = "temper.codes/restore-requested"
UNINSTALL = "uninstall"
"""The value of a request before the agent's removal: once the host is restored, the agent writes
nothing more to the cluster, and stays in safe mode although the annotation is removed."""
REFUSALS = ("", "false", "no", "off", "0")
"""Values that count as no request. Every other value counts as one, to be safe."""
LONGEST_VALUE = 100
_REASON = re.compile(
    r"the node annotation (?P<key>[^=]+)=(?P<value>.*) (?:is|was) set.* \(Node (?P<uid>[^()\s]+)\)",
    re.DOTALL,
)

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class _Annotation:
    """A key and its value, and the uid of the Node object that has it. Empty without a request.

    With *is_former* another Node object has taken the place of that one.
    """

    key: str = ""
    value: str = ""
    uid: str = ""
    is_former: bool = False

    @property
    def reason(self) -> str:
        """The request's reason. The kept one of an agent before is read by ``_of_reason``."""
        asked = f"{self.key}={self.value[:LONGEST_VALUE]}"
        node = f" (Node {self.uid})" if self.uid else ""
        if self.is_former:
            return (
                f"the node annotation {asked} was set on a former Node object; "
                f"annotate this one with {self.key}=false to withdraw it{node}"
            )
        return f"the node annotation {asked} is set{node}"

    def outlasts(self, node: NodeState) -> bool:
        """Whether *node* is another object, which does not mention the request."""
        is_other = bool(self.uid and node.uid) and self.uid != node.uid
        return is_other and self.key not in node.annotations


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
        self._asked: dict[str, _Annotation] | None = None
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

    def obey(self, node: NodeState) -> None:
        """Apply the request in the annotations of *node*, if it has changed."""
        if self._asked is None:
            self._asked = _of_reason(self._context.safe_mode_reason())
        self._asked = _requests(node, self._asked)
        annotation = next(iter(self._asked.values()), _Annotation())
        if annotation == self._obeyed or self._is_leaving:
            return
        self._obeyed = annotation
        with self._lock:
            self._done = {}  # the same request again needs another answer
        if annotation.key == RESTORE:
            self._is_leaving = annotation.value == UNINSTALL
            log.warning("restore_requested", value=annotation.value[:LONGEST_VALUE])
            self._context.restore(annotation.reason, partial(self._note, annotation))
        elif annotation.key:
            self._context.request_safe_mode(annotation.reason)
        else:
            self._context.release_safe_mode()

    def answer(self, present: Annotations) -> Patch:
        """Return the patch of *present*: the time of restoring, the leftovers, and former requests.

        Without a request an existing answer is removed.
        """
        with self._lock:
            done = self._done.get(_asked(present, RESTORE), {})
        target = dict.fromkeys(ANSWERS) | done | {FORMER: self._former_keys() or None}
        return {key: value for key, value in target.items() if present.get(key) != value}

    def _former_keys(self) -> str:
        """Return the keys of the requests of a former Node object that can be withdrawn."""
        asked = {} if self._is_leaving else self._asked or {}
        return ",".join(key for key, annotation in asked.items() if annotation.is_former)

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


def _requests(node: NodeState, before: Mapping[str, _Annotation]) -> dict[str, _Annotation]:
    """Return the requests by their keys. The first one is in force."""
    requests = {}
    for key in (RESTORE, KILL_SWITCH):
        if value := _asked(node.annotations, key):
            requests[key] = _Annotation(key, value, node.uid)
        elif (former := before.get(key)) and former.outlasts(node):
            requests[key] = evolve(former, is_former=True)
    return requests


def _of_reason(reason: str) -> dict[str, _Annotation]:
    """Return the request with this *reason*. Empty if that names no Node object."""
    matched = _REASON.fullmatch(reason)
    if matched is None or matched["key"] not in (RESTORE, KILL_SWITCH):
        return {}
    key = matched["key"]
    return {key: _Annotation(key, matched["value"], matched["uid"])}


def _asked(annotations: Annotations, key: str) -> str:
    value = str(annotations.get(key, ""))
    return "" if value.strip().lower() in REFUSALS else value
