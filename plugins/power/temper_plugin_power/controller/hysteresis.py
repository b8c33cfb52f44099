"""When a profile that was measured takes the place of another one."""

from attrs import frozen

from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.controller.stored_profiles import StoredProfile
from temper_plugin_power.workloads.profiling import WorkloadProfile

Categories = tuple[object, ...]


@frozen
class Candidate:
    """Other categories than those that are written, and since when they are seen, in seconds."""

    categories: Categories
    since: float


@frozen
class Decision:
    """The decision about a profile."""

    is_written: bool
    is_settled: bool
    """No more classification is needed until the next one is due."""
    candidate: Candidate | None = None


def categories_of(profile: PowerProfile) -> Categories:
    """Return what consumers act on: all but numbers and reasons."""
    cpu, gpu = profile.cpu, profile.gpu
    return (
        profile.workload_class,
        profile.reschedulable,
        *(cpu.intensity, cpu.bound, cpu.cap_sensitivity),
        *(gpu.intensity, gpu.bound, gpu.cap_sensitivity),
    )


def decide(
    stored: StoredProfile | None,
    fresh: WorkloadProfile,
    candidate: Candidate | None,
    now: float,
    hold_s: float,
) -> Decision:
    """Return whether *fresh* is to be written over *stored*, at *now* in seconds.

    Hints count at once, and the first metrics do. After that other categories count once they have
    held for *hold_s*, which is the window of the metrics: the two windows then have no time in
    common. Without metrics a measured profile stays.
    """
    is_measured = fresh.signals is not None
    if stored is None or not stored.is_manual:
        if stored is None or _counts_at_once(stored, fresh):
            return Decision(is_written=True, is_settled=is_measured)
        if is_measured:
            return _held(fresh, candidate, now, hold_s)
    return Decision(is_written=False, is_settled=stored.is_manual)


def _counts_at_once(stored: StoredProfile, fresh: WorkloadProfile) -> bool:
    """Whether the hints have changed, or there is nothing measured that could be kept."""
    if not stored.is_measured or stored.profile.hints != fresh.profile.hints:
        return True
    is_same = categories_of(fresh.profile) == categories_of(stored.profile)
    is_measured = fresh.signals is not None
    return (is_measured and is_same) or differs_by_hints(stored.profile, fresh.profile)


def _held(
    fresh: WorkloadProfile, candidate: Candidate | None, now: float, hold_s: float
) -> Decision:
    """Write other categories once they have held for *hold_s*."""
    categories = categories_of(fresh.profile)
    if candidate is None or candidate.categories != categories:
        candidate = Candidate(categories, now)
    if now - candidate.since < hold_s:
        return Decision(is_written=False, is_settled=False, candidate=candidate)
    return Decision(is_written=True, is_settled=True)


def differs_by_hints(stored: PowerProfile, fresh: PowerProfile) -> bool:
    """Whether a field that annotations or traits decide has another value."""
    explicit = {
        "criticality.class": (stored.workload_class, fresh.workload_class),
        "migratability.reschedulable": (stored.reschedulable, fresh.reschedulable),
        "cpu.intensity": (stored.cpu.intensity, fresh.cpu.intensity),
        "cpu.bound": (stored.cpu.bound, fresh.cpu.bound),
        "gpu.bound": (stored.gpu.bound, fresh.gpu.bound),
        "cpu.capSensitivity": (stored.cpu.cap_sensitivity, fresh.cpu.cap_sensitivity),
        "gpu.capSensitivity": (stored.gpu.cap_sensitivity, fresh.gpu.cap_sensitivity),
    }
    return any(fresh.is_explicit(path) and old != new for path, (old, new) in explicit.items())


def is_told_by_hints(stored: StoredProfile, fresh: PowerProfile) -> bool:
    """Whether *stored* agrees with the hints of *fresh* already."""
    is_same = stored.profile.hints == fresh.hints and not differs_by_hints(stored.profile, fresh)
    return stored.is_manual or (bool(stored.status) and is_same)
