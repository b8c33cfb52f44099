"""The profile catalogue: the files of a directory, and what plugins ship."""

from collections.abc import Iterator
from pathlib import Path

from temper_core import documents
from temper_core.errors import DocumentError
from temper_core.plan.catalogue import ProfileCatalogue
from temper_core.plugin_host import PluginHost
from temper_core.records.profile_documents import parse_profile
from temper_core.records.profiles import (
    LoadedProfile,
    ProfileFailure,
    ShapeRange,
    WorkloadProfile,
)
from temper_core.settings.models import Settings


def load_catalogue(
    settings: Settings, host: PluginHost, directory: Path | None = None
) -> ProfileCatalogue:
    """Read every profile there is; one that cannot be read is a failure in the catalogue.

    *directory* takes the place of the one that the settings name. Files come before what plugins
    ship; who is chosen for a pod is for the plan to say.
    """
    files = list(_from_directory(directory or Path(settings.profiles.directory)))
    shipped = list(_from_plugins(host))
    loaded = (*files, *shipped)
    return ProfileCatalogue(
        profiles=tuple(entry for entry in loaded if isinstance(entry, LoadedProfile)),
        failures=tuple(entry for entry in loaded if isinstance(entry, ProfileFailure)),
    )


def _from_plugins(host: PluginHost) -> Iterator[LoadedProfile | ProfileFailure]:
    for contribution in host.gather("temper_profiles", WorkloadProfile):
        yield LoadedProfile(contribution.record, source=contribution.plugin)
    for claim in host.contested("temper_profiles"):
        yield ProfileFailure(" and ".join(claim.plugins), claim.name, claim.reason)


def _from_directory(directory: Path) -> Iterator[LoadedProfile | ProfileFailure]:
    try:
        paths = profile_files(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        yield ProfileFailure(str(directory), "", error.strerror or str(error))
        return
    owners: dict[tuple[str, ShapeRange], Path] = {}
    for path in paths:
        entry = _read(path)
        if isinstance(entry, LoadedProfile):
            key = (entry.profile.id, entry.profile.machine_shape)
            owner = owners.setdefault(key, path)
            if owner != path:
                entry = ProfileFailure(str(path), entry.profile.id, _doubled(owner))
        yield entry


def profile_files(directory: Path) -> list[Path]:
    """Return the profile files of *directory* by name; raise OSError where it cannot be listed."""
    # A mounted ConfigMap holds its files as links into a hidden folder: links are followed,
    # hidden names are not ours.
    return sorted(path for path in directory.iterdir() if _is_profile(path))


def _is_profile(path: Path) -> bool:
    return path.suffix == ".toml" and not path.name.startswith(".")


def _doubled(owner: Path) -> str:
    return f"has the id and the machine_shape of {owner.name}, whose name comes first"


def _read(path: Path) -> LoadedProfile | ProfileFailure:
    if path.exists() and not path.is_file():  # a pipe would be waited for
        return ProfileFailure(str(path), "", "is not a file")
    text = ""
    try:
        text = documents.read_text(path)
        return LoadedProfile(parse_profile(text, str(path)), source=str(path), is_file=True)
    except DocumentError as error:
        return ProfileFailure(str(path), _id_in(text), "; ".join(error.problems))


def _id_in(text: str) -> str:
    """Return the id that a profile gives itself, where that much can be read."""
    try:
        table = documents.parse_toml(text, source="profile")
    except DocumentError:
        return ""
    identifier = table.get("id", "")
    return identifier if isinstance(identifier, str) else ""
