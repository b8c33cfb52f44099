"""Places in the code of plugins, for the one line that names a failure: ``page.py:4 in collect``.

Everything here except ``thread_frames`` runs in the plugin's thread. An object of a plugin is read
only if its type is exactly one of the language's.
"""

import os
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from threading import Thread
from types import CodeType, FunctionType, MethodType

from attrs import frozen

from temper_core.plugin_host.plain_values import plain_text

LONGEST_PLACE = 100
"""Characters of a file's name, a line and a function."""
MOST_FRAMES = 20
"""Frames of a stack, the innermost ones."""
MOST_WRAPPERS = 8
_CORE = f"{Path(__file__).parent.parent}/"
_LIBRARY = f"{Path(os.__file__).parent}/"
_PACKAGES = ("/site-packages/", "/dist-packages/")
_FRAME = re.compile(r'  File "(.*)", line (\d+) in (.*)')


@frozen
class Place:
    """A line of code. A file of ``<...>`` is generated code."""

    file: str
    line: int
    function: str

    @staticmethod
    def of(code: CodeType, line: int) -> "Place":
        """Return the place of *line* in *code*, whose names may be of a subclass of ``str``."""
        return Place(plain_text(code.co_filename), line, plain_text(code.co_name))

    @property
    def is_authors(self) -> bool:
        """Whether an author has written it: it is not of the core or of the standard library."""
        is_library = self.file.startswith(_LIBRARY) and not any(
            packages in self.file for packages in _PACKAGES
        )
        return not (is_library or self.is_generated or self.file.startswith(_CORE))

    @property
    def is_generated(self) -> bool:
        """Whether it is in no file, as the interpreter's own import is."""
        return self.file.startswith("<")

    @property
    def text(self) -> str:
        """The file's name, the line and the function, for a line that a person reads."""
        name = self.file.rpartition("/")[2]
        line = f"{name}:{self.line} in {self.function}"
        return "".join(c if c.isprintable() else " " for c in line)[:LONGEST_PLACE]


def in_brackets(place: Place | None) -> str:
    """Return `` (page.py:4 in collect)``, to be added to a line. Empty without a place."""
    return f" ({place.text})" if place else ""


def authors_place(places: Iterable[Place]) -> Place | None:
    """Return the first of *places*, which begin with the innermost, that an author has written."""
    return next((place for place in places if place.is_authors), None)


def defined_at(function: object) -> Place | None:
    """Return where an author has defined *function*. None if it is no function of Python."""
    for _ in range(MOST_WRAPPERS):
        if type(function) is partial:
            function = function.func
        elif type(function) is MethodType:
            function = function.__func__
    if type(function) is not FunctionType:
        return None
    place = Place.of(function.__code__, function.__code__.co_firstlineno)
    return place if place.is_authors else None


def thread_frames(thread: Thread) -> tuple[Place, ...]:
    """Return what *thread* is doing now, the innermost frame first. Empty if that is not known.

    faulthandler writes it as text. A frame object would keep values of the plugin, and free them
    in the thread of the caller.
    """
    import faulthandler  # noqa: PLC0415 - hardly ever needed

    try:
        with os.fdopen(os.memfd_create("stacks"), "w+b", buffering=0) as file:
            faulthandler.dump_traceback(file, all_threads=True)
            file.seek(0)
            stacks = file.read().decode(errors="replace")
    except OSError:
        return ()
    head = f"0x{thread.ident or 0:016x}"
    own = next((stack for stack in stacks.split("\n\n") if head in stack.partition("\n")[0]), "")
    frames = [_FRAME.fullmatch(line) for line in own.splitlines()[1:]]
    return tuple(
        Place(found[1], int(found[2]), found[3]) for found in frames[:MOST_FRAMES] if found
    )
