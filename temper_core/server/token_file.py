"""The file of bearer tokens: a single token, or one line ``name: token`` per token."""

import os
import re
import stat
from pathlib import Path

from attrs import field, frozen

from temper_core.errors import MachineError

LARGEST_TOKEN_BYTES = 4096
SHORTEST_TOKEN = 16
LARGEST_FILE_BYTES = 64 * 1024
_NAMED = re.compile(rb"([A-Za-z0-9._@-]{1,64}):[ \t]+(\S+)[ \t]*")


@frozen
class NamedToken:
    """A token. ``name`` is empty if the file holds a single token."""

    name: str
    secret: bytes = field(repr=False)


def read_tokens(path: Path) -> tuple[NamedToken, ...]:
    """Read the tokens of a file. Raise OSError, or MachineError if a token is not usable.

    No message contains any part of a token.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise MachineError(f"the token file {path}: is not a regular file")
        content = file.read(LARGEST_FILE_BYTES + 1)
    if len(content) > LARGEST_FILE_BYTES:
        raise MachineError(f"the token file {path}: is larger than {LARGEST_FILE_BYTES} bytes")
    lines = [line for line in map(bytes.strip, content.splitlines()) if line[:1] not in (b"", b"#")]
    named = [_NAMED.fullmatch(line) for line in lines]
    if not any(named):
        return (NamedToken("", _usable(_only(lines, path), f"the token file {path}")),)
    return tuple(_token(path, line) for line in named)


def _only(lines: list[bytes], path: Path) -> bytes:
    if len(lines) > 1:
        raise MachineError(
            f"the token file {path}: has {len(lines)} lines, and none of them is 'name: token'"
        )
    return b"".join(lines)


def _without_waiting(path: str, flags: int) -> int:
    """Open a file. A pipe without a writer does not block."""
    return os.open(path, flags | os.O_NONBLOCK)


def _token(path: Path, line: "re.Match[bytes] | None") -> NamedToken:
    if line is None:
        raise MachineError(
            f"the token file {path}: some of its lines are 'name: token', so all of them must be"
        )
    name = line[1].decode("ascii")
    return NamedToken(name, _usable(line[2], f"the token file {path}, token {name!r}"))


def _usable(secret: bytes, what: str) -> bytes:
    if not SHORTEST_TOKEN <= len(secret) <= LARGEST_TOKEN_BYTES:
        raise MachineError(
            f"{what}: must hold {SHORTEST_TOKEN} to {LARGEST_TOKEN_BYTES} "
            "characters, such as 'openssl rand -hex 32' makes"
        )
    return secret
