"""Plugins that are one file each in a directory, for a first try without packaging."""

import errno
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from temper_core.errors import InputError
from temper_core.foreign_writers import foreign_writer
from temper_core.plugin_host.installed import Installed

MODULE_PREFIX = "temper_plugin_file_"


def plugin_files(directory: Path) -> list[Installed]:
    """Return the plugins in *directory* by name: ``wait_limits.py`` is ``wait-limits``.

    Files whose names begin with a dot or an underscore are no plugins. Raises OSError if the
    directory cannot be read, or if other users may add files. One with the name of an installed
    plugin would keep that from being loaded.
    """
    if writer := foreign_writer(directory):
        raise OSError(errno.EPERM, f"it is not trusted: {writer}")
    paths = sorted(path for path in directory.iterdir() if path.suffix == ".py")
    return [
        Installed(path.stem.replace("_", "-"), str(path), "", partial(_load, path))
        for path in paths
        if not path.name.startswith((".", "_"))
    ]


def _load(path: Path) -> object:
    """Import the file. Raises InputError if it is no module, or if other users may change it."""
    if not path.stem.isidentifier():
        raise InputError(f"{path.name} is no name of a module: letters, digits and underscores")
    if not path.is_file():  # opening a pipe would wait for a writer
        raise InputError("is no regular file")
    if writer := foreign_writer(path):
        raise InputError(f"its file is not trusted: {writer}")
    name = f"{MODULE_PREFIX}{path.stem}"
    spec = spec_from_file_location(name, path, loader=_UncachedLoader(name, str(path)))
    if spec is None or spec.loader is None:
        raise InputError(f"{path} cannot be imported")
    return _executed(spec, spec.loader.exec_module)


def _executed(spec: ModuleSpec, execute: Callable[..., None]) -> object:
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # attrs and pickle look a class's module up
    try:
        execute(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


class _UncachedLoader(SourceFileLoader):
    """Reads and writes no bytecode.

    Nothing would remove it, and it may be of another user where the directory is sticky.
    """

    def path_stats(self, path: str) -> Mapping[str, Any]:
        """Raise OSError, at which importlib uses no bytecode (``SourceLoader.get_code``)."""
        raise OSError(f"{path} has no bytecode")
