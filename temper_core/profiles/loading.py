"""Load the profile catalogue from the files of a directory and from plugins."""

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
    """Read all profiles. An unreadable profile becomes a failure in the catalogue.

    *directory* replaces that of the settings. Files come before the profiles of plugins.
    """
    files = ProfileFiles(directory or Path(settings.profiles.directory))
    return catalogue_of((*files.look(), *shipped_profiles(host)), settings.profiles.enable)


def catalogue_of(entries: Iterable[Entry], enable: tuple[str, ...] = ()) -> ProfileCatalogue:
    """Make a catalogue of *entries*. Every profile is completed, or becomes a failure.

    *enable* are ids of profiles that are enabled though their documents disable them.
    """
    return Completion(enable=enable).catalogue(entries)


def shipped_profiles(host: PluginHost, *, again: bool = False) -> Iterator[Entry]:
    """Yield the profiles of plugins, and a failure for each id that two plugins claim.

    With *again* only plugins are asked that have not answered yet.
    """
    gather = host.gather_again if again else host.gather
    for contribution in gather("temper_profiles", WorkloadProfile):
        yield LoadedProfile(contribution.record, source=contribution.plugin)
    for claim in host.contested("temper_profiles"):
        yield ProfileFailure(" and ".join(claim.plugins), claim.name, claim.reason)
