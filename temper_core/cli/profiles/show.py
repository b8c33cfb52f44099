"""``temper profiles show``: one profile."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from temper_core.cli.profiles.sources import load_profiles, profile_sources
from temper_core.cli.profiles.words import effect_of, given, profile_document
from temper_core.console import folded, print_json
from temper_core.suggestions import did_you_mean

if TYPE_CHECKING:
    from temper_core.profiles.catalogue import ProfileCatalogue
    from temper_core.records.profiles import LoadedProfile
    from temper_core.records.thread_groups import ThreadGroup

FACT_NAMES = 14
"""Cells of the names of a profile's facts."""


@click.command("show")
@click.argument("profile_id", metavar="ID")
@profile_sources
def command(profile_id: str, settings: Path | None, profiles: Path | None, output: str) -> None:
    """Show the profile ID, and each variant if it was tuned for several machines."""
    catalogue = load_profiles(settings, profiles)
    matching = [loaded for loaded in catalogue.profiles if loaded.profile.id == profile_id]
    if not matching:
        raise _unknown(profile_id, catalogue)
    if output == "json":
        print_json([profile_document(loaded) for loaded in matching])
        return
    for loaded in matching:
        _print_profile(loaded)


def _unknown(profile_id: str, catalogue: "ProfileCatalogue") -> Exception:
    from temper_core.errors import InputError

    for failure in catalogue.failures:
        if failure.profile == profile_id:
            reason = f"{failure.source}: {failure.reason}"
            return InputError(f"profile {profile_id!r} could not be loaded: {reason}")
    known = sorted({loaded.profile.id for loaded in catalogue.profiles})
    ids, meant = ", ".join(known) or "none", did_you_mean(profile_id, known)
    return InputError(f"no profile is called {profile_id!r}; there are: {ids}{meant}")


def _print_profile(loaded: "LoadedProfile") -> None:
    from temper_core.console import plain_table, results_console

    profile = loaded.profile
    console = results_console()
    click.echo(folded(f"{profile.id}: {profile.description}".rstrip(": ")))
    for name, value in _facts(loaded):
        click.echo(f"  {name:<{FACT_NAMES}}{folded(value, FACT_NAMES + 2)}")
    fractions = any(group.cpu_fraction is not None for group in profile.thread_groups)
    table = plain_table(*("group", "treatment", *fractions * ("cpu_fraction",), "threads"))
    for group in profile.thread_groups:
        fraction = "" if group.cpu_fraction is None else str(group.cpu_fraction)
        cells = (str(group.treatment), *fractions * (fraction,), _threads_of(group))
        table.add_row(group.name, *cells)
    console.print(table)


def _facts(loaded: "LoadedProfile") -> Iterator[tuple[str, str]]:
    profile = loaded.profile
    yield "from", loaded.source
    if loaded.lineage:
        yield "extends", ", ".join(loaded.lineage)
    yield "recognised by", given(profile.fingerprint) or "annotation only"
    yield "machine", given(profile.machine_shape) or "any"
    yield "traits", given(profile.traits) or "not known"
    yield "effect", effect_of(profile)
    yield "measured", given(profile.evidence, "effect", "figures") or "no evidence given"
    for figure in profile.evidence.figures:
        yield "figure", f"{figure}: {figure.effect.value}"
    for doubt in filter(None, (loaded.disabled, loaded.advice)):
        yield "but", doubt


def _threads_of(group: "ThreadGroup") -> str:
    return "\nor ".join(given(match) for match in group.match) or "all others"
