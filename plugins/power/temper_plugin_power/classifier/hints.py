"""Hints on the power profile of a pod, in its annotations and labels."""

from collections.abc import Mapping

from attrs import frozen

from temper_plugin_power.defaults import ALIASES

PREFIX = "joulie.io"
CLASSES = ("performance", "standard")
CPU_SENSITIVITIES = ("high", "medium", "low")
GPU_SENSITIVITIES = (*CPU_SENSITIVITIES, "none")
LONGEST_QUOTED = 63
"""Characters of an ignored value in a reason. An annotation may have 256 KiB."""


@frozen
class Hints:
    """Hints of a pod. None is a hint that is not given."""

    workload_class: str | None = None
    label_class: str | None = None
    """From the pod label ``power-profile``, weaker than the annotation."""
    ignored_class: str | None = None
    """The value of a class annotation that names no class."""
    reschedulable: bool | None = None
    cpu_sensitivity: str | None = None
    gpu_sensitivity: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The fields of the profile's status that annotations decide, as JSON paths."""
        given = {
            "criticality.class": self.workload_class,
            "migratability.reschedulable": self.reschedulable,
            "cpu.capSensitivity": self.cpu_sensitivity,
            "gpu.capSensitivity": self.gpu_sensitivity,
        }
        return tuple(path for path, value in given.items() if value is not None)


def read_hints(
    annotations: Mapping[str, str], labels: Mapping[str, str], aliases: tuple[str, ...] = ALIASES
) -> Hints:
    """Return the hints of a pod. A value that is not allowed gives none."""
    prefixes = (PREFIX, *aliases)
    written = _first(annotations, prefixes, "workload-class")
    is_class = written in CLASSES
    reschedulable = _first(annotations, prefixes, "reschedulable")
    return Hints(
        workload_class=written if is_class else None,
        label_class="standard" if _first(labels, prefixes, "power-profile") == "eco" else None,
        ignored_class=None if is_class or not written else written[:LONGEST_QUOTED],
        reschedulable={"true": True, "false": False}.get(reschedulable),
        cpu_sensitivity=_among(CPU_SENSITIVITIES, _first(annotations, prefixes, "cpu-sensitivity")),
        gpu_sensitivity=_among(GPU_SENSITIVITIES, _first(annotations, prefixes, "gpu-sensitivity")),
    )


def _first(table: Mapping[str, str], prefixes: tuple[str, ...], key: str) -> str:
    return next((table[name] for prefix in prefixes if (name := f"{prefix}/{key}") in table), "")


def _among(allowed: tuple[str, ...], value: str) -> str | None:
    return value if value in allowed else None
