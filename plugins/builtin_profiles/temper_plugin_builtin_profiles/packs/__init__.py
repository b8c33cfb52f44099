"""The profiles, one TOML file each."""

from importlib.resources import files

from temper_core import WorkloadProfile, parse_profile


def read_packs() -> list[WorkloadProfile]:
    """Return every pack, by file name. Raise DocumentError for a malformed one."""
    files_by_name = sorted(files(__name__).iterdir(), key=lambda file: file.name)
    return [
        parse_profile(file.read_text(encoding="utf-8"), file.name)
        for file in files_by_name
        if file.name.endswith(".toml")
    ]
