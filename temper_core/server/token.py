"""The bearer token that acting over TCP needs: a file, read again whenever it changes."""

import hmac
import stat
from pathlib import Path

import structlog
from attrs import define, field

from temper_core.errors import MachineError

LARGEST_TOKEN_BYTES = 4096
SHORTEST_TOKEN = 16

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@define
class Token:
    """The secret in a file; never logged, never shown."""

    path: Path | None
    _secret: bytes = field(default=b"", init=False, repr=False)
    _stamp: tuple[int, int, int] | None = field(default=None, init=False)

    def is_given_by(self, authorization: str) -> bool:
        """Whether an Authorization header carries the token; raise MachineError without one."""
        secret = self.secret()
        scheme, _, given = authorization.partition(" ")
        encoded = given.strip().encode("utf-8", "surrogateescape")
        return hmac.compare_digest(encoded, secret) and scheme.lower() == "bearer"

    def secret(self) -> bytes:
        """Return the token as the file has it now; raise MachineError where it has none."""
        if self.path is None:
            raise MachineError("no [server] token_file is set")
        try:
            found = self.path.stat()
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                self._secret = _read_secret(self.path, found.st_mode)
                self._stamp = stamp
        except OSError as error:
            reason = error.strerror or str(error)
            raise MachineError(f"the token file {self.path}: {reason}") from error
        return self._secret


def _read_secret(path: Path, mode: int) -> bytes:
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        log.warning("token_file_readable_by_others", path=str(path), mode=oct(stat.S_IMODE(mode)))
    with path.open("rb") as file:
        secret = file.read(LARGEST_TOKEN_BYTES + 1).strip()
    if not SHORTEST_TOKEN <= len(secret) <= LARGEST_TOKEN_BYTES:
        raise MachineError(
            f"the token file {path}: must hold {SHORTEST_TOKEN} to {LARGEST_TOKEN_BYTES} "
            "characters, such as 'openssl rand -hex 32' makes"
        )
    return secret
