"""The bearer tokens that acting over TCP needs: a file, read again whenever it changes."""

import hmac
import stat
from pathlib import Path

import structlog
from attrs import define, field

from temper_core.errors import MachineError
from temper_core.server.token_file import NamedToken, read_tokens

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@define
class Token:
    """The tokens in a file. Never logged, never shown."""

    path: Path | None
    _tokens: tuple[NamedToken, ...] = field(default=(), init=False, repr=False)
    _stamp: tuple[int, int, int] | None = field(default=None, init=False)

    def given_by(self, authorization: str) -> NamedToken | None:
        """Return the token that an Authorization header carries, None for any other.

        Takes as long whichever it is. Raises MachineError where there is no usable token.
        """
        tokens = self.tokens()
        scheme, _, given = authorization.partition(" ")
        encoded = given.strip().encode("utf-8", "surrogateescape")
        same = [each for each in tokens if hmac.compare_digest(encoded, each.secret)]
        return same[0] if same and scheme.lower() == "bearer" else None

    def tokens(self) -> tuple[NamedToken, ...]:
        """Return the tokens as the file has them now. Raise MachineError where it has none."""
        if self.path is None:
            raise MachineError("no [server] token_file is set")
        try:
            found = self.path.stat()
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                _warn_if_open(self.path, found.st_mode)
                self._tokens = read_tokens(self.path)
                self._stamp = stamp
        except OSError as error:
            reason = error.strerror or str(error)
            raise MachineError(f"the token file {self.path}: {reason}") from error
        return self._tokens


def _warn_if_open(path: Path, mode: int) -> None:
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        log.warning("token_file_readable_by_others", path=str(path), mode=oct(stat.S_IMODE(mode)))
