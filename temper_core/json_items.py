"""Parses the list of a JSON document item by item as its bytes come, to save memory.

A list of 500 pods is 7 MB of text, and four times that when parsed. A single pod is 15 kB.
"""

import codecs
from collections.abc import Callable, Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any

from temper_core.tenant_json import cut_deep_values, parse_cut_value

CHUNK_BYTES = 64 * 1024
_WHITE = " \t\r\n"
_AFTER_VALUES = frozenset(",:]}" + _WHITE)

Read = Callable[[int], bytes]
"""Returns at most that many bytes, none at the end, as a file's ``read`` does."""


class JsonItems:
    """The values of the list ``items`` in the JSON object that *read* returns. Iterate once.

    ``rest`` holds the other keys, and is complete after the last item. If ``items`` is no list, it
    is in ``rest`` and ``has_list`` stays false. Iterating raises ValueError for text that is no
    JSON object, has ``items`` twice, is longer than *most_bytes* or has an item longer than
    *most_item_bytes*, and the errors of *read*. A value nested too deep becomes null
    (``tenant_json``). Bytes that are not UTF-8 raise ValueError, or become U+FFFD if *errors* is
    ``replace``.
    """

    def __init__(
        self,
        read: Read,
        most_bytes: int,
        most_item_bytes: int | None = None,
        errors: str = "strict",
    ) -> None:
        self.rest: dict[str, Any] = {}
        decoder = codecs.getincrementaldecoder("utf-8")(errors)
        self._text = _ComingText(read, decoder, most_bytes, most_item_bytes or most_bytes)
        self.has_list = False

    def __iter__(self) -> Iterator[Any]:
        """Yield each item as soon as its text is complete."""
        self._text.take("{")
        if not self._text.takes("}"):
            yield from self._member()
            while not self._text.takes("}"):
                self._text.take(",")
                yield from self._member()
        if self._text.next():
            raise ValueError("text follows the JSON object")

    def _member(self) -> Iterator[Any]:
        key = self._text.value()
        if not isinstance(key, str):
            raise ValueError("a key of the JSON object is no string")  # noqa: TRY004 - as for all JSON
        self._text.take(":")
        if key != "items" or self._text.next() != "[":
            self.rest[key] = self._text.value()
            return
        if self.has_list:
            raise ValueError("the key 'items' occurs twice")
        self.has_list = True
        yield from self._items()

    def _items(self) -> Iterator[Any]:
        self._text.take("[")
        if self._text.takes("]"):
            return
        yield self._text.value()
        while not self._text.takes("]"):
            self._text.take(",")
            yield self._text.value()


class _ComingText:
    """A JSON text that is read in pieces. Only the part that is not taken yet is held."""

    def __init__(
        self,
        read: Read,
        decoder: codecs.IncrementalDecoder,
        most_bytes: int,
        most_value_bytes: int,
    ) -> None:
        self._read = read
        self._bytes_left = most_bytes
        self._most_value_bytes = most_value_bytes
        self._decoder = decoder
        self._parse = JSONDecoder().raw_decode
        self._held = ""
        self._at = 0
        self._has_ended = False

    def next(self) -> str:
        """Return the next character that is no white space, empty at the end."""
        while True:
            for at in range(self._at, len(self._held)):
                if self._held[at] not in _WHITE:
                    self._at = at
                    return self._held[at]
            self._at = len(self._held)
            if not self._come(CHUNK_BYTES):
                return ""

    def takes(self, character: str) -> bool:
        """Take *character* if it is the next one."""
        if self.next() != character:
            return False
        self._at += 1
        return True

    def take(self, character: str) -> None:
        """Take *character*. Raise ValueError if the next one is another."""
        if not self.takes(character):
            raise ValueError(f"{character!r} is missing in the JSON object")

    def value(self) -> Any:  # noqa: ANN401 - any JSON
        """Take the next value as soon as it is complete."""
        self.next()
        more = CHUNK_BYTES
        while True:
            try:
                value, end = self._parsed()
            except JSONDecodeError:
                self._check_size(len(self._held))
                if not self._come(more):
                    raise
            else:
                self._check_size(end)
                # The first part of a cut number may be a number already: 1 of 1.5.
                if self._held[end : end + 1] in _AFTER_VALUES or not self._come(more):
                    self._at = end
                    return value
            # The size doubles, so that text that is no JSON is tried again only a few times.
            more *= 2

    def _parsed(self) -> tuple[Any, int]:
        try:
            return self._parse(self._held, self._at)
        except JSONDecodeError:
            raise
        except (RecursionError, ValueError):
            cut = cut_deep_values(self._held, self._at)
        if cut is None:
            raise JSONDecodeError("a value is not complete", self._held, self._at)
        text, end = cut
        return parse_cut_value(text), end

    def _check_size(self, end: int) -> None:
        if end - self._at > self._most_value_bytes:
            raise ValueError("an item of the JSON object is too large")

    def _come(self, size: int) -> bool:
        """Read and hold *size* more bytes of the text. Return False at its end."""
        chunk = b"" if self._has_ended else self._read(size)
        self._bytes_left -= len(chunk)
        if self._bytes_left < 0:
            raise ValueError("the JSON object is too large")
        if not chunk:
            self._has_ended = True
            self._decoder.decode(b"", final=True)
            return False
        self._held, self._at = self._held[self._at :] + self._decoder.decode(chunk), 0
        return True
