"""The profiles themselves: one TOML file each, read when they are asked for."""

from importlib.resources import files

from temper_core import WorkloadProfile, parse_profile


def read_packs() -> list[WorkloadProfile]:
    """Return every pack, by file name. Raise DocumentError for one that does not fit."""
    found = sorted(files(__name__).iterdir(), key=lambda file: file.name)
    return [
        parse_profile(file.read_text(encoding="utf-8"), file.name)
        for file in found
        if file.name.endswith(".toml")
    ]
