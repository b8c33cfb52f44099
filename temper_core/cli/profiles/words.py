"""Profiles in words and as documents, as several sub-commands show them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attrs import AttrsInstance

    from temper_core.records.profiles import LoadedProfile, WorkloadProfile


def profile_document(loaded: "LoadedProfile") -> dict[str, Any]:
    """Return a loaded profile ready for JSON, with its origin."""
    import attrs

    origin = {
        "source": loaded.source,
        "is_file": loaded.is_file,
        "extends": list(loaded.lineage),
        "expired": loaded.expired,
        "disabled": loaded.disabled,
    }
    return {**origin, **attrs.asdict(loaded.profile)}


def effect_of(profile: "WorkloadProfile") -> str:
    """Return the measured effect that *profile* states, ``not stated`` without one."""
    effect = profile.evidence.effect
    return "not stated" if effect is None else effect.value


def given(record: "AttrsInstance", *but: str) -> str:
    """Return the fields of *record* that are set, by their names in the document, except *but*."""
    import attrs

    def is_told(field: "attrs.Attribute[Any]", value: object) -> bool:
        return field.name not in but and value not in (None, "", ())

    values = attrs.asdict(record, filter=is_told)
    return ", ".join(f"{key} {_said(value)}" for key, value in values.items())


def _said(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        is_range = all(isinstance(item, int | float) for item in value)
        return ("-" if is_range else " ").join(map(str, value))
    return str(value)
