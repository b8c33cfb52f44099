"""Sessions that the token has opened. They are kept in memory, and end with the server."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from attrs import define, evolve, field, frozen

from temper_core import InputError, read_text

IDLE_S = 30 * 60.0
"""After the last request."""
LONGEST_S = 8 * 3600.0
"""After the login."""
MOST = 256
"""With more, the one that has been idle longest ends."""
NAME_BYTES = 64
"""Its browser keeps the name as two halves, each of which is as good as a secret of its own."""
SHORTEST_TOKEN, LONGEST_TOKEN = 16, 4096


@frozen
class TokenFile:
    """A file with one token, such as a mounted Secret has. It is read for each use."""

    path: Path

    def digest(self) -> bytes:
        """Return the SHA-256 of the token. Raises InputError if there is none to use."""
        token = read_text(self.path, largest_bytes=LONGEST_TOKEN).strip()
        if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
            raise InputError(
                f"{self.path}: must hold one token of at least {SHORTEST_TOKEN} printable "
                "characters"
            )
        return digest_of(token)


def digest_of(token: str) -> bytes:
    """Return the SHA-256 of *token*. Digests have one length, whatever the token's."""
    return hashlib.sha256(token.encode(errors="replace")).digest()


@frozen
class _Session:
    began: float
    used: float
    token: bytes = field(repr=False)


@define
class Sessions:
    """The open sessions, by the SHA-256 of their secret names. A new token ends all of them."""

    tokens: TokenFile
    clock: Callable[[], float] = time.monotonic
    _open: dict[bytes, _Session] = field(factory=dict, init=False, repr=False)

    def begin(self, token: str) -> str | None:
        """Return the secret name of a new session, None for a wrong *token*.

        The comparison takes the same time for each wrong token. Raises InputError if the server has
        no token.
        """
        expected = self.tokens.digest()
        if not hmac.compare_digest(digest_of(token), expected):
            return None
        name, now = secrets.token_urlsafe(NAME_BYTES), self.clock()
        if len(self._open) >= MOST:
            del self._open[min(self._open, key=lambda each: self._open[each].used)]
        self._open[digest_of(name)] = _Session(now, now, expected)
        return name

    def is_open(self, name: str) -> bool:
        """Whether a session is open. It counts as used now."""
        key, now = digest_of(name), self.clock()
        session = self._open.get(key)
        if session is None:
            return False
        is_late = now - session.used > IDLE_S or now - session.began > LONGEST_S
        if is_late or not self._is_current(session):
            del self._open[key]
            return False
        self._open[key] = evolve(session, used=now)
        return True

    def end(self, name: str) -> bool:
        """End a session. Return whether it was open."""
        return self._open.pop(digest_of(name), None) is not None

    def _is_current(self, session: _Session) -> bool:
        try:
            return hmac.compare_digest(session.token, self.tokens.digest())
        except InputError:
            return False
