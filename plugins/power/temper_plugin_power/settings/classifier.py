"""The settings of the classifier: the table ``[plugins.power.classifier]``."""

from attrs import frozen
from attrs.validators import and_, deep_iterable, gt, in_, instance_of, le, matches_re, max_len

from temper_core import InputError, setting
from temper_plugin_power.defaults import GPU_PROXY_WATTS, SKIPPED_NAMESPACES
from temper_plugin_power.settings.durations import duration
from temper_prometheus.access import checked_url

ENERGIES = ("auto", "kepler-0.9", "kepler-0.10", "off")
MOST_NAMESPACES = 1000
MOST_WATTS = 1e6
NAMESPACE = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"


def _check_url(_: object, __: object, value: str) -> None:
    try:
        value and checked_url(value)
    except InputError as error:
        problem = str(error).removeprefix("--prometheus: the address ")
        raise ValueError(f"an address {problem}") from error


@frozen
class ClassifierSettings:
    """The classifier of the operator, which writes WorkloadProfiles."""

    interval: str = duration("30s", "The time between two cycles.")
    reclassify_interval: str = duration(
        "15m", "The time after which a workload is classified by metrics again."
    )
    metrics_window: str = duration(
        "10m",
        "The time over which rates are taken, and for which another classification has to hold.",
    )
    prometheus_url: str = setting(
        "http://prometheus-operated.monitoring:9090",
        "The Prometheus, Thanos or Mimir that has the metrics. Empty is none.",
        validator=_check_url,
    )
    prometheus_token_file: str = setting("", "A file with the bearer token for it.")
    prometheus_ca_file: str = setting(
        "", "The certificates (PEM) that its own is checked by. Empty is the system's."
    )
    prometheus_tenant: str = setting("", "The tenant of a Mimir.")
    energy: str = setting(
        "auto",
        "How Kepler attributes energy: auto, kepler-0.9, kepler-0.10 or off.",
        validator=in_(ENERGIES),
    )
    traits_directory: str = setting(
        "",
        "A directory of thread profiles (*.toml), whose [traits] are hints. It is read at the "
        "start. Empty is none.",
    )
    gpu_proxy_watts: float = setting(
        GPU_PROXY_WATTS,
        "The power that stands for a GPU in full use, where only its energy is known.",
        validator=and_(instance_of(float), gt(0.0), le(MOST_WATTS)),
    )
    derive_class: bool = setting(
        False,
        "Whether workloads without a class that drive CPU or GPU hard are of class performance.",
    )
    skip_namespaces: tuple[str, ...] = setting(
        tuple(sorted(SKIPPED_NAMESPACES)),
        "Namespaces without profiles. The operator's own is always one.",
        validator=and_(deep_iterable(matches_re(NAMESPACE)), max_len(MOST_NAMESPACES)),
        form="the name of a namespace",
    )
