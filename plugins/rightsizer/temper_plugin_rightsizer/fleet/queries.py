"""The questions to a Prometheus, under the names of cAdvisor and kube-state-metrics 2."""

import json
import re
from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from temper_core import InputError
from temper_plugin_rightsizer.families import HOTTEST
from temper_prometheus.durations import as_duration

CPU = "container_cpu_usage_seconds_total"
PERIODS = "container_cpu_cfs_periods_total"
THROTTLED_PERIODS = "container_cpu_cfs_throttled_periods_total"
THROTTLED_TIME = "container_cpu_cfs_throttled_seconds_total"
MEMORY = "container_memory_working_set_bytes"
OOM = "container_oom_events_total"
STARTED = "container_start_time_seconds"
THREADS = HOTTEST.name
CONTAINERS = "kube_pod_container_info"
REQUESTS = "kube_pod_container_resource_requests"
LIMITS = "kube_pod_container_resource_limits"
SIDECAR_REQUESTS = "kube_pod_init_container_resource_requests"
SIDECAR_LIMITS = "kube_pod_init_container_resource_limits"
POD_OWNER = "kube_pod_owner"
REPLICASET_OWNER = "kube_replicaset_owner"
JOB_OWNER = "kube_job_owner"
RESTARTS = "kube_pod_container_status_restarts_total"
OOM_KILLED = "kube_pod_container_status_last_terminated_reason"
COUNTED_S = 600
"""The time in which the scrapes of an agent are counted."""
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@frozen
class Names:
    """The labels that name a container in the series of one exporter."""

    namespace: str = "namespace"
    pod: str = "pod"
    container: str = "container"

    @property
    def by(self) -> str:
        """The labels of a container, for ``by (...)``."""
        return f"{self.namespace}, {self.pod}, {self.container}"


USUAL = Names()
OLD_KUBELET = Names("namespace", "pod_name", "container_name")
"""Of kubelets before 1.16."""
EXPORTED = Names("exported_namespace", "exported_pod", "exported_container")
"""Of a scrape without ``honor_labels``, whose target has labels of the same names."""


@frozen
class Scope:
    """The series of a question.

    ``matchers`` are labels with their values. ``namespaces`` and ``pods`` are all those wanted, or
    none for all.
    """

    matchers: Mapping[str, str] = field(factory=dict)
    namespaces: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()

    def of(self, namespaces: Sequence[str]) -> "Scope":
        """Return the scope of *namespaces* only."""
        return evolve(self, namespaces=tuple(namespaces))

    def select(self, metric: str, names: Names = USUAL, *more: str) -> str:
        """Return the selector of *metric*, with *more* matchers as PromQL writes them."""
        own = [f"{label}={quoted(value)}" for label, value in sorted(self.matchers.items())]
        for label, wanted in ((names.namespace, self.namespaces), (names.pod, self.pods)):
            if len(wanted) == 1:
                own.append(f"{label}={quoted(wanted[0])}")
            elif wanted:
                either = "|".join(re.escape(name) for name in wanted)
                own.append(f"{label}=~{quoted(either)}")
        return f"{metric}{{{','.join((*own, *more))}}}"

    def containers(self, metric: str, names: Names) -> str:
        """Return the selector of *metric* of containers, without pods and their pause process."""
        named = f"{names.container}!="
        return self.select(metric, names, f'{named}""', f'{named}"POD"')


def matchers_of(pairs: Sequence[str]) -> Mapping[str, str]:
    """Return the labels of *pairs* such as ``cluster=east``. Raises InputError."""
    matchers = {}
    for pair in pairs:
        label, sign, value = pair.partition("=")
        if not sign or not _LABEL.fullmatch(label) or not _is_text(value):
            raise InputError("--selector: must be a label and its value, such as cluster=east")
        if label in matchers:
            raise InputError(f"--selector: {label} is given twice")
        matchers[label] = value
    return matchers


def quoted(text: str) -> str:
    """Return *text* as a string of PromQL, whose escapes are those of Go and so those of JSON."""
    return json.dumps(text, ensure_ascii=False)


def cpus(scope: Scope, names: Names, range_s: int) -> str:
    """Return the CPUs of each container.

    The CPUs of one cgroup are summed. Of several cgroups of one container, as after a restart or
    from two scrapes of it, the largest counts.
    """
    rate = f"rate({scope.containers(CPU, names)}[{as_duration(range_s)}])"
    return f"max by ({names.by}) (sum without (cpu) ({rate}))"


def busy_sums(scope: Scope, names: Names, range_s: int) -> str:
    """Return the sum of the samples of each container's busiest thread.

    A mean would leave out the scrapes in which the thread was not busy enough to be exported. The
    range of a Prometheus before 3.0 has both its ends, so one second less keeps a scrape out.
    """
    return _over("max", "sum_over_time", scope.select(THREADS, names), names, range_s - 1)


def scrapes(scope: Scope, names: Names, range_s: int) -> str:
    """Return how often each agent was scraped in ``COUNTED_S``, at most, within *range_s*.

    These are the samples of its most constant container, in the part of the time that has most: an
    agent may be younger, and a thread be busy for a while only. The range has one second less, as
    that of ``busy_sums``.
    """
    counted = f"count_over_time({scope.select(THREADS, names)}[{as_duration(COUNTED_S - 1)}])"
    parts = f"[{as_duration(range_s)}:{as_duration(COUNTED_S // 2)}]"
    return f"max by (instance) (max_over_time({counted}{parts}))"


def threads_since(scope: Scope, names: Names, range_s: int, step_s: int) -> str:
    """Return the time of the first sample of each container's busiest thread, by agent."""
    times = f"timestamp({scope.select(THREADS, names)})"
    window = f"[{as_duration(range_s)}:{as_duration(step_s)}]"
    return f"min by ({names.by}, instance) (min_over_time({times}{window}))"


def grown(metric: str, scope: Scope, names: Names, range_s: int) -> str:
    """Return how far the counter *metric* of each container grew."""
    return _over("sum", "increase", scope.containers(metric, names), names, range_s)


def peak(scope: Scope, names: Names, range_s: int) -> str:
    """Return the peak of each container's working set."""
    return _over("max", "max_over_time", scope.containers(MEMORY, names), names, range_s)


def least_memory(scope: Scope, names: Names, range_s: int) -> str:
    """Return the least working set of each container."""
    return _over("min", "min_over_time", scope.containers(MEMORY, names), names, range_s)


def started(scope: Scope, names: Names, range_s: int, since: int) -> str:
    """Return the last start of each container, of those after *since*, in seconds."""
    last = _over("max", "max_over_time", scope.containers(STARTED, names), names, range_s)
    return f"{last} > {since}"


def killed(scope: Scope, names: Names, range_s: int) -> str:
    """Return how often each container was restarted whose last end was an OOM kill."""
    restarts = _over("max", "increase", scope.select(RESTARTS, names), names, range_s)
    reason = scope.select(OOM_KILLED, names, 'reason="OOMKilled"')
    return f"{restarts} and max by ({names.by}) ({reason}) > 0"


def resources(metrics: Sequence[str], scope: Scope, names: Names, range_s: int) -> str:
    """Return the last CPU and memory of each container in *metrics*, by ``resource``."""
    span = as_duration(range_s)
    units = 'resource=~"cpu|memory"', 'unit=~"core|byte"'
    last = " or ".join(
        f"last_over_time({scope.select(metric, names, *units)}[{span}])" for metric in metrics
    )
    return f"max by ({names.by}, resource) ({last})"


def living(scope: Scope, names: Names) -> str:
    """Return the containers of pods that exist."""
    return f"max by ({names.by}) ({scope.select(CONTAINERS, names)})"


def owners(metric: str, label: str, scope: Scope, names: Names, range_s: int) -> str:
    """Return the controllers of what *label* names, in *metric*."""
    last = f"last_over_time({scope.select(metric, names)}[{as_duration(range_s)}])"
    return f"max by ({names.namespace}, {label}, owner_kind, owner_name) ({last})"


def _over(joins: str, function: str, selector: str, names: Names, range_s: int) -> str:
    return f"{joins} by ({names.by}) ({function}({selector}[{as_duration(range_s)}]))"


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # bytes of the command line that are no UTF-8
        return False
    return True
