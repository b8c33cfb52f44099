"""Removes paths, hosts, users and secrets from titles (command lines of processes).

A process chooses its title, so every step here takes linear time.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from temper_plugin_trainer.thread_tables import LONGEST_TITLE

HIDDEN = "***"
LONGEST_READ = 4_096

_BLANKS = re.compile(r"(\s+)")
_BREAK = re.compile(r"([=:,;\"'()\[\]{}|<>])")
_SECRET = re.compile(
    r"token|secret|pass(?!ive|enger|through)|pwd|\bpw\b|credential|(api|license|access)[-_]?key"
    r"|private|auth|bearer"
)
_GLUED_PASSWORD = re.compile(r"-p(?=.*[^0-9])(?=[^-=]*$).{2,}")
"""As ``mysql`` takes it. A number is a port of other programs."""
_SCHEMES = frozenset(("basic", "bearer"))
"""Of the header ``Authorization`` (RFC 9110, 11.4). The secret follows it."""
_USER = frozenset(("user", "username", "login", "owner"))
_GLUED = 2
"""Length of an option that is directly followed by its value: ``-I/usr/include``."""
_PARTS_OF_A_PATH = 3
"""Parts from which a word without a path's beginning is a path: ``17/main`` may be a name."""


def clean_title(title: str, host: str = "") -> str:
    """Return *title* fit to be published, with paths cut to their last part.

    These are hidden: the rest after ``scheme://``, values of options whose names mean a secret or
    a user, mail addresses, IP addresses except loopback, and the name of the *host*.
    """
    option = ""
    cleaned = []
    for word in _BLANKS.split(title[:LONGEST_READ]):
        if not word or word.isspace():
            cleaned.append(word)
            continue
        is_value = _hides(option) and not word.startswith("-")
        cleaned.append(HIDDEN if is_value else _cleaned(word, host))
        is_scheme = word.lower() in _SCHEMES
        option = word if is_scheme or (word.startswith("-") and "=" not in word) else ""
    return "".join(cleaned)[:LONGEST_TITLE].strip()


def _cleaned(word: str, host: str) -> str:
    before, scheme, _ = word.partition("://")
    if scheme:
        return f"{before.rpartition('/')[2]}:{HIDDEN}"
    name, is_given, _ = word.partition("=")
    if is_given and _hides(name):
        return f"{name}={HIDDEN}"
    if _GLUED_PASSWORD.fullmatch(word):
        return f"-p{HIDDEN}"
    if "@" in word[1:-1] or _is_foreign(word.strip("[]")):
        return HIDDEN
    return "".join(_shortened(piece, host) for piece in _BREAK.split(word))


def _hides(name: str) -> bool:
    lowered = name.lower()
    return bool(_SECRET.search(lowered)) or lowered in _SCHEMES or lowered.lstrip("-") in _USER


def _shortened(piece: str, host: str) -> str:
    if (host and piece == host) or _is_foreign(piece):
        return HIDDEN
    if piece.startswith("-") and piece[_GLUED:].startswith("/"):
        return piece[:_GLUED] + _last_part(piece)
    is_path = piece.startswith(("/", "~", "./", "../"))
    parts = [part for part in piece.split("/") if part]
    return _last_part(piece) if is_path or len(parts) >= _PARTS_OF_A_PATH else piece


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _is_foreign(text: str) -> bool:
    """Whether *text* is an IP address other than loopback and unspecified."""
    try:
        address = IPv6Address(text) if ":" in text else IPv4Address(text)
    except AddressValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)
