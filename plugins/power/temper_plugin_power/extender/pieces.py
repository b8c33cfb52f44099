"""Takes a large JSON text value by value, so that others may run between two values."""

import codecs
import re
from json import JSONDecodeError, JSONDecoder
from typing import Any

from temper_core import InputError

MOST_PIECE = 4 * 1024 * 1024
"""Characters of one value. Objects of Kubernetes have at most 3 MiB. It is parsed in some 40 ms."""
CHUNK_BYTES = 2 * MOST_PIECE
MOST_WHITE_CHUNKS = 2
_WHITE = re.compile(r"[ \t\r\n]*")


class PiecedText:
    """The JSON text of *body*. Only a part of it is decoded at a time.

    Everything raises InputError for text that is no JSON, a value longer than ``MOST_PIECE``, or
    white space longer than two chunks. Bytes that are not UTF-8 become U+FFFD.
    """

    def __init__(self, body: bytes) -> None:
        self._body = memoryview(body)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._parse = JSONDecoder().raw_decode
        self._held, self._at = "", 0

    def next(self) -> str:
        """Return the next character that is no white space, empty at the end."""
        for _ in range(MOST_WHITE_CHUNKS):
            self._fill()
            white = _WHITE.match(self._held, self._at)
            self._at = white.end() if white else self._at
            if self._at < len(self._held) or not self._body:
                return self._held[self._at : self._at + 1]
        raise InputError("the body is not JSON: it has too much white space")

    def takes(self, character: str) -> bool:
        """Take *character* if it is the next one."""
        if self.next() != character:
            return False
        self._at += 1
        return True

    def take(self, character: str) -> None:
        """Take *character*."""
        if not self.takes(character):
            raise InputError(f"the body is not JSON: {character!r} is missing")

    def key(self) -> str:
        """Take a key with its colon."""
        key = self.value()
        if not isinstance(key, str):
            raise InputError("the body is not JSON: a key is no string")
        self.take(":")
        return key

    def value(self) -> Any:  # noqa: ANN401 - any JSON
        """Take the next value."""
        self.next()
        self._fill()
        try:
            value, self._at = self._parse(self._held, self._at)
        except JSONDecodeError as error:
            raise InputError(
                f"the body is not JSON, or a value is too long: {error.msg}"
            ) from error
        except (RecursionError, ValueError) as error:
            raise InputError("the body has a value that is nested too deep, or too long") from error
        return value

    def _fill(self) -> None:
        """Hold the longest value that is allowed, as far as the body has it."""
        while self._body and len(self._held) - self._at < MOST_PIECE:
            chunk, self._body = self._body[:CHUNK_BYTES], self._body[CHUNK_BYTES:]
            more = self._decoder.decode(chunk, final=not self._body)
            self._held, self._at = self._held[self._at :] + more, 0
