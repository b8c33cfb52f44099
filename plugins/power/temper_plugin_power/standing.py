"""The class of a pod for placement: by its own annotations, then by its workload's profile."""

from attrs import frozen

from temper_plugin_power.classifier.hints import Hints
from temper_plugin_power.classifier.profiles import PowerProfile
from temper_plugin_power.defaults import MIN_CONFIDENCE


@frozen
class Standing:
    """The class of a pod, and how much power caps would slow it. None is not known."""

    workload_class: str
    class_source: str
    """annotation, profile or default."""
    cpu_sensitivity: str | None = None
    gpu_sensitivity: str | None = None
    profile: str = ""
    """The profile that the class comes from, as ``namespace/name``."""

    @property
    def class_origin(self) -> str:
        """The source of the class, for people."""
        return f"{self.class_source} {self.profile}".strip()


def standing_of(
    hints: Hints,
    profile: PowerProfile | None,
    min_confidence: float = MIN_CONFIDENCE,
    profile_name: str = "",
) -> Standing:
    """Return the standing of a pod with these *hints* and the *profile* of its workload."""
    if hints.workload_class is not None:
        workload_class, source = hints.workload_class, "annotation"
    elif profile is not None:
        workload_class, source = profile.workload_class, "profile"
    else:
        workload_class, source = "standard", "default"
    cpu, gpu = hints.cpu_sensitivity, hints.gpu_sensitivity
    if profile is not None:
        if profile.counts("cpu.capSensitivity", min_confidence):
            cpu = cpu or profile.cpu.cap_sensitivity
        if profile.counts("gpu.capSensitivity", min_confidence):
            gpu = gpu or profile.gpu.cap_sensitivity
    return Standing(workload_class, source, cpu, gpu, profile_name if source == "profile" else "")
