"""Reports the agent's state to systemd, by the protocol of sd_notify(3)."""

import os
import socket
from contextlib import suppress


class SystemdNotifier:
    """The socket of systemd. Without ``NOTIFY_SOCKET`` in the environment every call does nothing.

    The variable is removed, so that neither the engine nor a helper process reports in its place.
    """

    def __init__(self) -> None:
        self._address = os.environ.pop("NOTIFY_SOCKET", "")

    def ready(self) -> None:
        """Report that the agent serves."""
        self._send("READY=1")

    def alive(self) -> None:
        """Report a turn of the loop, for ``WatchdogSec``."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """Report that the agent ends in order."""
        self._send("STOPPING=1")

    def _send(self, state: str) -> None:
        if not self._address.startswith(("/", "@")):
            return
        # "@" stands for the null byte of an abstract name, see unix(7).
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, suppress(OSError):
            manager.setblocking(False)
            manager.sendto(state.encode(), address)
