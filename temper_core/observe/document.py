"""The JSON of ``/observe``. Its schema is ``docs/observe.schema.json``."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from math import fsum
from typing import Any

from temper_core.observe.moments import rfc3339
from temper_core.plain_json import plain_scalar
from temper_core.plan.render import machine_summary
from temper_core.records.lint import Violation
from temper_core.records.machine import MachineShape
from temper_core.records.snapshots import (
    EngineEnd,
    InstrumentCost,
    LayerSample,
    Observing,
    PluginState,
    PodSample,
    Pressure,
    PressureLine,
    Section,
    Snapshot,
    ThreadSample,
)
from temper_core.records.steering import SteeringState
from temper_core.records.trials import TrialState

REST = "rest"
DIGITS = 6

Json = dict[str, Any]


def observe_document(snapshot: Snapshot, top: int) -> Json:
    """Return a snapshot as JSON, with the *top* busiest threads and the others summed by pod."""
    return {
        "schema_version": snapshot.schema_version,
        "at": rfc3339(snapshot.at),
        "window_s": _rounded(snapshot.window_s),
        "node": snapshot.node,
        "mode": str(snapshot.status.mode),
        "reason": str(snapshot.status.reason),
        "detail": snapshot.status.detail,
        "generation": snapshot.status.generation,
        "engine": snapshot.status.engine,
        "last_end": None if snapshot.last_end is None else _end(snapshot.last_end),
        "machine": _machine(snapshot.machine),
        "layers": [_layer(layer) for layer in snapshot.layers],
        "threads": _threads(snapshot.threads, top),
        "pods": [_pod(pod) for pod in snapshot.pods],
        "pressure": {
            "node": _pressures(snapshot.pressure),
            "pods": {_pod_key(pod): _pressures(pod.pressure) for pod in snapshot.pods},
        },
        "violations": [_violation(violation) for violation in snapshot.violations],
        "plugins": [_plugin(plugin) for plugin in snapshot.plugins],
        "steering": _steering(snapshot.steering),
        "observing": _observing(snapshot.observing),
        "pressure_events": dict(snapshot.pressure_events),
        "sections": {name: _section(section) for name, section in snapshot.sections.items()},
        "overhead": _overhead(snapshot),
        "defects": list(snapshot.defects),
        "trials": [trial_document(trial) for trial in snapshot.trials],
    }


def trial_document(trial: TrialState) -> Json:
    """Return a trial as JSON."""
    return {
        "id": trial.id,
        "owner": trial.owner,
        "profile": trial.profile,
        "pods": list(trial.pods),
        "until": rfc3339(trial.until),
    }


def _machine(machine: MachineShape) -> Json:
    siblings = [list(siblings) for siblings in machine.siblings]
    return {**machine_summary(machine), "siblings": siblings}


def _end(end: EngineEnd) -> Json:
    return {"kind": end.kind, "summary": end.summary, "remedy": end.remedy}


def _layer(layer: LayerSample) -> Json:
    return {
        "name": layer.name,
        "kind": str(layer.kind),
        "tier": _name_or_none(layer.tier),
        "cpus": list(layer.cpus),
        "cpus_used": _rounded(layer.cpus_used),
        "util": None if layer.util is None else _rounded(layer.util),
        "tasks": layer.tasks,
        "fallback_ratio": _rounded(layer.fallback_ratio),
        "outside_ratio": None if layer.outside_ratio is None else _rounded(layer.outside_ratio),
        "demoted": layer.demoted,
        "reason": layer.reason,
    }


def _threads(threads: Sequence[ThreadSample], top: int) -> list[Json]:
    busiest = nlargest(max(0, top), threads, key=lambda thread: (thread.cpu_used, -thread.tid))
    shown = {(thread.tid, thread.start_ticks) for thread in busiest}
    unlisted: defaultdict[tuple[str, str], list[ThreadSample]] = defaultdict(list)
    for thread in threads:
        if (thread.tid, thread.start_ticks) not in shown:
            unlisted[thread.namespace, thread.pod].append(thread)
    rests = [_rest(*place, unlisted[place]) for place in sorted(unlisted)]
    return [_thread(thread) for thread in busiest] + rests


def _thread(thread: ThreadSample) -> Json:
    return {
        "tid": thread.tid,
        "tgid": thread.tgid,
        "comm": thread.comm,
        "process": thread.process,
        "namespace": thread.namespace,
        "pod": thread.pod,
        "container": thread.container,
        "cgroup": thread.cgroup,
        "tier": _name_or_none(thread.tier),
        "layer": thread.layer,
        "expected_layer": thread.expected_layer,
        "hinted_layer": thread.hinted_layer,
        "layer_is_known": thread.layer_is_known,
        "cpu": thread.cpu,
        "cpu_used": _rounded(thread.cpu_used),
        "run_delay_ratio": _rounded(thread.run_delay_ratio),
        "waiting_s": _rounded(thread.waiting_s),
        "runs": _count(thread.runs),
        "voluntary": _count(thread.voluntary),
        "involuntary": _count(thread.involuntary),
        "migrations": _count(thread.migrations),
        "policy": thread.policy,
        "nice": thread.nice,
        "rt_priority": thread.rt_priority,
        "affinity": list(thread.affinity),
        "age_s": _rounded(thread.age_s),
        "is_kthread": thread.is_kthread,
        "threads": 1,
    }


def _rest(namespace: str, pod: str, threads: Sequence[ThreadSample]) -> Json:
    """Sum up a pod's other threads. Fields that only a single thread has are null."""
    return {
        "tid": None,
        "tgid": None,
        "comm": REST,
        "process": "",
        "namespace": namespace,
        "pod": pod,
        "container": "",
        "cgroup": "",
        "tier": _name_or_none(threads[0].tier) if pod else None,
        "layer": _if_same(thread.layer for thread in threads),
        "expected_layer": _if_same(thread.expected_layer for thread in threads),
        "hinted_layer": _if_same(thread.hinted_layer for thread in threads),
        "layer_is_known": all(thread.layer_is_known for thread in threads),
        "cpu": None,
        "cpu_used": _rounded(sum(thread.cpu_used for thread in threads)),
        "run_delay_ratio": _rounded(
            fsum(thread.run_delay_ratio for thread in threads) / len(threads)
        ),
        "waiting_s": _rounded(max(thread.waiting_s for thread in threads)),
        **{
            counted: _sum([getattr(thread, counted) for thread in threads])
            for counted in ("runs", "voluntary", "involuntary", "migrations")
        },
        "policy": _if_same(thread.policy for thread in threads),
        "nice": None,
        "rt_priority": None,
        "affinity": [],
        "age_s": None,
        "is_kthread": all(thread.is_kthread for thread in threads),
        "threads": len(threads),
    }


def _pod(pod: PodSample) -> Json:
    return {
        "namespace": pod.namespace,
        "pod": pod.pod,
        "uid": pod.uid,
        "tier": str(pod.tier),
        "profile": pod.profile,
        "profile_coverage": _rounded_or_none(pod.profile_coverage),
        "profile_code": pod.profile_code,
        "profile_reason": pod.profile_reason,
        "threads": pod.threads,
        "cpu_used": _rounded(pod.cpu_used),
        "short_lived_cpu_used": _rounded(pod.short_lived_cpu_used),
        "run_delay": _rounded(pod.run_delay),
        "switches": _count(pod.switches),
        "throttled_ratio": _rounded(pod.throttled_ratio),
        "throttled_s": _rounded(pod.throttled_s),
        "unthrottled_pressure": _rounded_or_none(pod.unthrottled_pressure),
        "quota_cores": _rounded_or_none(pod.quota_cores),
        "weight": pod.weight,
        "cpuset": list(pod.cpuset),
        "memory_bytes": _count(pod.memory_bytes),
    }


def _pod_key(pod: PodSample) -> str:
    return f"{pod.namespace}/{pod.pod}" if pod.namespace else pod.pod


def _pressures(pressures: Mapping[str, Pressure]) -> Json:
    return {
        resource: {
            "some": _pressure_line(pressure.some),
            "full": None if pressure.full is None else _pressure_line(pressure.full),
        }
        for resource, pressure in pressures.items()
    }


def _pressure_line(line: PressureLine) -> Json:
    return {
        "avg10": line.avg10,
        "avg60": line.avg60,
        "avg300": line.avg300,
        "total_us": line.total_us,
    }


def _violation(violation: Violation) -> Json:
    return {
        "id": violation.id,
        "invariant": violation.invariant,
        "severity": str(violation.severity),
        "subject": violation.subject,
        "message": violation.message,
        "fix": violation.fix,
        "evidence": _evidence(violation.evidence),
        "since": rfc3339(violation.since),
        "plugin": violation.plugin,
    }


def _evidence(evidence: Mapping[str, Any]) -> Json:
    """Return a plugin's evidence as JSON. The plugin may have changed it after the type check."""
    return {str(plain_scalar(name)): plain_scalar(content) for name, content in evidence.items()}


def _plugin(plugin: PluginState) -> Json:
    return {
        "name": plugin.name,
        "version": plugin.version,
        "state": plugin.state,
        "failure": plugin.failure,
    }


def _steering(state: SteeringState) -> Json:
    return {
        "mode": state.mode,
        "reason": state.reason,
        "threads": state.threads,
        "steered": state.steered,
        "corrected": state.corrected,
        "kicked": state.kicked,
        "astray": state.astray,
        "unresolved": list(state.unresolved),
        "failures": state.failures,
        "walk_ns": state.walk_ns,
        "niced": state.niced,
        "own_nice": state.own_nice,
        "by_hook": dict(state.by_hook),
    }


def _observing(observing: Observing) -> Json:
    return {
        "tier": observing.tier,
        "reason": observing.reason,
        "period_s": observing.period_s,
        "asked_period_s": observing.asked_period_s,
        "stretched": observing.stretched,
        "least_s": _rounded(observing.least_s),
        "unlisted": observing.unlisted,
    }


def _overhead(snapshot: Snapshot) -> Json:
    overhead = snapshot.overhead
    parts = {part: _rounded(ratio) for part, ratio in overhead.cpu_ratio.items()}

    def whole(split: str) -> float:
        return _rounded(sum(v for part, v in overhead.cpu_ratio.items() if part.endswith(split)))

    return {
        "cpu_ratio": parts,
        "user_cpu_ratio": whole("user"),
        "kernel_cpu_ratio": whole("kernel"),
        "memory_bytes": overhead.memory_bytes,
        "engine_memory_bytes": overhead.engine_memory_bytes,
        "period_s": overhead.period_s,
        "tick_s": _rounded(overhead.tick_s),
        "threads_seen": overhead.threads_seen,
        "descriptors": overhead.descriptors,
        "bpf_cpu_ratio": _rounded(overhead.bpf_cpu_ratio),
        "series": overhead.series,
        "instruments": {name: _instrument(cost) for name, cost in overhead.instruments.items()},
    }


def _instrument(cost: InstrumentCost) -> Json:
    return {
        "helpers": cost.helpers,
        "helper_cpu_ratio": _rounded(cost.helper_cpu_ratio),
        "helper_cpu_s": _rounded(cost.helper_cpu_s),
        "helper_memory_bytes": cost.helper_memory_bytes,
        "state_bytes": cost.state_bytes,
        "state_limit_bytes": cost.state_limit_bytes,
    }


def _section(section: Section) -> Json:
    return {**section.content, "schema_version": section.schema_version}


def _count(counted: int) -> int | None:
    return None if counted < 0 else counted


def _sum(counts: Sequence[int]) -> int | None:
    """Add up counts. The sum is null if one of them is unknown."""
    return None if min(counts) < 0 else sum(counts)


def _if_same(names: Iterable[str]) -> str:
    different = set(names)
    return different.pop() if len(different) == 1 else ""


def _name_or_none(name: object) -> str | None:
    return None if name is None else str(name)


def _rounded_or_none(number: float | None) -> float | None:
    return None if number is None else _rounded(number)


def _rounded(number: float) -> float:
    return round(number, DIGITS)
