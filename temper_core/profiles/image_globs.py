"""Match an image reference, in each of its spellings, with the globs of profiles."""

import re
from collections.abc import Iterator
from fnmatch import translate
from functools import lru_cache

from temper_core.records.profiles import needs_expression

MOST_GLOBS = 1_024
"""Globs of all profiles. Each takes up to 10 us of the agent's loop for a new image."""
MOST_EXPRESSIONS = 32
"""Those among them that need a regular expression, which takes up to 200 us."""
IMPLIED_PREFIXES = ("docker.io/", "library/")


@lru_cache(maxsize=4096)
def takes_image(globs: tuple[str, ...], image: str) -> bool:
    """Whether one of *globs* matches *image*, in one of its spellings."""
    if not globs or not image:
        return False
    plain, with_digest = (tuple(dict.fromkeys(each(image))) for each in (_spellings, _with_digest))
    return any(
        _fits(glob, spelling)
        for glob in globs
        for spelling in (with_digest if "@" in glob else plain)
    )


def _fits(glob: str, text: str) -> bool:
    """Whether *glob* matches *text*, by searches, which take time in proportion to the text."""
    if needs_expression(glob):
        return _expression(glob).fullmatch(text) is not None
    first, *parts = glob.split("*")
    if not parts:
        return text == glob
    *middle, last = parts
    if not (text.startswith(first) and text.endswith(last)):
        return False
    at = len(first)
    for part in middle:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return at + len(last) <= len(text)


@lru_cache(maxsize=MOST_EXPRESSIONS)
def _expression(glob: str) -> "re.Pattern[str]":
    return re.compile(translate(glob))


def _spellings(image: str) -> Iterator[str]:
    """Yield the reference without its digest, in each of its spellings."""
    reference, _, digest = image.partition("@")
    for spelling in _names(reference):
        yield spelling
        if ":" not in spelling.rpartition("/")[2]:
            # An absent tag means latest. With a digest it means any, so a glob with a tag matches.
            yield f"{spelling}:" if digest else f"{spelling}:latest"


def _with_digest(image: str) -> Iterator[str]:
    """Yield the reference with its digest, with and without the tag. Nothing without a digest."""
    reference, at, digest = image.partition("@")
    if not at:
        return
    folder, slash, last = reference.rpartition("/")
    untagged = f"{folder}{slash}{last.partition(':')[0]}"
    for tagged in dict.fromkeys((reference, untagged)):
        yield from (f"{spelling}@{digest}" for spelling in _names(tagged))


def _names(reference: str) -> Iterator[str]:
    """Yield *reference* as written, without the implied prefixes, and with all of them."""
    yield reference
    registry, library = IMPLIED_PREFIXES
    short = reference.removeprefix(registry).removeprefix(library)
    yield short
    host, slash, _ = short.partition("/")
    is_elsewhere = bool(slash) and (host == "localhost" or not {".", ":"}.isdisjoint(host))
    if not is_elsewhere:
        yield f"{registry}{short}" if slash else f"{registry}{library}{short}"
