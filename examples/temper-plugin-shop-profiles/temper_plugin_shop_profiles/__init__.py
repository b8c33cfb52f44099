"""The profiles of the shop's own programs: one TOML file each, beside this one."""

from importlib.resources import files

from temper_core import WorkloadProfile, hookimpl, parse_profile


@hookimpl
def temper_profiles() -> list[WorkloadProfile]:
    """Contribute every file, by name."""
    texts = sorted(file for file in files(__name__).iterdir() if file.name.endswith(".toml"))
    return [parse_profile(file.read_text(encoding="utf-8"), file.name) for file in texts]
