"""The server's sockets. They are bound before it starts, so that a failure is a one-line error."""

import socket
import stat
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from temper_core.directory_tree import make_directories
from temper_core.errors import MachineError
from temper_core.forked_children import close_in_children
from temper_core.http.address import Address
from temper_core.http.listener import listen_on
from temper_core.settings.models import OF_ITS_OWN

BACKLOG = 128
ANSWER_TIMEOUT_S = 1.0


@frozen
class LocalSocket:
    """A bound Unix socket, and the file that the server has to remove."""

    socket: socket.socket
    path: Path
    inode: int
    made_directory: bool = False

    def remove(self) -> None:
        """Remove the socket's file, unless another process has replaced it.

        Its directory is removed too if it was made for the socket and is empty.
        """
        try:
            if self.path.lstat().st_ino == self.inode:
                self.path.unlink()
        except FileNotFoundError:
            return
        if self.made_directory:
            with suppress(OSError):
                self.path.parent.rmdir()


def bind_tcp(address: Address) -> socket.socket:
    """Listen on *address*. Raise MachineError with the remedy on failure."""
    return listen_on(
        address, "[server] listen", rivals="an agent, or node_exporter, whose port this is too"
    )


def bind_local(path: Path) -> LocalSocket:
    """Listen on the Unix socket *path*, for its owner only.

    A stale socket, on which no process answers, is replaced. Raises MachineError if an agent
    answers or another kind of file is there, OSError if the socket cannot be made.
    """
    made_directory = not path.parent.exists()
    make_directories(path.parent, 0o700)
    _clear(path)
    bound = close_in_children(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    try:
        bound.bind(str(path))
        # No client can connect before listen(), so the file is never open to other users.
        path.chmod(0o600)
        bound.listen(BACKLOG)
        return LocalSocket(bound, path, path.lstat().st_ino, made_directory)
    except OSError:
        bound.close()
        raise


def _clear(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise MachineError(f"{path} is not a socket; remove it, or set [server] socket")
    if _is_answered(path):
        raise MachineError(
            f"another agent answers on {path}; stop it, or start this one with {OF_ITS_OWN}"
        )
    path.unlink(missing_ok=True)


def _is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(ANSWER_TIMEOUT_S)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except TimeoutError:
            return True
        return True
