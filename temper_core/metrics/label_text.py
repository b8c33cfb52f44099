"""Label text. Any name of a pod or thread becomes a valid label value."""

import re
from functools import lru_cache

LONGEST_VALUE = 256
"""Characters of a label value. Kubernetes and systemd allow no longer name."""
REST = "rest"
"""Label of the threads without a series of their own. Threads named ``rest`` count here too."""
UNNAMED = "?"

_NUMBER = re.compile(
    r"""
    (?<![A-Za-z0-9]) (?=[a-fA-F]*[0-9]) [0-9a-fA-F]{6,} (?![A-Za-z0-9])  # an id in hex digits
    | (?! (?<=^[A-Z]) [0-9] [ ] ) [0-9]+  # except a start like "C2 Compiler"
    """,
    re.VERBOSE,
)
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


@lru_cache(maxsize=4096)
def thread_group(comm: str) -> str:
    """Return *comm* with numbers replaced by ``*``: ``worker-17`` is ``worker-*``.

    A separate id of six or more hex digits counts as a number. The prefixes ``C2`` and ``G1`` of a
    JVM name a kind of thread, and stay.
    """
    return _NUMBER.sub("*", readable(comm)) or UNNAMED


def readable(text: str) -> str:
    """Replace unprintable characters, line ends included, by question marks, and cut the text."""
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else UNNAMED for letter in text)
    return text[:LONGEST_VALUE]


@lru_cache(maxsize=4096)
def label(name: str, value: str) -> str:
    """Return one label: ``name="value"``."""
    return f'{name}="{escaped(value)}"'


@lru_cache(maxsize=1024)
def pod_labels(namespace: str, pod: str) -> str:
    """Return the two labels that name a pod."""
    return f"{label('namespace', namespace)},{label('pod', pod)}"


def escaped(value: str) -> str:
    """Escape a label's value. Lone surrogates (bytes outside UTF-8) become question marks."""
    return without_surrogates(value).translate(_ESCAPES)


def without_surrogates(text: str) -> str:
    """Replace characters that UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
