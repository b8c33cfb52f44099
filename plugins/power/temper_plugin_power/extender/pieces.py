"""Takes a large JSON text value by value, so that others may run between two values."""

import codecs
import re
from json import JSONDecodeError, JSONDecoder
from typing import Any

from temper_core import InputError
from temper_serving.values import MOST_VALUES, values_in

MOST_PIECE = 4 * 1024 * 1024
"""Characters of one value. Objects of Kubernetes have at most 3 MiB."""
CHUNK_BYTES = 256 * 1024
"""A chunk more of the text is taken as long as a value is not complete. So a value of too many is
found after as many and a chunk."""
MOST_WHITE_CHUNKS = 8
TOO_LONG = (
    f"the body is not JSON, or a value is too long: at most {MOST_PIECE} characters "
    f"and {MOST_VALUES} values"
)
_WHITE = re.compile(r"[ \t\r\n]*")


class PiecedText:
    """The JSON text of *body*. Only a part of it is decoded at a time.

    Everything raises InputError for text that is no JSON, a value of more than ``MOST_PIECE`` or
    ``MOST_VALUES``, or white space of ``MOST_WHITE_CHUNKS``. Bytes that
    are not UTF-8 become U+FFFD.
    """

    def __init__(self, body: bytes) -> None:
        self._body = memoryview(body)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._parse = JSONDecoder().raw_decode
        self._held, self._at = "", 0

    def next(self) -> str:
        """Return the next character that is no white space, empty at the end."""
        for _ in range(MOST_WHITE_CHUNKS):
            white = _WHITE.match(self._held, self._at)
            self._at = white.end() if white else self._at
            if self._at < len(self._held) or not self._body:
                return self._held[self._at : self._at + 1]
            self._take_chunk()
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
        while True:
            value, end = self._parsed()
            # A number at the end may go on.
            if end is not None and (end < len(self._held) or not self._body):
                self._at = end
                return value
            if not self._may_be_longer():
                raise InputError(TOO_LONG)
            self._take_chunk()

    def _parsed(self) -> tuple[Any, int | None]:
        """Return the value that follows, and where it ends. None if it is not complete."""
        try:
            return self._parse(self._held, self._at)
        except JSONDecodeError:
            return None, None
        except (RecursionError, ValueError) as error:
            raise InputError("the body has a value that is nested too deep, or too long") from error

    def _may_be_longer(self) -> bool:
        """Return whether there is more of the value that follows, within the bounds."""
        if not self._body or len(self._held) - self._at > MOST_PIECE:
            return False
        return values_in(self._held[self._at :]) <= MOST_VALUES

    def _take_chunk(self) -> None:
        chunk, self._body = self._body[:CHUNK_BYTES], self._body[CHUNK_BYTES:]
        more = self._decoder.decode(chunk, final=not self._body)
        self._held, self._at = self._held[self._at :] + more, 0
