"""What the kernel itself says of a process, whatever the process calls itself.

A process chooses its name and its command line. Through a link to a setuid program any user has a
process of root with a name of their choice.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from temper_core.scheduler.host.roots import read_line

INITIAL_USERS = ["0", "0", "4294967295"]


def executable_name(folder: Path) -> str | None:
    """Return the file name of the program that the process of */proc/PID* runs.

    None if it is not known: for a kernel thread, or without the right to ask (proc_pid_exe(5)).
    """
    with suppress(OSError):
        return (folder / "exe").readlink().name
    return None


def is_setuid(folder: Path) -> bool:
    """Whether the process of */proc/PID* has the rights of root by a setuid program.

    Such a process keeps a user or a group of whoever started it (credentials(7)). False if it is
    not known.
    """
    ids = dict(_ids(folder))
    users, groups = set(ids.get("Uid", ())), set(ids.get("Gid", ()))
    return len(users) > 1 or len(groups) > 1 or (users == {"0"} and groups != {"0"})


def _ids(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the names and values of the lines of *status* (proc_pid_status(5))."""
    for line in (read_line(folder / "status") or "").splitlines():
        name, _, values = line.partition(":")
        yield name, values.split()


def is_of_initial_users(folder: Path) -> bool:
    """Whether the process of */proc/PID* is in this process's user namespace, or it is not known.

    Without the right to ask, the map of users tells of most others (user_namespaces(7)): one that
    has just been made has an empty map.
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
