"""The state directories of instruments, and their removal.

They are removed even if the instrument is not installed: the agent's directories are recognized by
name, owner and mode. The values of the kernel and of devices that an instrument has changed are
given back first. Values of devices need the instrument's plugin.
"""

import os
import re
import stat
from pathlib import Path

from temper_core.directory_tree import open_directory, remove_tree
from temper_core.records.names import NAME_PATTERN
from temper_core.records.restored import Leftover, Restored
from temper_core.restoring import device_values, kernel_values
from temper_core.restoring.device_values import Plugins, give_back_devices
from temper_core.restoring.kernel_values import give_back_values
from temper_core.restoring.reasons import failure, named_strangers

INSTRUMENTS = "instruments"
"""The folder below the agent's state directory that has one directory per instrument."""
RECORDS = frozenset({kernel_values.RECORD.name, device_values.RECORD.name})
"""The files of a state directory without which changed values are not given back."""
OTHERS_BITS = stat.S_IRWXG | stat.S_IRWXO


def clear_instruments(
    parent: int, above: Path, plugins: Plugins, *, is_dry: bool
) -> tuple[tuple[str, ...], tuple[Leftover, ...]]:
    """Remove ``instruments`` of the open directory *parent*, whose path is *above*.

    Returns the removed paths, one per instrument, and the entries that stay. With *is_dry* nothing
    is removed.
    """
    path = above / INSTRUMENTS
    if not _is_made_by_agent(INSTRUMENTS, parent):
        return (), tuple(named_strangers([INSTRUMENTS], above))
    try:
        descriptor = open_directory(INSTRUMENTS, parent)
    except OSError as error:
        return (), (failure(str(path), error),)
    try:
        if not _is_private(os.fstat(descriptor)):
            return (), tuple(named_strangers([INSTRUMENTS], above))
        removed, leftovers = _clear_each(descriptor, path, plugins, is_dry=is_dry)
    finally:
        os.close(descriptor)
    if any(not leftover.is_kept for leftover in leftovers):
        return removed, leftovers
    try:
        if not is_dry:
            os.rmdir(INSTRUMENTS, dir_fd=parent)
    except OSError as error:
        return removed, (failure(str(path), error),)
    return (*removed, str(path)), leftovers


def _clear_each(
    directory: int, path: Path, plugins: Plugins, *, is_dry: bool
) -> tuple[tuple[str, ...], tuple[Leftover, ...]]:
    names = sorted(os.listdir(directory))
    ours = [name for name in names if _is_instrument(name, directory)]
    removed: list[str] = []
    leftovers = list(named_strangers(sorted(set(names) - set(ours)), path))
    for name in ours:
        values = _give_back_values(directory, path / name, plugins, is_dry=is_dry)
        removed += values.removed
        leftovers += values.left
        if any(leftover.is_failure for leftover in values.left):
            continue  # the record is needed for another try
        try:
            if not is_dry:
                remove_tree(directory, name)
            removed.append(str(path / name))
        except FileNotFoundError:
            continue
        except OSError as error:
            leftovers.append(failure(str(path / name), error))
    return tuple(removed), tuple(leftovers)


def _give_back_values(directory: int, path: Path, plugins: Plugins, *, is_dry: bool) -> Restored:
    """Give back the values of an instrument, by its records.

    The records are read by descriptor. The owner of a directory above may put another one in the
    place of *path* meanwhile.
    """
    try:
        descriptor = open_directory(path.name, directory)
    except FileNotFoundError:
        return Restored()
    except OSError as error:
        return Restored(left=(failure(str(path), error),))
    try:
        if not _is_private(os.fstat(descriptor)):
            return Restored(left=tuple(named_strangers([path.name], path.parent)))
        values = give_back_values(path, is_dry=is_dry, descriptor=descriptor)
        devices = give_back_devices(path, plugins, is_dry=is_dry, descriptor=descriptor)
    finally:
        os.close(descriptor)
    return Restored((*values.removed, *devices.removed), (*values.left, *devices.left))


def _is_instrument(name: str, directory: int) -> bool:
    return bool(re.fullmatch(NAME_PATTERN, name)) and _is_made_by_agent(name, directory)


def _is_made_by_agent(name: str, directory: int) -> bool:
    """Whether it is a directory, not a link, of this user and without access for others."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return _is_private(status)


def _is_private(status: os.stat_result) -> bool:
    is_own = status.st_uid == os.geteuid() and not status.st_mode & OTHERS_BITS
    return stat.S_ISDIR(status.st_mode) and is_own
