"""Profiles that only an annotation chooses, because they do not help by default."""

from collections.abc import Collection, Iterable

from temper_core.records.pods import PROFILE_ANNOTATIONS
from temper_core.records.profile_evidence import Effect, Evidence
from temper_core.records.profiles import LoadedProfile, ProfileFailure, WorkloadProfile

SETTING = "[profiles] enable"

_CONCLUSIONS = {
    Effect.NOT_MEASURED: "its effect was not measured",
    Effect.WITHIN_SPREAD: "it does not beat its tier alone beyond the spread",
    Effect.WORSE: "it is worse than its tier alone",
}


def disabled_reason(profile: WorkloadProfile, enable: Collection[str]) -> str:
    """Return why only an annotation chooses *profile*. Empty if it is enabled.

    *enable* are the ids that the settings enable.
    """
    if profile.enabled or profile.id in enable:
        return ""
    return (
        f"disabled by default: {_why(profile.evidence)}; "
        f"the annotation {PROFILE_ANNOTATIONS[0]}: {profile.id} chooses it, "
        f'and {SETTING} = ["{profile.id}"] enables it'
    )


def _why(evidence: Evidence) -> str:
    effect = evidence.effect
    if effect is None or effect not in _CONCLUSIONS:
        return "its document says enabled = false"
    figure = next((figure for figure in evidence.figures if figure.effect is effect), None)
    return _CONCLUSIONS[effect] + (f", {figure}" if figure else "")


def unknown_ids(enable: Iterable[str], profiles: Iterable[LoadedProfile]) -> list[ProfileFailure]:
    """Return a failure for each id in *enable* that is the id of no profile."""
    known = {loaded.profile.id for loaded in profiles}
    return [
        # No id: a pod's annotation may still name another profile by this alias.
        ProfileFailure(SETTING, "", f"no profile has the id {wanted!r}")
        for wanted in dict.fromkeys(enable)
        if wanted not in known
    ]
