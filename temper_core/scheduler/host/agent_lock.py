"""One agent per node: a lock in the runtime directory, held for the agent's life.

Two agents would each take the other's engine for a foreign scheduler, at best. The lock is the
kernel's (flock), so that an agent that is killed holds nothing; the file that it leaves is only a
note.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog

from temper_core.errors import MachineError
from temper_core.scheduler.host.roots import Roots, read_line

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

LOCK_FILE = "agent.lock"
ATTEMPTS = 10


class AnotherAgentError(MachineError):
    """Another agent runs on this node."""


@contextmanager
def agent_lock(run: Path | None = None) -> Iterator[bool]:
    """Hold the node's lock in the directory *run*; yield whether there could be one.

    Raises AnotherAgentError where another agent holds it. Where the directory cannot be written, no
    engine can be started either (preflight says so): such an agent only observes, and goes without.
    The file and the directory, if this made it, are removed at the end.
    """
    run = run or Roots().run
    path = run / LOCK_FILE
    had_directory = run.exists()
    try:
        descriptor = _locked(path)
    except AnotherAgentError:
        raise
    except OSError as error:
        log.warning("agent_lock_not_taken", file=str(path), problem=error.strerror)
        yield False
        return
    try:
        yield True
    finally:
        # While it is held, so that nobody can lock the file that is about to go.
        with suppress(OSError):  # it has gone, or the file system is read-only by now
            path.unlink()
        os.close(descriptor)
        if not had_directory:
            with suppress(OSError):  # something else lives there now
                run.rmdir()


def _locked(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for _ in range(ATTEMPTS):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            break
        if _is_at(path, descriptor):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
            return descriptor
        os.close(descriptor)  # its holder removed it between the two calls
    raise AnotherAgentError(
        f"another agent runs on this node ({_holder(path)}holds {path}); "
        "`temper observe` asks it, and stopping it makes room for this one"
    )


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _holder(path: Path) -> str:
    noted = read_line(path, limit=32) or ""
    return f"process {noted} " if noted.isdigit() else ""
