"""``temper profiles check``: whether profile files are well formed."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from temper_core.records.profiles import WorkloadProfile
    from temper_core.records.thread_groups import ThreadGroup


@click.command("check")
@click.argument(
    "files", metavar="FILE|DIR...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.pass_context
def command(context: click.Context, files: tuple[Path, ...]) -> None:
    """Check profile files, and the TOML files of directories. Exit code 2 if one has errors."""
    from temper_core.console import print_error
    from temper_core.errors import DocumentError
    from temper_core.profiles.documents import parse_profile
    from temper_core.profiles.files import read_profile_text

    wrong = 0
    for file in list(each_file(files)):
        try:
            profile = parse_profile(read_profile_text(file), str(file))
        except DocumentError as error:
            wrong = error.exit_code
            print_error(error)
        else:
            click.echo(f"{file}: profile {profile.id!r} is well formed{_caveat(profile)}")
    context.exit(wrong)


def each_file(paths: tuple[Path, ...]) -> Iterator[Path]:
    """Yield the files, and those of directories. Raise DocumentError for a directory without."""
    from temper_core.errors import DocumentError
    from temper_core.profiles.files import profile_files

    for path in paths:
        if not _is_directory(path):
            yield path
            continue
        try:
            files = profile_files(path)
        except OSError as error:
            raise DocumentError(str(path), [error.strerror or str(error)]) from error
        if not files:
            raise DocumentError(str(path), ["holds no profile (*.toml)"])
        yield from files


def _is_directory(path: Path) -> bool:
    """Whether *path* is known to be a directory. Otherwise reading it raises the reason."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _caveat(profile: "WorkloadProfile") -> str:
    from temper_core.records.profiles import DerivedProfile

    if isinstance(profile, DerivedProfile):
        return f"; it extends {profile.extends!r}, which temper profiles lint looks up"
    steered = [group.name for group in profile.thread_groups if _needs_steering(group)]
    if not steered:
        return ""
    return f"; without steering the engine cannot match {', '.join(steered)}"


def _needs_steering(group: "ThreadGroup") -> bool:
    return not all(match.is_static for match in group.match)
