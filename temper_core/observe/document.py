"""The JSON of ``/observe``. Its schema is ``docs/observe.schema.json``."""

from collections.abc import Mapping
from typing import Any

from temper_core.observe.document_values import (
    count,
    name_or_none,
    rounded,
    rounded_or_none,
)
from temper_core.observe.moments import rfc3339
from temper_core.observe.thread_documents import thread_documents
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
)
from temper_core.records.steering import SteeringState
from temper_core.records.trials import TrialState

Json = dict[str, Any]


def observe_document(snapshot: Snapshot, top: int) -> Json:
    """Return a snapshot as JSON, with the *top* busiest threads and the others summed by pod."""
    return {
        "schema_version": snapshot.schema_version,
        "at": rfc3339(snapshot.at),
        "window_s": rounded(snapshot.window_s),
        "node": snapshot.node,
        "mode": str(snapshot.status.mode),
        "reason": str(snapshot.status.reason),
        "detail": snapshot.status.detail,
        "generation": snapshot.status.generation,
        "engine": snapshot.status.engine,
        "last_end": None if snapshot.last_end is None else _end(snapshot.last_end),
        "machine": _machine(snapshot.machine),
        "layers": [_layer(layer) for layer in snapshot.layers],
        "threads": thread_documents(snapshot.threads, top),
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
        "tier": name_or_none(layer.tier),
        "cpus": list(layer.cpus),
        "cpus_used": rounded(layer.cpus_used),
        "util": None if layer.util is None else rounded(layer.util),
        "tasks": layer.tasks,
        "fallback_ratio": rounded(layer.fallback_ratio),
        "outside_ratio": None if layer.outside_ratio is None else rounded(layer.outside_ratio),
        "demoted": layer.demoted,
        "reason": layer.reason,
    }


def _pod(pod: PodSample) -> Json:
    return {
        "namespace": pod.namespace,
        "pod": pod.pod,
        "uid": pod.uid,
        "tier": str(pod.tier),
        "profile": pod.profile,
        "profile_coverage": rounded_or_none(pod.profile_coverage),
        "profile_code": pod.profile_code,
        "profile_reason": pod.profile_reason,
        "threads": pod.threads,
        "cpu_used": rounded(pod.cpu_used),
        "short_lived_cpu_used": rounded(pod.short_lived_cpu_used),
        "run_delay": rounded(pod.run_delay),
        "switches": count(pod.switches),
        "throttled_ratio": rounded(pod.throttled_ratio),
        "throttled_s": rounded(pod.throttled_s),
        "unthrottled_pressure": rounded_or_none(pod.unthrottled_pressure),
        "quota_cores": rounded_or_none(pod.quota_cores),
        "weight": pod.weight,
        "cpuset": list(pod.cpuset),
        "memory_bytes": count(pod.memory_bytes),
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
        "least_s": rounded(observing.least_s),
        "unlisted": observing.unlisted,
    }


def _overhead(snapshot: Snapshot) -> Json:
    overhead = snapshot.overhead
    parts = {part: rounded(ratio) for part, ratio in overhead.cpu_ratio.items()}

    def whole(split: str) -> float:
        return rounded(sum(v for part, v in overhead.cpu_ratio.items() if part.endswith(split)))

    return {
        "cpu_ratio": parts,
        "user_cpu_ratio": whole("user"),
        "kernel_cpu_ratio": whole("kernel"),
        "memory_bytes": overhead.memory_bytes,
        "engine_memory_bytes": overhead.engine_memory_bytes,
        "period_s": overhead.period_s,
        "tick_s": rounded(overhead.tick_s),
        "threads_seen": overhead.threads_seen,
        "descriptors": overhead.descriptors,
        "bpf_cpu_ratio": rounded(overhead.bpf_cpu_ratio),
        "series": overhead.series,
        "instruments": {name: _instrument(cost) for name, cost in overhead.instruments.items()},
    }


def _instrument(cost: InstrumentCost) -> Json:
    return {
        "helpers": cost.helpers,
        "helper_cpu_ratio": rounded(cost.helper_cpu_ratio),
        "helper_cpu_s": rounded(cost.helper_cpu_s),
        "helper_memory_bytes": cost.helper_memory_bytes,
        "state_bytes": cost.state_bytes,
        "state_limit_bytes": cost.state_limit_bytes,
    }


def _section(section: Section) -> Json:
    return {**section.content, "schema_version": section.schema_version}
