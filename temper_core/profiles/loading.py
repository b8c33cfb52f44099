"""The profile catalogue: the files of a directory, and what plugins ship."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from temper_core.plugin_host import PluginHost
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.profiles.completion import Completion
from temper_core.profiles.files import Entry, ProfileFiles
from temper_core.records.profiles import LoadedProfile, ProfileFailure, WorkloadProfile
from temper_core.settings.models import Settings


def load_catalogue(
    settings: Settings, host: PluginHost, directory: Path | None = None
) -> ProfileCatalogue:
    """Read every profile there is. One that cannot be read is a failure in the catalogue.

    *directory* takes the place of the one that the settings name. Files come before what plugins
    ship. Who is chosen for a pod is for the plan to say.
    """
    files = ProfileFiles(directory or Path(settings.profiles.directory))
    return catalogue_of((*files.look(), *shipped_profiles(host)))


def catalogue_of(entries: Iterable[Entry]) -> ProfileCatalogue:
    """Make a catalogue of what was found. Every profile is completed, or is a failure."""
    return Completion().catalogue(entries)


def shipped_profiles(host: PluginHost) -> Iterator[Entry]:
    """Yield what plugins ship, and a failure for each id that two of them claim."""
    for contribution in host.gather("temper_profiles", WorkloadProfile):
        yield LoadedProfile(contribution.record, source=contribution.plugin)
    for claim in host.contested("temper_profiles"):
        yield ProfileFailure(" and ".join(claim.plugins), claim.name, claim.reason)
