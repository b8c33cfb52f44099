"""Titles (command lines of processes) without what says where, for whom and with what secret.

A process chooses its title, so every step here takes time in proportion to it and no more.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from temper_plugin_trainer.thread_tables import LONGEST_TITLE

HIDDEN = "***"
LONGEST_READ = 4_096

_BLANKS = re.compile(r"(\s+)")
_BREAK = re.compile(r"([=:,;\"'()\[\]{}|<>])")
_SECRET = re.compile(r"token|secret|passw|passphrase|credential|api[-_]?key|private|auth")
_USER = frozenset(("user", "username", "login", "owner"))
_GLUED = 2
"""Letters of an option that its value follows at once: ``-I/usr/include``."""
_PARTS_OF_A_PATH = 3
"""Parts that make a path of what does not begin like one: ``17/main`` may be a name."""


def clean_title(title: str, host: str = "") -> str:
    """Return *title* with its paths cut to their last part, fit to be published.

    What follows ``scheme://`` is hidden, and so are values of options that are secrets or users
    by their names, mail addresses, IP addresses but loopback's, and the name of the *host*.
    """
    option = ""
    cleaned = []
    for word in _BLANKS.split(title[:LONGEST_READ]):
        if not word or word.isspace():
            cleaned.append(word)
            continue
        is_value = _hides(option) and not word.startswith("-")
        cleaned.append(HIDDEN if is_value else _cleaned(word, host))
        option = word if word.startswith("-") and "=" not in word else ""
    return "".join(cleaned)[:LONGEST_TITLE].strip()


def _cleaned(word: str, host: str) -> str:
    before, scheme, _ = word.partition("://")
    if scheme:
        return f"{before.rpartition('/')[2]}:{HIDDEN}"
    name, is_given, _ = word.partition("=")
    if is_given and _hides(name):
        return f"{name}={HIDDEN}"
    if "@" in word[1:-1] or _is_foreign(word.strip("[]")):
        return HIDDEN
    return "".join(_shortened(piece, host) for piece in _BREAK.split(word))


def _hides(name: str) -> bool:
    lowered = name.lower()
    return bool(_SECRET.search(lowered)) or lowered.lstrip("-") in _USER


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
    """Whether *text* is an IP address of another machine than this one as it sees itself."""
    try:
        address = IPv6Address(text) if ":" in text else IPv4Address(text)
    except AddressValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)
