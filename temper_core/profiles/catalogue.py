"""The profiles of a node, and which of them a pod gets."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from attrs import define, evolve, field, frozen

from temper_core.profiles.fingerprints import (
    image_sign,
    preference,
    process_sign,
    rank,
    shape_misfit,
    version_misfit,
)
from temper_core.records.contributions import Detection
from temper_core.records.machine import MachineShape
from temper_core.records.plans import ProfileCode
from temper_core.records.pods import Pod
from temper_core.records.profiles import LoadedProfile, ProfileFailure

Detect = Callable[[Pod], Detection | None]


@frozen
class Choice:
    """The profile of a pod and why. Without one, why none was applied, and that as a code.

    ``reason`` is empty where nothing claims the pod.
    """

    loaded: LoadedProfile | None = None
    reason: str = ""
    code: ProfileCode | None = None


UNCLAIMED = Choice()


@frozen
class _Claim:
    """What claims a pod for a profile: the sign of it, and whether somebody named the profile."""

    pod: Pod
    machine: MachineShape
    sign: str
    is_named: bool = False


def detect_nothing(_: Pod) -> None:
    """Stand in for the detectors where there are none."""


@define(frozen=True, slots=False)
class ProfileCatalogue:
    """Every profile that was loaded, and those that could not be.

    ``choose`` goes by trial, annotation, detector, image, main process, in this order. ``trials``
    are the profiles on trial by the key of the pod.
    """

    profiles: tuple[LoadedProfile, ...] = ()
    failures: tuple[ProfileFailure, ...] = ()
    trials: Mapping[str, LoadedProfile] = field(factory=dict)

    def choose(self, pod: Pod, machine: MachineShape, detect: Detect = detect_nothing) -> Choice:
        """Return the profile of *pod* and why. Without one, why none was applied.

        A profile that is named but does not fit the machine, or is not there, is never replaced by
        a guess.
        """
        trial = self.trials.get(pod.key)
        if trial is not None:
            return Choice(trial, f"{trial.source}: {trial.profile.id}")
        wanted = pod.wanted_profile
        if wanted is not None:
            return self._wanted(pod, machine, *wanted)
        detection = detect(pod)
        if detection is None:
            return self._recognised(pod, machine)
        named = self._named(detection.profile, _Claim(pod, machine, _sign(detection)))
        if detection.profile in self._by_id and named.code is not ProfileCode.VERSION:
            return named
        # A detector only guesses, and of no version: the image may still tell another profile.
        recognised = self._recognised(pod, machine)
        return recognised if recognised.reason else named

    @cached_property
    def _by_id(self) -> dict[str, tuple[LoadedProfile, ...]]:
        ids = sorted({loaded.profile.id for loaded in self.profiles})
        return {each: tuple(self._with_id(each)) for each in ids}

    def _with_id(self, profile_id: str) -> list[LoadedProfile]:
        found = [loaded for loaded in self.profiles if loaded.profile.id == profile_id]
        return sorted(found, key=preference)

    def _wanted(self, pod: Pod, machine: MachineShape, annotation: str, wanted: str) -> Choice:
        """Choose what the annotation names: a profile's id, or else a further one of its own."""
        sign = f"annotation {annotation}: {wanted}"
        is_id = wanted in self._by_id or any(each.profile == wanted for each in self.failures)
        aliased = [] if is_id else self._also_called(wanted)
        if not aliased:
            return self._named(wanted, _Claim(pod, machine, sign, is_named=True))
        return _best(
            [
                self._named(each, _Claim(pod, machine, f"{sign}, as {each} is called too", True))
                for each in aliased
            ]
        )

    def _also_called(self, name: str) -> list[str]:
        return [
            profile_id
            for profile_id, candidates in self._by_id.items()
            if any(name in each.profile.fingerprint.annotations for each in candidates)
        ]

    def _named(self, profile_id: str, claim: _Claim) -> Choice:
        candidates = self._by_id.get(profile_id, ())
        shapes = [
            (each, shape_misfit(each.profile.machine_shape, claim.machine)) for each in candidates
        ]
        fitting = [loaded for loaded, misfit in shapes if not misfit]
        if fitting:
            return _applied(fitting, claim)
        if candidates:
            misfits = "; ".join(f"{loaded.source}: {misfit}" for loaded, misfit in shapes)
            return Choice(None, f"{claim.sign}, not applied: {misfits}", ProfileCode.SHAPE)
        return self._absent(profile_id, claim)

    def _absent(self, profile_id: str, claim: _Claim) -> Choice:
        for failure in self.failures:
            if failure.profile == profile_id:
                why = f"that profile could not be loaded ({failure.source}: {failure.reason})"
                return Choice(None, f"{claim.sign}, but {why}", ProfileCode.NOT_LOADED)
        known = ", ".join(self._by_id) or "none"
        why = f"there is no such profile; loaded are {known}"
        return Choice(None, f"{claim.sign}, but {why}", ProfileCode.UNKNOWN_ID)

    def _recognised(self, pod: Pod, machine: MachineShape) -> Choice:
        for sign_of in (image_sign, process_sign):
            choices = [
                self._named(profile_id, _Claim(pod, machine, f"{sign} is {profile_id}'s"))
                for profile_id, sign in self._signs(pod, sign_of)
            ]
            if choices:
                return _best(choices)
        return UNCLAIMED

    def _signs(self, pod: Pod, sign_of: Callable[..., str]) -> list[tuple[str, str]]:
        found: dict[str, str] = {}
        for profile_id, candidates in self._by_id.items():
            for loaded in candidates:
                sign = sign_of(loaded.profile.fingerprint, pod)
                if sign:
                    found.setdefault(profile_id, sign)
        return list(found.items())


def _applied(fitting: Sequence[LoadedProfile], claim: _Claim) -> Choice:
    """Choose among profiles of one id that fit the machine, the preferred one first."""
    loaded = fitting[0]
    misfit = version_misfit(loaded.profile.fingerprint, claim.pod, is_named=claim.is_named)
    if misfit:
        why = f"{claim.sign}, not applied: {loaded.source}: {misfit}"
        return Choice(None, why, ProfileCode.VERSION)
    advice = f"; {loaded.advice}" if loaded.advice else ""
    choice = Choice(loaded, f"{claim.sign} (from {loaded.source}){advice}")
    return _over(choice, [each for each in fitting[1:] if rank(each) == rank(loaded)])


def _best(choices: Sequence[Choice]) -> Choice:
    """Return the preferred one of *choices* for several ids. The first where none is applied."""
    fitting = [(choice.loaded, choice) for choice in choices if choice.loaded is not None]
    if not fitting:
        return choices[0]
    loaded, best = min(fitting, key=lambda each: preference(each[0]))
    others = [each for each, _ in fitting if each is not loaded]
    return _over(best, [each for each in others if rank(each) == rank(loaded)])


def _over(choice: Choice, rivals: Sequence[LoadedProfile]) -> Choice:
    """Say with which *rivals* the choice had a tie, that only the names of their sources broke."""
    if not rivals:
        return choice
    named = ", ".join(f"{each.profile.id} ({each.source})" for each in rivals)
    why = f"{choice.reason}; a tie with {named}, decided by the name of the source"
    return evolve(choice, reason=why, code=ProfileCode.TIE)


def _sign(detection: Detection) -> str:
    return f"detected as {detection.profile}" + (f" by {detection.why}" if detection.why else "")
