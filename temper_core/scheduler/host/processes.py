"""Facts on a process that it cannot choose: program, users, namespaces.

A process chooses its name and its command line. A link to a setuid program gives any user a process
of root with any name.
"""

import os
from contextlib import suppress
from pathlib import Path

from temper_core.kernel_text import kernel_lines
from temper_core.scheduler.host.roots import read_line

INITIAL_USERS = ["0", "0", "4294967295"]


def executable_name(folder: Path) -> str | None:
    """Return the file name of the program that the process of */proc/PID* runs.

    None if it is not known: for a kernel thread, or without the right to ask (proc_pid_exe(5)).
    """
    with suppress(OSError):
        return (folder / "exe").readlink().name
    return None


def status_field(folder: Path, name: str) -> str | None:
    """Return the value of a line of */proc/PID/status* (proc_pid_status(5)), None if unknown."""
    return field_of(folder / "status", name)


def field_of(path: Path, name: str) -> str | None:
    """Return the value of the line ``name: value`` of a file of /proc, None if there is none."""
    for line in kernel_lines(read_line(path) or ""):
        key, _, value = line.partition(":")
        if key == name:
            return value.strip()
    return None


def is_setuid(folder: Path) -> bool:
    """Whether the process of */proc/PID* got the rights of root from a setuid program.

    Such a process keeps a user or a group of its parent (credentials(7)). False if it is not known.
    """
    users, groups = (set((status_field(folder, name) or "").split()) for name in ("Uid", "Gid"))
    return len(users) > 1 or len(groups) > 1 or (users == {"0"} and bool(groups - {"0"}))


def is_of_initial_users(folder: Path) -> bool:
    """Whether the process of */proc/PID* is in this process's user namespace, or it is not known.

    Without the right to read the namespace, the map of users decides (user_namespaces(7)). A new
    namespace has an empty map.
    """
    try:
        return shares_namespace(folder, "user")
    except OSError:
        users = read_line(folder / "uid_map")
        return users is None or users.split() == INITIAL_USERS


def shares_namespace(folder: Path, kind: str) -> bool:
    """Whether the process of */proc/PID* is in this process's namespace of that *kind*.

    A kernel without namespaces of that kind has one for all. Raises OSError without the right to
    ask (namespaces(7)).
    """
    try:
        own, theirs = ((path / "ns" / kind).stat() for path in (folder.parent / "self", folder))
    except FileNotFoundError:
        return True
    return os.path.samestat(own, theirs)
