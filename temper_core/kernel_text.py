r"""Reads text of the kernel's files, in which users choose the names.

The kernel ends a line by ``\n`` and separates words by spaces and tabs, and it escapes these in
names (``seq_escape``, ``mangle`` in fs/proc_namespace.c). It leaves all other characters as they
are. ``str.splitlines`` and ``str.split`` separate at more: ``\r``, ``\v``, ``\f``, ``\x1c`` to
``\x1f``, ``\x85``, U+2028 and the spaces of Unicode. So does reading a file as text, at ``\r``.
With such a character in the name of a process, cgroup or mount a user would write lines of its own.
"""

import re
from pathlib import Path

_BLANKS = re.compile(r"[ \t]+")


def kernel_lines(text: str) -> list[str]:
    r"""Return the lines of *text*, without their ``\n``."""
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else lines


def kernel_words(line: str) -> list[str]:
    """Return the words of *line*, which spaces and tabs separate."""
    return [word for word in _BLANKS.split(line) if word]


def read_kernel_text(path: Path) -> str:
    """Return the content of *path* as it is. A byte that is not UTF-8 becomes a surrogate.

    Raises:
        OSError: if it cannot be read.

    """
    return path.read_bytes().decode(errors="surrogateescape")
