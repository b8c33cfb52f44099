"""The pods of the kubelet's read-only port, requested at most every ASK_EVERY_S."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import structlog

from temper_core import InputError, listener_owners
from temper_kube.access import Access, is_loopback
from temper_kube.connection import Connection
from temper_kube.failures import RefusalError, UnreachableError
from temper_plugin_kubernetes.accounts import Account
from temper_plugin_kubernetes.listing import Listed, Listing

READ_ONLY_PORT = 10255
ASK_EVERY_S = 10.0
ANSWER_S = 2.0
ROOT = 0

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class KubeletView:
    """Reads ``/pods`` of the read-only port, which few clusters still open.

    Any user may listen on such a port while the kubelet does not, and would choose the tiers of the
    node's pods. So a listener of this network namespace is asked only if it is root's or of this
    process's own user. ``distrust`` is why it is not asked, empty if it is.

    Raises InputError for a *url* that is not plain HTTP.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise InputError(
                "[plugins.kubernetes] kubelet: must be a URL such as "
                f"'http://127.0.0.1:{READ_ONLY_PORT}', not {url!r}"
            )
        self._access = Access(parts.hostname, parts.port or READ_ONLY_PORT, is_tls=False)
        self._listing = Listing(Account())
        self._clock = clock
        self._due = 0.0
        self.has_answered = False
        self.distrust = ""

    def look(self) -> Listed:
        """Return the pods of the kubelet's last answer. None before the first one."""
        if self._clock() >= self._due:
            self._due = self._clock() + ASK_EVERY_S
            self._ask()
        return self._listing.now()

    def _ask(self) -> None:
        distrust = _distrust(self._access)
        if distrust and distrust != self.distrust:
            log.warning("kubelet_not_asked", reason=distrust)
        self.distrust = distrust
        if distrust:
            return
        try:
            with (
                Connection(self._access, ANSWER_S) as connection,
                _aborted_after(ANSWER_S, connection),
            ):
                self._listing.replaced(connection.items("/pods", {}))
        except (UnreachableError, RefusalError):
            return
        self.has_answered = True


def _distrust(access: Access) -> str:
    """Return why the listener is not believed, empty if it is."""
    try:
        owners = listener_owners(access.port, access.host)
    except OSError as error:
        return f"the listeners of this node are not known: {error.strerror}"
    if others := sorted(owners - {ROOT, os.geteuid()}):
        return f"user {others[0]} listens on port {access.port}, who is not root"
    if not owners and is_loopback(access.host):
        return f"nothing of this network namespace listens on port {access.port}"
    return ""


@contextmanager
def _aborted_after(seconds: float, connection: Connection) -> Iterator[None]:
    """Bound the whole answer: any process may listen on the port, and send a byte now and then."""
    timer = threading.Timer(seconds, connection.abort)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
