"""The settings of the scheduler extender: the table ``[plugins.power.extender]``."""

from typing import TYPE_CHECKING, Any

from attrs import frozen
from attrs.validators import and_, ge, gt, in_, instance_of, le

from temper_core import setting
from temper_plugin_power.settings.durations import duration, seconds

if TYPE_CHECKING:
    from temper_plugin_power.placing.subjects import Choices

SCALES = (10, 100)
MOST_WATTS = 1e9
MOST_POINTS = 100.0


def _share(default: float, meaning: str) -> Any:  # noqa: ANN401 - attrs' own way
    return setting(default, meaning, validator=and_(instance_of(float), ge(0.0), le(1.0)))


def _watts(default: float, meaning: str) -> Any:  # noqa: ANN401 - the same
    return setting(default, meaning, validator=and_(instance_of(float), gt(0.0), le(MOST_WATTS)))


def _points(default: float, meaning: str) -> Any:  # noqa: ANN401 - the same
    return setting(default, meaning, validator=and_(instance_of(float), ge(0.0), le(MOST_POINTS)))


@frozen
class ExtenderSettings:
    """The scheduler extender of power-aware placement."""

    listen: str = setting("0.0.0.0:9876", "The address and port that the extender listens at.")
    twin_staleness: str = duration(
        "5m", "The age of a NodeTwin beyond which its node gets a neutral score."
    )
    score_scale: int = setting(
        100,
        "The highest score on the wire, 10 or 100. kube-scheduler expects 10.",
        validator=in_(SCALES),
    )
    marginal: bool = setting(True, "Whether a score counts the watts that the pod would add.")
    cpu_util_coeff: float = _share(0.7, "The share of its CPUs' power that a pod is taken to use.")
    gpu_util_coeff_standard: float = _share(
        0.65, "The share of its GPUs' power that a standard pod is taken to use."
    )
    gpu_util_coeff_performance: float = _share(
        0.85, "The share of its GPUs' power that a performance pod is taken to use."
    )
    idle_gpu_waste_watts: float = _watts(
        60.0, "The watts of a GPU that idles beside a pod without one."
    )
    ref_node_watts: float = _watts(4000.0, "The watts of a node whose cooling stress is 80.")
    ref_rack_watts: float = _watts(50_000.0, "The watts of a rack whose supply stress is 100.")
    eviction_history_ttl: str = duration(
        "30m", "How long the pods of a workload avoid the class of node that one was evicted from."
    )
    cap_penalty_cpu: float = _points(
        40.0, "The points that a sensitive pod loses on a node whose CPUs are capped to nothing."
    )
    cap_penalty_gpu: float = _points(40.0, "The same for the cap of the GPUs.")

    @property
    def choices(self) -> "Choices":
        """The settings that scores depend on."""
        from temper_plugin_power.placing.marginal import Coefficients  # noqa: PLC0415 - not for agents
        from temper_plugin_power.placing.subjects import Choices  # noqa: PLC0415 - the same

        return Choices(
            is_marginal=self.marginal,
            coefficients=Coefficients(
                cpu_util=self.cpu_util_coeff,
                gpu_util_standard=self.gpu_util_coeff_standard,
                gpu_util_performance=self.gpu_util_coeff_performance,
                idle_gpu_watts=self.idle_gpu_waste_watts,
                reference_node_watts=self.ref_node_watts,
                reference_rack_watts=self.ref_rack_watts,
            ),
            cap_penalty_cpu=self.cap_penalty_cpu,
            cap_penalty_gpu=self.cap_penalty_gpu,
            twin_staleness_s=seconds(self.twin_staleness),
        )
