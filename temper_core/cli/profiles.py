"""``temper profiles``: list, show and check workload profiles."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from attrs import AttrsInstance

    from temper_core.plan.catalogue import ProfileCatalogue
    from temper_core.records.profiles import (
        LoadedProfile,
        ThreadGroup,
        WorkloadProfile,
    )

EXIT_FINDINGS = 1
COLUMNS = ("profile", "source", "machine", "groups", "description")


class _ListByDefault(click.Group):
    """A group that lists where no sub-command is named: ``temper profiles --output json``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``list`` before options that are not the group's own."""
        is_option = bool(args) and args[0].startswith("-") and args[0] not in ctx.help_option_names
        return super().parse_args(ctx, ["list", *args] if is_option or not args else args)


def _sources(function: Callable[..., None]) -> Callable[..., None]:
    settings = click.Path(path_type=Path)
    directory = click.Path(path_type=Path, exists=True, file_okay=False)
    for option in (
        click.option("--output", type=click.Choice(["table", "json"]), default="table"),
        click.option("--profiles", type=directory, help="Directory of profile files."),
        click.option("--settings", type=settings, help="Settings file (TOML)."),
    ):
        function = option(function)
    return function


@click.group("profiles", cls=_ListByDefault)
def command() -> None:
    """List, show and check workload profiles; without a sub-command, list them."""


@command.command("list")
@_sources
@click.pass_context
def list_profiles(
    context: click.Context, settings: Path | None, profiles: Path | None, output: str
) -> None:
    """List every profile; exit code 1 where one could not be loaded."""
    catalogue = _catalogue(settings, profiles)
    if output == "json":
        click.echo(json.dumps(_catalogue_document(catalogue), indent=2))
    else:
        _print_catalogue(catalogue)
    for failure in catalogue.failures:
        named = f" (profile {failure.profile!r})" if failure.profile else ""
        click.echo(f"temper: {failure.source}{named}: {failure.reason}", err=True)
    context.exit(EXIT_FINDINGS if catalogue.failures else 0)


@command.command("show")
@click.argument("profile_id", metavar="ID")
@_sources
def show_profile(
    profile_id: str, settings: Path | None, profiles: Path | None, output: str
) -> None:
    """Show the profile of that id; several where it was tuned for several machines."""
    catalogue = _catalogue(settings, profiles)
    found = [loaded for loaded in catalogue.profiles if loaded.profile.id == profile_id]
    if not found:
        raise _unknown(profile_id, catalogue)
    if output == "json":
        click.echo(json.dumps([_document(loaded) for loaded in found], indent=2))
        return
    for loaded in found:
        _print_profile(loaded)


@command.command("check")
@click.argument(
    "files", metavar="FILE|DIR...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.pass_context
def check_files(context: click.Context, files: tuple[Path, ...]) -> None:
    """Check profile files, and the *.toml of directories; exit code 2 where one is wrong."""
    from temper_core.agent.profile_files import read_profile_text
    from temper_core.errors import DocumentError
    from temper_core.records.profile_documents import parse_profile

    wrong = 0
    for file in list(_each_file(files)):
        try:
            profile = parse_profile(read_profile_text(file), str(file))
        except DocumentError as error:
            wrong = error.exit_code
            for line in str(error).splitlines():
                click.echo(f"temper: {line}", err=True)
        else:
            click.echo(f"{file}: profile {profile.id!r} is well formed{_caveat(profile)}")
    context.exit(wrong)


def _each_file(paths: tuple[Path, ...]) -> Iterator[Path]:
    from temper_core.agent.profile_files import profile_files
    from temper_core.errors import DocumentError

    for path in paths:
        if not _is_directory(path):
            yield path
            continue
        try:
            found = profile_files(path)
        except OSError as error:
            raise DocumentError(str(path), [error.strerror or str(error)]) from error
        if not found:
            raise DocumentError(str(path), ["holds no profile, no *.toml"])
        yield from found


def _is_directory(path: Path) -> bool:
    """Whether *path* is known to be one; where it cannot be known, reading it says why."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _catalogue(settings: Path | None, directory: Path | None) -> "ProfileCatalogue":
    from temper_core.agent.profiles import load_catalogue
    from temper_core.plugin_host import load_host
    from temper_core.settings import load

    effective = load(settings).settings
    return load_catalogue(effective, load_host(effective), directory)


def _unknown(profile_id: str, catalogue: "ProfileCatalogue") -> Exception:
    from temper_core.errors import InputError

    for failure in catalogue.failures:
        if failure.profile == profile_id:
            reason = f"{failure.source}: {failure.reason}"
            return InputError(f"profile {profile_id!r} could not be loaded: {reason}")
    known = ", ".join(sorted({loaded.profile.id for loaded in catalogue.profiles})) or "none"
    return InputError(f"no profile is called {profile_id!r}; there are: {known}")


def _catalogue_document(catalogue: "ProfileCatalogue") -> dict[str, Any]:
    import attrs

    return {
        "profiles": [_document(loaded) for loaded in catalogue.profiles],
        "failures": [attrs.asdict(failure) for failure in catalogue.failures],
    }


def _document(loaded: "LoadedProfile") -> dict[str, Any]:
    import attrs

    return {"source": loaded.source, "is_file": loaded.is_file, **attrs.asdict(loaded.profile)}


def _caveat(profile: "WorkloadProfile") -> str:
    steered = [group.name for group in profile.thread_groups if _needs_steering(group)]
    if not steered:
        return ""
    return f"; without steering the engine cannot match {', '.join(steered)}"


def _needs_steering(group: "ThreadGroup") -> bool:
    return not all(match.is_static for match in group.match)


def _print_catalogue(catalogue: "ProfileCatalogue") -> None:
    from temper_core.cli.tables import plain_table, results_console

    table = plain_table(*COLUMNS)
    for loaded in catalogue.profiles:
        profile = loaded.profile
        groups = ", ".join(group.name for group in profile.thread_groups)
        shape = _given(profile.machine_shape) or "any"
        table.add_row(profile.id, loaded.source, shape, groups, profile.description)
    results_console().print(table)


def _print_profile(loaded: "LoadedProfile") -> None:
    from temper_core.cli.tables import plain_table, results_console

    profile = loaded.profile
    console = results_console()
    console.print(f"{profile.id}: {profile.description}".rstrip(": "))
    console.print(f"  from          {loaded.source}")
    console.print(f"  recognised by {_given(profile.fingerprint) or 'annotation only'}")
    console.print(f"  machine       {_given(profile.machine_shape) or 'any'}")
    console.print(f"  measured      {_given(profile.evidence) or 'no evidence given'}")
    table = plain_table("group", "threads", "treatment", "cpu_fraction")
    for group in profile.thread_groups:
        fraction = "" if group.cpu_fraction is None else str(group.cpu_fraction)
        table.add_row(group.name, _threads_of(group), str(group.treatment), fraction)
    console.print(table)


def _threads_of(group: "ThreadGroup") -> str:
    return " or ".join(_given(match) for match in group.match) or "all others"


def _given(record: "AttrsInstance") -> str:
    """Say what of *record* was given, in the words of the document."""
    import attrs

    given = attrs.asdict(record, filter=lambda _, value: value not in (None, "", ()))
    return ", ".join(f"{key} {_said(value)}" for key, value in given.items())


def _said(value: object) -> str:
    if isinstance(value, tuple | list):
        is_range = all(isinstance(item, int | float) for item in value)
        return ("-" if is_range else " ").join(map(str, value))
    return str(value)
