"""Families of profiles: pods without their profile, and profiles with expired evidence."""

from collections import Counter

from temper_core.metrics.families.agent import counted
from temper_core.metrics.families.reading import Family, Reading, Values
from temper_core.records.plans import ProfileCode

EXPIRED = "expired"
MOST_EXPIRED = 32
NOT_APPLIED = tuple(code for code in ProfileCode if code is not ProfileCode.TIE)


def _not_applied(reading: Reading) -> Values:
    if reading.snapshot is None:
        return ()
    counts = Counter(pod.profile_code for pod in reading.snapshot.pods if not pod.profile)
    return [((code.value,), float(counts[code.value])) for code in NOT_APPLIED]


def _expired(reading: Reading) -> Values:
    pods = reading.snapshot.pods if reading.snapshot else ()
    counts = Counter(pod.profile for pod in pods if pod.profile_code == EXPIRED)
    return counted(dict(counts.most_common(MOST_EXPIRED)))


PROFILES = (
    Family(
        "temper_profile_not_applied",
        "Pods whose claimed profile is not applied, by reason.",
        _not_applied,
        labels=("reason",),
        most=len(NOT_APPLIED),
    ),
    Family(
        "temper_profile_expired_pods",
        "Pods whose profile's evidence has expired; the profile is still applied.",
        _expired,
        labels=("profile",),
        absent="for a profile whose evidence is valid",
        most=MOST_EXPIRED,
    ),
)
