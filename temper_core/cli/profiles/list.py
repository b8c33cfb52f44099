"""``temper profiles list``: all profiles, and those that could not be loaded."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core.cli.profiles.sources import load_profiles, profile_sources
from temper_core.cli.profiles.words import effect_of, given, profile_document
from temper_core.console import print_json, printable

if TYPE_CHECKING:
    from temper_core.profiles.catalogue import ProfileCatalogue
    from temper_core.records.profiles import LoadedProfile

EXIT_FINDINGS = 1
COLUMNS = ("profile", "source", "machine", "enabled", "effect", "groups", "description")


@click.command("list")
@profile_sources
@click.pass_context
def command(
    context: click.Context, settings: Path | None, profiles: Path | None, output: str
) -> None:
    """List every profile, and why some are disabled. Exit code 1 if one could not be loaded."""
    catalogue = load_profiles(settings, profiles)
    if output == "json":
        print_json(_catalogue_document(catalogue))
    else:
        _print_catalogue(catalogue)
    for failure in catalogue.failures:
        profile = f" (profile {failure.profile!r})" if failure.profile else ""
        click.echo(f"temper: {printable(failure.source)}{profile}: {failure.reason}", err=True)
    context.exit(EXIT_FINDINGS if catalogue.failures else 0)


def _catalogue_document(catalogue: "ProfileCatalogue") -> dict[str, Any]:
    import attrs

    return {
        "profiles": [profile_document(loaded) for loaded in catalogue.profiles],
        "failures": [attrs.asdict(failure) for failure in catalogue.failures],
    }


def _print_catalogue(catalogue: "ProfileCatalogue") -> None:
    from temper_core.console import plain_table, results_console

    table = plain_table(*COLUMNS)
    for loaded in catalogue.profiles:
        profile = loaded.profile
        groups = ", ".join(group.name for group in profile.thread_groups)
        shape = given(profile.machine_shape) or "any"
        state = "no" if loaded.disabled else "yes"
        effect = effect_of(profile)
        source = printable(loaded.source)
        table.add_row(profile.id, source, shape, state, effect, groups, profile.description)
    console = results_console()
    console.print(table)
    for line in _disabled_lines(catalogue.profiles):
        console.print(line)


def _disabled_lines(profiles: "Iterable[LoadedProfile]") -> Iterator[str]:
    """Yield why profiles are disabled, one line for all of one source that have one reason."""
    alike: defaultdict[tuple[str, str], list[LoadedProfile]] = defaultdict(list)
    for loaded in profiles:
        if loaded.disabled:
            reason = loaded.disabled.replace(loaded.profile.id, "ID")
            alike[loaded.source, reason].append(loaded)
    for (source, reason), disabled in alike.items():
        ids = ", ".join(loaded.profile.id for loaded in disabled)
        why = disabled[0].disabled if len(disabled) == 1 else reason
        yield f"{ids} ({printable(source)}): {why}"
