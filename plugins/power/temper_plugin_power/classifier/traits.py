"""The table ``[traits]`` of a workload's thread profile, as hints of the classifier."""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from temper_plugin_power.classifier.demands import Judgement
from temper_plugin_power.classifier.hints import Hints


@frozen
class ThreadTraits:
    """The traits of a thread profile. None is a trait that it does not give."""

    profile: str = ""
    """The id of the thread profile."""
    workload_class: str | None = None
    reschedulable: bool | None = None
    cpu_intensity: str | None = None
    cpu_bound: str | None = None
    cpu_sensitivity: str | None = None
    gpu_bound: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The fields of the profile's status that the traits give, as JSON paths."""
        given = {
            "criticality.class": self.workload_class,
            "migratability.reschedulable": self.reschedulable,
            "cpu.intensity": self.cpu_intensity,
            "cpu.bound": self.cpu_bound,
            "cpu.capSensitivity": self.cpu_sensitivity,
            "gpu.bound": self.gpu_bound,
        }
        return tuple(path for path, value in given.items() if value is not None)

    def evidence(self, hints: Hints) -> Mapping[str, Any]:
        """Return the evidence: the thread profile, and the paths that follow from its traits.

        A path that *hints* give as well follows from them. Empty without any trait.
        """
        counted = [path for path in self.paths if path not in hints.paths]
        return {"threadProfile": self.profile, "traits": counted} if counted else {}


NO_TRAITS = ThreadTraits()


def with_cpu_traits(judgement: Judgement, traits: ThreadTraits) -> Judgement:
    """Return *judgement* with the traits that take the place of what was measured."""
    for name, field, value in (
        ("cpu-intensity", "intensity", traits.cpu_intensity),
        ("cpu-bound", "bound", traits.cpu_bound),
        ("cpu-cap-sensitivity", "cap_sensitivity", traits.cpu_sensitivity),
    ):
        if value is not None:
            judgement = judgement.changed(_reason(name, value, traits), **{field: value})
    return judgement


def with_gpu_traits(judgement: Judgement, traits: ThreadTraits) -> Judgement:
    """Return *judgement* with the trait of the GPUs.

    A bound implies GPU work. If none was measured, intensity and sensitivity become medium, the
    values of the rules for a GPU without metrics.
    """
    value = traits.gpu_bound
    if value is None:
        return judgement
    is_unmeasured = judgement.demand.intensity == "none" != value
    usual = "medium" if is_unmeasured else ""
    reason = _reason("gpu-bound", value, traits)
    return judgement.changed(reason, bound=value, intensity=usual, cap_sensitivity=usual)


def _reason(name: str, value: str, traits: ThreadTraits) -> str:
    return f"{name}={value} (traits of profile {traits.profile})"
