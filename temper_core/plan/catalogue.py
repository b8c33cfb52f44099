"""The profiles of a node, and which of them a pod gets."""

from collections.abc import Callable
from functools import cached_property

from attrs import define

from temper_core.plan.fingerprints import (
    image_sign,
    preference,
    process_sign,
    shape_misfit,
)
from temper_core.records.contributions import Detection
from temper_core.records.machine import MachineShape
from temper_core.records.pods import Pod
from temper_core.records.profiles import LoadedProfile, ProfileFailure

Detect = Callable[[Pod], Detection | None]
Choice = tuple[LoadedProfile | None, str]

UNCLAIMED: Choice = (None, "")


def detect_nothing(_: Pod) -> None:
    """Stand in for the detectors where there are none."""


@define(frozen=True, slots=False)
class ProfileCatalogue:
    """Every profile that was loaded, and those that could not be.

    ``choose`` goes by annotation, detector, image, main process, in this order.
    """

    profiles: tuple[LoadedProfile, ...] = ()
    failures: tuple[ProfileFailure, ...] = ()

    def choose(self, pod: Pod, machine: MachineShape, detect: Detect = detect_nothing) -> Choice:
        """Return the profile of *pod* and why; without one, why none was applied.

        The reason is empty where nothing claims the pod. A profile that is named but does not
        fit the machine, or is not there, is never replaced by a guess.
        """
        wanted = pod.wanted_profile
        if wanted is not None:
            annotation, profile_id = wanted
            return self._named(profile_id, machine, f"annotation {annotation}: {profile_id}")
        detection = detect(pod)
        if detection is None:
            return self._recognised(pod, machine)
        named = self._named(detection.profile, machine, _sign(detection))
        if detection.profile in self._by_id:
            return named
        # A detector only guesses: where its profile is not there, the image may still tell.
        recognised = self._recognised(pod, machine)
        return named if recognised == UNCLAIMED else recognised

    @cached_property
    def _by_id(self) -> dict[str, tuple[LoadedProfile, ...]]:
        ids = sorted({loaded.profile.id for loaded in self.profiles})
        return {each: tuple(self._with_id(each)) for each in ids}

    def _with_id(self, profile_id: str) -> list[LoadedProfile]:
        found = [loaded for loaded in self.profiles if loaded.profile.id == profile_id]
        return sorted(found, key=preference)

    def _named(self, profile_id: str, machine: MachineShape, sign: str) -> Choice:
        candidates = self._by_id.get(profile_id, ())
        for loaded in candidates:
            if not shape_misfit(loaded.profile.machine_shape, machine):
                return loaded, f"{sign} (from {loaded.source})"
        if candidates:
            return None, f"{sign}, not applied: {_misfits(candidates, machine)}"
        return None, f"{sign}, but {self._absence(profile_id)}"

    def _absence(self, profile_id: str) -> str:
        for failure in self.failures:
            if failure.profile == profile_id:
                return f"that profile could not be loaded ({failure.source}: {failure.reason})"
        known = ", ".join(self._by_id) or "none"
        return f"there is no such profile; loaded are {known}"

    def _recognised(self, pod: Pod, machine: MachineShape) -> Choice:
        for sign_of in (image_sign, process_sign):
            choices = [
                self._named(profile_id, machine, f"{sign} is {profile_id}'s")
                for profile_id, sign in self._signs(pod, sign_of)
            ]
            fitting = [(loaded, why) for loaded, why in choices if loaded is not None]
            if fitting:
                return min(fitting, key=lambda choice: preference(choice[0]))
            if choices:
                return choices[0]
        return UNCLAIMED

    def _signs(self, pod: Pod, sign_of: Callable[..., str]) -> list[tuple[str, str]]:
        found: dict[str, str] = {}
        for profile_id, candidates in self._by_id.items():
            for loaded in candidates:
                sign = sign_of(loaded.profile.fingerprint, pod)
                if sign:
                    found.setdefault(profile_id, sign)
        return list(found.items())


def _sign(detection: Detection) -> str:
    return f"detected as {detection.profile}" + (f" by {detection.why}" if detection.why else "")


def _misfits(candidates: tuple[LoadedProfile, ...], machine: MachineShape) -> str:
    return "; ".join(
        f"{loaded.source}: {shape_misfit(loaded.profile.machine_shape, machine)}"
        for loaded in candidates
    )
