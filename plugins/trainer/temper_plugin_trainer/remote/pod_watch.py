"""Looks at the pods of a training in the API server, for the annotation that aborts it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from temper_core import InputError, MachineError
from temper_core.observed import rows, table, text
from temper_kube.kubectl import Kubectl
from temper_plugin_trainer.remote.canary import Canary, Object

ABORT = "temper.codes/abort-training"
MEANS_NO = ("", "0", "false", "no", "off")
LOOK_EVERY_S = 2.0
UNSEEN_S = 20.0
"""Seconds without an answer of the API server, after which an abort could be missed."""
REQUEST_S = 10


class PodWatch:
    """Knows why a training has to end.

    ``look`` asks once. Within ``looking`` a thread asks again and again.
    """

    def __init__(self, kubectl: Kubectl, canary: Canary) -> None:
        self._kubectl, self._canary = kubectl, canary
        self._reason = ""
        self._seen_at = time.monotonic()
        self._is_over = threading.Event()

    def reason(self) -> str:
        """Return why the training has to end. Empty while it may go on."""
        return self._reason

    def look(self) -> str:
        """Ask once. Return why the training has to end, empty if it may go on.

        Raises MachineError if the API server does not answer.
        """
        names = list(self._canary.uids)
        words = (f"--namespace={self._canary.namespace}", f"--request-timeout={REQUEST_S}s")
        try:
            found = self._kubectl.read(*words, "--", "pods", *names)
        except InputError as error:
            return f"a pod is gone: {error}"
        self._seen_at = time.monotonic()
        pods = rows(found if len(names) > 1 else {"items": [found]}, "items")
        return next(filter(None, map(self._judged, pods)), "")

    @contextmanager
    def looking(self, looked: Callable[[], None]) -> Iterator[None]:
        """Look every two seconds. *looked* is called after each look, in the same thread."""
        self._seen_at = time.monotonic()
        thread = threading.Thread(target=self._run, args=(looked,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    def _run(self, looked: Callable[[], None]) -> None:
        while not self._is_over.wait(LOOK_EVERY_S):
            try:
                self._reason = self._reason or self.look()
            except MachineError as error:
                if time.monotonic() > self._seen_at + UNSEEN_S:
                    self._reason = f"ended, as the annotation {ABORT} cannot be read: {error}"
            looked()

    def _judged(self, pod: Object) -> str:
        metadata = table(pod, "metadata")
        name = text(metadata, "name")
        full = f"{self._canary.namespace}/{name}"
        if text(metadata, "uid") != self._canary.uids.get(name):
            return f"the pod {full} was replaced"
        value = text(table(metadata, "annotations"), ABORT)
        if value.lower() not in MEANS_NO:
            return f"aborted by the annotation {ABORT} of {full}"
        return ""
