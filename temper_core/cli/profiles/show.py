"""``temper profiles show``: one profile."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from temper_core.cli.profiles.sources import load_profiles, profile_sources
from temper_core.cli.profiles.words import effect_of, given, profile_document
from temper_core.console import print_json
from temper_core.suggestions import did_you_mean

if TYPE_CHECKING:
    from temper_core.profiles.catalogue import ProfileCatalogue
    from temper_core.records.profiles import LoadedProfile
    from temper_core.records.thread_groups import ThreadGroup


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
    console.print(f"{profile.id}: {profile.description}".rstrip(": "))
    console.print(f"  from          {loaded.source}")
    if loaded.lineage:
        console.print(f"  extends       {', '.join(loaded.lineage)}")
    console.print(f"  recognised by {given(profile.fingerprint) or 'annotation only'}")
    console.print(f"  machine       {given(profile.machine_shape) or 'any'}")
    console.print(f"  traits        {given(profile.traits) or 'not known'}")
    console.print(f"  effect        {effect_of(profile)}")
    measured = given(profile.evidence, "effect", "figures")
    console.print(f"  measured      {measured or 'no evidence given'}")
    for figure in profile.evidence.figures:
        console.print(f"  figure        {figure}: {figure.effect.value}")
    if loaded.disabled:
        console.print(f"  but           {loaded.disabled}")
    if loaded.advice:
        console.print(f"  but           {loaded.advice}")
    table = plain_table("group", "threads", "treatment", "cpu_fraction")
    for group in profile.thread_groups:
        fraction = "" if group.cpu_fraction is None else str(group.cpu_fraction)
        table.add_row(group.name, _threads_of(group), str(group.treatment), fraction)
    console.print(table)


def _threads_of(group: "ThreadGroup") -> str:
    return " or ".join(given(match) for match in group.match) or "all others"
