"""Families of thread names, and the words in them that promise a behaviour."""

import re

_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def name_family(name: str, number: str = "#") -> str:
    """Return *name* with each number replaced: ``worker-12`` and ``worker-3`` are ``worker-#``."""
    return _NUMBER.sub(number, name)


def name_words(name: str) -> frozenset[str]:
    """Return the words of a name in lower case: ``ioPoll-3`` has ``io`` and ``poll``."""
    return frozenset(word.lower() for word in _WORD.findall(name))
