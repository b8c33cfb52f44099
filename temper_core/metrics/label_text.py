"""Labels as they are written: whatever a pod or a thread is called, a scrape stays readable."""

import re
from functools import lru_cache

LONGEST_VALUE = 256
"""Characters of a label's value. No name that Kubernetes or systemd allows is longer."""
REST = "rest"
"""What stands for the threads without a name of their own. One that is called so is among them."""
UNNAMED = "?"

_NUMBER = re.compile(
    r"""
    (?<![A-Za-z0-9]) (?=[a-fA-F]*[0-9]) [0-9a-fA-F]{6,} (?![A-Za-z0-9])  # an id in hex digits
    | (?! (?<=^[A-Z]) [0-9] [ ] ) [0-9]+  # not what begins like "C2 Compiler"
    """,
    re.VERBOSE,
)
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


@lru_cache(maxsize=4096)
def thread_group(comm: str) -> str:
    """Name the threads that are called like *comm* but for numbers: ``worker-17`` is ``worker-*``.

    An id of six or more hex digits counts as a number too where it stands alone. What a JVM calls
    ``C2`` or ``G1`` in front of a name is a kind of thread, and stays.
    """
    return _NUMBER.sub("*", readable(comm)) or UNNAMED


def readable(text: str) -> str:
    """Replace what cannot be printed, line ends among it, by a question mark; and cut the text."""
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else UNNAMED for letter in text)
    return text[:LONGEST_VALUE]


@lru_cache(maxsize=4096)
def label(name: str, value: str) -> str:
    """Write one label: ``name="value"``."""
    return f'{name}="{escaped(value)}"'


@lru_cache(maxsize=1024)
def pod_labels(namespace: str, pod: str) -> str:
    """Write the two labels that name a pod."""
    return f"{label('namespace', namespace)},{label('pod', pod)}"


def escaped(value: str) -> str:
    """Escape a label's value. Lone surrogates, bytes that are no UTF-8, become question marks."""
    return without_surrogates(value).translate(_ESCAPES)


def without_surrogates(text: str) -> str:
    """Replace what cannot be written as UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
