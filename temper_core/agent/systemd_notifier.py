"""Reports the agent's state to systemd, by the protocol of sd_notify(3)."""

import os
import socket
import struct
import time

WAIT_S = 0.1
"""The longest wait for a place in the queue of the socket. Every user of the host may write to it,
and keep it full. A report that waits gets its turn, and one that does not finds no place."""
REST_S = 1.0
"""The least time after a failed report, so that the loop goes on beside a manager that hangs."""
_TIMEVAL = struct.Struct("@ll")


class SystemdNotifier:
    """The socket of systemd. Without ``NOTIFY_SOCKET`` in the environment every call does nothing.

    The variable is removed, so that neither the engine nor a helper process reports in its place.
    The own socket is open from the start, since there may be no descriptor for it later.
    """

    def __init__(self) -> None:
        address = os.environ.pop("NOTIFY_SOCKET", "")
        self._address = ""
        self._is_ready_due = False
        self._rests_until = float("-inf")
        if not address.startswith(("/", "@")):
            return
        # "@" stands for the null byte of an abstract name, see unix(7).
        self._address = "\0" + address[1:] if address[0] == "@" else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        wait = _TIMEVAL.pack(int(WAIT_S), int(WAIT_S % 1 * 1e6))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, wait)

    def ready(self) -> None:
        """Report that the agent serves. A report that fails is repeated by ``alive``."""
        self._is_ready_due = not self._send("READY=1")

    def alive(self) -> None:
        """Report a turn of the loop, for ``WatchdogSec``."""
        if time.monotonic() < self._rests_until:
            return
        is_sent = self._send("READY=1\nWATCHDOG=1" if self._is_ready_due else "WATCHDOG=1")
        self._is_ready_due = self._is_ready_due and not is_sent
        self._rests_until = float("-inf") if is_sent else time.monotonic() + REST_S

    def stopping(self) -> None:
        """Report that the agent ends in order."""
        self._send("STOPPING=1")

    def close(self) -> None:
        """Close the own socket. Nothing is reported after that."""
        if self._address:
            self._address = ""
            self._socket.close()

    def _send(self, state: str) -> bool:
        """Send a report. Return whether it was sent, also if nobody is to be told."""
        if not self._address:
            return True
        try:
            self._socket.sendto(state.encode(), self._address)
        except OSError:
            return False
        return True
