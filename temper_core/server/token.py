"""The bearer tokens that requests over TCP need to act. Their file is read again on a change."""

import stat
from pathlib import Path

from attrs import define, field

from temper_core.errors import MachineError
from temper_core.http.rate_limited_log import RateLimitedLog
from temper_core.server.token_file import NamedToken, read_tokens


@define
class Token:
    """The tokens in a file. They are never logged or shown."""

    path: Path | None
    _tokens: tuple[NamedToken, ...] = field(default=(), init=False, repr=False)
    _stamp: tuple[int, ...] | None = field(default=None, init=False)
    _warnings: RateLimitedLog = field(factory=RateLimitedLog, init=False)

    def given_by(self, authorization: str) -> NamedToken | None:
        """Return the token in an Authorization header, or None if it is not a known one.

        The comparison takes constant time. Raises MachineError if there is no usable token.
        """
        from hmac import compare_digest  # noqa: PLC0415 - 0.5 MB, and few agents are asked to act

        tokens = self.tokens()
        scheme, _, secret = authorization.partition(" ")
        encoded = secret.strip().encode("utf-8", "surrogateescape")
        same = [token for token in tokens if compare_digest(encoded, token.secret)]
        return same[0] if same and scheme.lower() == "bearer" else None

    def tokens(self) -> tuple[NamedToken, ...]:
        """Return the current tokens of the file. Raise MachineError if there is none."""
        if self.path is None:
            raise MachineError("no [server] token_file is set")
        try:
            status = self.path.stat()
            stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            if stamp != self._stamp:
                self._warn_if_open(self.path, status.st_mode)
                self._tokens = read_tokens(self.path)
                self._stamp = stamp
        except OSError as error:
            reason = error.strerror or str(error)
            raise MachineError(f"the token file {self.path}: {reason}") from error
        return self._tokens

    def _warn_if_open(self, path: Path, mode: int) -> None:
        # An unusable file is read again with each request that has a token.
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            shown = oct(stat.S_IMODE(mode))
            self._warnings.warn("token_file_readable_by_others", path=str(path), mode=shown)
