"""Objects of the API server without the values that may be secrets.

An account with the right to read a pod sees its environment. Readers of the page do not.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

HIDDEN = "(hidden)"
DROPPED = frozenset({"managedFields", "kubectl.kubernetes.io/last-applied-configuration"})
"""Keys that are left out. Both repeat the object, the second with the values of its environment."""
NAMED_VALUES = frozenset({"env", "httpHeaders"})
"""Lists of ``{"name": ..., "value": ...}`` whose values are hidden."""
OPAQUE = frozenset({"volumeAttributes", "options"})
"""Tables for drivers of volumes (CSI, FlexVolume). All of their values are hidden."""
REQUEST = "httpGet"
"""A request of a probe or hook. The query of its path is hidden."""
WORDS = frozenset({"command", "args"})
NAMED = frozenset({"annotations", "labels"})
SENSITIVE = (
    r"(?:pass(?:word|wd|phrase)|pwd|secret|token|credential|authorization"
    r"|api[-_]?key|private[-_]?key)"
)
LONGEST_OPTION = 100
# Everything before a value has a bound: a pod may have words of a megabyte to search in.
_NAME = re.compile(SENSITIVE, re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"({SENSITIVE}[\w.-]{{0,20}}[\"']?\s{{0,4}}[=:]\s{{0,4}})"
    r"((?:bearer|basic)\s{1,4}\S+|\"[^\"]*\"|'[^']*'|(?:[\"']|\$\().*|\S+)",
    re.IGNORECASE | re.DOTALL,
)
_TEXT = re.compile(r"\S+")
_QUERY = re.compile(r"\?.*", re.DOTALL)
DIGEST = "sha256:"
"""Follows the ``@`` of an image, before which there is no name of a user."""


def masked(value: Any, key: str = "") -> Any:  # noqa: ANN401 - a part of a parsed document
    """Return *value*, which is below *key*, without values that may be secrets.

    Hidden are the values of environment variables and HTTP headers, the queries of HTTP requests,
    the attributes of volumes, in words and annotations the text after a name like ``password`` or
    ``token``, and users of addresses. Other secrets in words or annotations stay.
    """
    if isinstance(value, dict):
        return _table(value, key)
    if isinstance(value, list):
        return _list(value, key)
    return _TEXT.sub(_without_user, value) if isinstance(value, str) else value


def _without_user(found: re.Match[str]) -> str:
    """Return a text without the user of an address. A password may have any character."""
    scheme, sign, rest = found[0].partition("://")
    _, at, host = rest.rpartition("@")
    return f"{scheme}{sign}{HIDDEN}@{host}" if at and not host.startswith(DIGEST) else found[0]


def _table(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    if key in OPAQUE:
        return dict.fromkeys(values, HIDDEN)
    kept = {name: each for name, each in values.items() if name not in DROPPED}
    if key in NAMED:
        return {name: HIDDEN if _NAME.search(name) else _word(each) for name, each in kept.items()}
    shown = {name: masked(each, name) for name, each in kept.items()}
    if key == REQUEST and isinstance(path := shown.get("path"), str):
        shown["path"] = _QUERY.sub(f"?{HIDDEN}", path)
    return shown


def _list(values: list[Any], key: str) -> list[Any]:
    if key in WORDS:
        return _words(values)
    mask: Callable[[Any], Any] = _named_value if key in NAMED_VALUES else masked
    return [mask(each) for each in values]


def _named_value(item: Any) -> Any:  # noqa: ANN401 - a part of a parsed document
    shown = masked(item)
    if isinstance(shown, dict) and "value" in shown:
        return {**shown, "value": HIDDEN}
    return shown


def _words(words: list[Any]) -> list[Any]:
    """Return *words* of a command line. The word after an option like ``--token`` is its value."""
    before = ["", *words[:-1]]
    return [
        HIDDEN if _is_secret_option(last) else _word(word)
        for last, word in zip(before, words, strict=True)
    ]


def _word(word: Any) -> Any:  # noqa: ANN401 - a part of a parsed document
    return _ASSIGNED.sub(rf"\g<1>{HIDDEN}", masked(word)) if isinstance(word, str) else masked(word)


def _is_secret_option(word: Any) -> bool:  # noqa: ANN401 - a part of a parsed document
    """Whether the value of this option is the next word."""
    is_option = isinstance(word, str) and word.startswith("-") and "=" not in word
    return is_option and len(word) <= LONGEST_OPTION and bool(_NAME.search(word))
