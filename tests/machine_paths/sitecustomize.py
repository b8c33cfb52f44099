"""Refuse the machine's own places of Temper to every Python that a test starts.

Python imports a module of this name when it starts, if its directory is on PYTHONPATH.
"""

import os
import sys

NOTES = "TEMPER_TESTS_TOUCHED"
PLACES = ("/run/temper", "/var/run/temper", "/var/lib/temper")
DEFAULT_PORT = 9100
EVENTS = frozenset(
    {
        "open",
        "os.chmod",
        "os.listdir",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.scandir",
        "os.symlink",
        "socket.bind",
        "socket.connect",
    }
)


def touched(arguments):
    """Return which of the machine's places the arguments of an audit event name, if any."""
    for each in arguments:
        if isinstance(each, (str, bytes, os.PathLike)):
            path = os.path.normpath(os.fsdecode(each))
            if path in PLACES or path.startswith(tuple(f"{place}/" for place in PLACES)):
                return path
        elif isinstance(each, tuple) and len(each) > 1 and each[1] == DEFAULT_PORT:
            return f"port {DEFAULT_PORT}"
    return None


def refuse(event, arguments):
    """Note an event that touches one of the places, and have it fail."""
    if event not in EVENTS or (place := touched(arguments)) is None:
        return
    with open(os.environ[NOTES], "a") as notes:  # noqa: PTH123 - this is how early it runs
        notes.write(f"{event} {place} by {sys.argv[0] if hasattr(sys, 'argv') else 'Python'}\n")
    raise PermissionError(13, "is the machine's own; a test has directories of its own", place)


if NOTES in os.environ:
    sys.addaudithook(refuse)
