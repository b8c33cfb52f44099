"""The profiles of a node, and the choice of one for a pod."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from attrs import define, evolve, field, frozen

from temper_core.bounded_text import first_of, shortened
from temper_core.profiles.fingerprints import preference, rank, shape_misfit, version_misfit
from temper_core.profiles.recognition import Recognition
from temper_core.records.contributions import Detection
from temper_core.records.machine import MachineShape
from temper_core.records.plans import ProfileCode
from temper_core.records.pods import Pod
from temper_core.records.profiles import LoadedProfile, ProfileFailure
from temper_core.suggestions import did_you_mean

MOST_NAMED = 20
"""Profiles that one reason names."""
LONGEST_REASON = 1_500
"""Characters of the reason for a choice, of which each pod has one."""
MOST_FAILURES = 100
"""Failures in a snapshot, a recording and an answer. The log has all of them."""

Detect = Callable[[Pod], Detection | None]


def _bounded(reason: str) -> str:
    return shortened(reason, LONGEST_REASON)


@frozen
class Choice:
    """The profile of a pod and the reason. Without one, why none was applied, also as a code.

    ``reason`` is empty if nothing claims the pod. A disabled profile is a reason without a code,
    because nothing is wrong.
    """

    loaded: LoadedProfile | None = None
    reason: str = field(default="", converter=_bounded)
    code: ProfileCode | None = None

    @property
    def is_settled(self) -> bool:
        """Whether a profile is applied, or a claim failed that no other may replace."""
        return self.loaded is not None or self.code is not None


UNCLAIMED = Choice()


@frozen
class _Claim:
    """A claim of a pod for a profile: its sign, and whether an annotation named the profile."""

    pod: Pod
    machine: MachineShape
    sign: str
    is_named: bool = False


def detect_nothing(_: Pod) -> None:
    """Detect nothing, in place of absent detectors."""


@define(frozen=True, slots=False)
class ProfileCatalogue:
    """All loaded profiles, and the failures of those that could not be loaded.

    ``choose`` tries trial, annotation, detector, image and main process, in this order. ``trials``
    maps a pod's key to its profile on trial.
    """

    profiles: tuple[LoadedProfile, ...] = ()
    failures: tuple[ProfileFailure, ...] = ()
    trials: Mapping[str, LoadedProfile] = field(factory=dict)

    def choose(self, pod: Pod, machine: MachineShape, detect: Detect = detect_nothing) -> Choice:
        """Return the profile of *pod* and the reason. Without one, why none was applied.

        A named profile that does not fit the machine, or is missing, is never replaced by a guess.
        """
        trial = self.trials.get(pod.key)
        if trial is not None:
            return Choice(trial, f"{trial.source}: {trial.profile.id}")
        annotated = pod.wanted_profile
        if annotated is not None:
            return self._wanted(pod, machine, *annotated)
        detection = detect(pod)
        if detection is None:
            return self._recognised(pod, machine)
        detected = self._named(detection.profile, _Claim(pod, machine, _sign(detection)))
        is_known = detection.profile in self._by_id and detected.is_settled
        if is_known and detected.code is not ProfileCode.VERSION:
            return detected
        # A detector guesses, and knows no version: the image may still select another profile.
        recognised = self._recognised(pod, machine)
        return recognised if recognised.reason else detected

    @cached_property
    def first_failures(self) -> tuple[ProfileFailure, ...]:
        """The first ``MOST_FAILURES`` failures, and one that counts the others."""
        left = len(self.failures) - MOST_FAILURES
        if left <= 0:
            return self.failures
        rest = ProfileFailure("profiles", "", f"{left} more could not be loaded")
        return (*self.failures[:MOST_FAILURES], rest)

    @cached_property
    def _by_id(self) -> dict[str, tuple[LoadedProfile, ...]]:
        ids = sorted({loaded.profile.id for loaded in self.profiles})
        return {profile_id: tuple(self._with_id(profile_id)) for profile_id in ids}

    @cached_property
    def _recognition(self) -> Recognition:
        return Recognition(self._by_id)

    def _with_id(self, profile_id: str) -> list[LoadedProfile]:
        variants = [loaded for loaded in self.profiles if loaded.profile.id == profile_id]
        return sorted(variants, key=preference)

    def _wanted(self, pod: Pod, machine: MachineShape, annotation: str, wanted: str) -> Choice:
        """Choose the profile with the id *wanted*, or else those with it as a further name."""
        sign = f"annotation {annotation}: {wanted}"
        is_id = wanted in self._by_id or any(
            profile_id.profile == wanted for profile_id in self.failures
        )
        aliased = [] if is_id else self._also_called(wanted)
        if not aliased:
            return self._named(wanted, _Claim(pod, machine, sign, is_named=True))
        return _best(
            [
                self._named(
                    profile_id, _Claim(pod, machine, f"{sign}, as {profile_id} is called too", True)
                )
                for profile_id in aliased
            ]
        )

    def _also_called(self, name: str) -> list[str]:
        return [
            profile_id
            for profile_id, candidates in self._by_id.items()
            if any(name in candidate.profile.fingerprint.annotations for candidate in candidates)
        ]

    def _named(self, profile_id: str, claim: _Claim) -> Choice:
        candidates = self._by_id.get(profile_id, ())
        shapes = [
            (candidate, shape_misfit(candidate.profile.machine_shape, claim.machine))
            for candidate in candidates
        ]
        fitting = [loaded for loaded, misfit in shapes if not misfit]
        if fitting:
            return _applied(fitting, claim)
        if candidates:
            listed = [f"{loaded.source}: {misfit}" for loaded, misfit in shapes]
            misfits = "; ".join(first_of(listed, MOST_NAMED))
            return Choice(None, f"{claim.sign}, not applied: {misfits}", ProfileCode.SHAPE)
        return self._absent(profile_id, claim)

    def _absent(self, profile_id: str, claim: _Claim) -> Choice:
        for failure in self.failures:
            if failure.profile == profile_id:
                why = f"that profile could not be loaded ({failure.source}: {failure.reason})"
                return Choice(None, f"{claim.sign}, but {why}", ProfileCode.NOT_LOADED)
        ids = ", ".join(first_of([*self._by_id], MOST_NAMED)) or "none"
        why = f"there is no such profile; loaded are {ids}{did_you_mean(profile_id, self._by_id)}"
        return Choice(None, f"{claim.sign}, but {why}", ProfileCode.UNKNOWN_ID)

    def _recognised(self, pod: Pod, machine: MachineShape) -> Choice:
        disabled: list[Choice] = []
        for signs_of in (self._recognition.image_signs, self._recognition.process_signs):
            choices = [
                self._named(profile_id, _Claim(pod, machine, f"{sign} is {profile_id}'s"))
                for profile_id, sign in signs_of(pod)
            ]
            if settled := [choice for choice in choices if choice.is_settled]:
                return _best(settled)
            disabled += choices
        return disabled[0] if disabled else UNCLAIMED


def _applied(fitting: Sequence[LoadedProfile], claim: _Claim) -> Choice:
    """Choose among profiles of one id that fit the machine, the preferred one first."""
    loaded = fitting[0]
    if loaded.disabled and not claim.is_named:
        return Choice(None, f"{claim.sign}, not applied: {loaded.source}: {loaded.disabled}")
    misfit = version_misfit(loaded.profile.fingerprint, claim.pod, is_named=claim.is_named)
    if misfit:
        why = f"{claim.sign}, not applied: {loaded.source}: {misfit}"
        return Choice(None, why, ProfileCode.VERSION)
    advice = f"; {loaded.advice}" if loaded.advice else ""
    choice = Choice(loaded, f"{claim.sign} (from {loaded.source}){advice}")
    return _over(choice, [rival for rival in fitting[1:] if rank(rival) == rank(loaded)])


def _best(choices: Sequence[Choice]) -> Choice:
    """Return the preferred one of *choices* for several ids, or the first if none is applied."""
    fitting = [(choice.loaded, choice) for choice in choices if choice.loaded is not None]
    if not fitting:
        return choices[0]
    loaded, best = min(fitting, key=lambda candidate: preference(candidate[0]))
    rivals = [candidate for candidate, _ in fitting if candidate is not loaded]
    return _over(best, [candidate for candidate in rivals if rank(candidate) == rank(loaded)])


def _over(choice: Choice, rivals: Sequence[LoadedProfile]) -> Choice:
    """Note the *rivals* that tied with the choice. The names of the sources broke the tie."""
    if not rivals:
        return choice
    listed = [f"{rival.profile.id} ({rival.source})" for rival in rivals]
    names = ", ".join(first_of(listed, MOST_NAMED))
    why = f"{choice.reason}; a tie with {names}, decided by the name of the source"
    return evolve(choice, reason=why, code=ProfileCode.TIE)


def _sign(detection: Detection) -> str:
    return f"detected as {detection.profile}" + (f" by {detection.why}" if detection.why else "")
