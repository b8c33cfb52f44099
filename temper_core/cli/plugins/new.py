"""``temper plugins new``: begin a plugin."""

import re
import shlex
import shutil
import sys
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from string import Template

import click

from temper_core import __version__
from temper_core.errors import InputError

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LONGEST_NAME = 40
SUFFIX = ".template"
MODULE = "module"
"""The directory of the templates that becomes the plugin's package."""


@click.command("new")
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Where to write it. It is made if it is missing. Default: the current directory.",
)
@click.option("--file", "is_file", is_flag=True, help="Write one file for --plugins-dir instead.")
def command(name: str, directory: Path, is_file: bool) -> None:
    """Begin the plugin NAME, with an invariant to change.

    It writes the distribution temper-plugin-NAME with settings and tests that pass. With --file it
    writes NAME.py, which an agent loads from --plugins-dir without an installation. Nothing that
    exists is overwritten.
    """
    words = _words(name)
    _refuse_installed(name)
    _make(directory)
    if is_file:
        path = directory / f"{words['module']}.py"
        _write_new(path, _filled(_templates() / MODULE / f"__init__.py{SUFFIX}", words))
        click.echo(f"wrote {path}; try it: temper plugins --plugins-dir {directory}")
        return
    root = directory / f"temper-plugin-{name}"
    _write_distribution(root, words)
    click.echo(f"wrote {root}; try it:")
    click.echo(f"    cd {shlex.quote(str(root))} && {_installation()} && {_python()} -m pytest")


def _installation() -> str:
    """Return the command that installs a checkout beside this agent, whatever else is on the PATH.

    An environment of uv has no pip.
    """
    python = _python()
    pip = "" if find_spec("pip") else f"{python} -m ensurepip && "
    return f"{pip}{python} -m pip install -e '.[test]'"


def _python() -> str:
    return shlex.quote(sys.executable)


def _words(name: str) -> dict[str, str]:
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise InputError(
            f"the name {name!r:.80} does not fit: lower-case letters, digits and single hyphens, "
            f"{LONGEST_NAME} characters at most"
        )
    minor = ".".join(__version__.split(".")[:2])
    return {"name": name, "module": name.replace("-", "_"), "version": minor}


def _make(directory: Path) -> None:
    """Make *directory* unless it exists, writable for its owner only. Raises InputError.

    A plugin in a directory that others may write would be set aside.
    """
    try:
        directory.mkdir(mode=0o755, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: {error.strerror}") from error


def _refuse_installed(name: str) -> None:
    from temper_core.plugin_host.installed import installed_plugins

    for plugin in installed_plugins():
        if plugin.name == name:
            raise InputError(f"the name {name!r} is that of a plugin in {plugin.distribution}")


def _write_distribution(root: Path, words: Mapping[str, str]) -> None:
    """Write all files below *root*, or nothing. Raises InputError if it exists."""
    try:
        root.mkdir()
    except OSError as error:
        raise InputError(f"{root}: {error.strerror}") from error
    try:
        for template, relative in _files(_templates()):
            path = root / Template(
                relative.replace(f"{MODULE}/", "temper_plugin_$module/")
            ).substitute(words)
            path.parent.mkdir(exist_ok=True)
            _write_new(path, _filled(template, words))
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise


def _files(directory: Traversable, above: str = "") -> "list[tuple[Traversable, str]]":
    """Return each template below *directory* with the path of the file that it becomes."""
    found = []
    for entry in directory.iterdir():
        if entry.is_dir():
            found += _files(entry, f"{above}{entry.name}/")
        elif entry.name.endswith(SUFFIX):
            found.append((entry, f"{above}{entry.name.removesuffix(SUFFIX)}"))
    return found


def _templates() -> Traversable:
    return resources.files("temper_core.cli.plugins") / "template"


def _filled(template: Traversable, words: Mapping[str, str]) -> str:
    return Template(template.read_text(encoding="utf-8")).substitute(words)


def _write_new(path: Path, text: str) -> None:
    """Write the whole file, or nothing. Raises InputError if it exists or has no room."""
    try:
        file = path.open("x", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    try:
        with file:
            file.write(text)
    except OSError as error:
        path.unlink()
        raise InputError(f"{path}: {error.strerror}") from error
