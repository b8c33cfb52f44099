"""The core of Temper: ``__all__`` is what plugins may use, imported when it is asked for."""

from importlib import import_module

__version__ = "0.1.0"

_HOMES = {
    "temper_core.bpf.access": ("explain_bpf_error",),
    "temper_core.bpf.package": ("load_object",),
    "temper_core.client": ("ask_agent", "ask_observation"),
    "temper_core.bpf.skeleton": ("Skeleton",),
    "temper_core.command_group": ("CommandGroup",),
    "temper_core.documents": ("fit", "parse_json", "parse_yaml", "read_json", "read_text"),
    "temper_core.errors": (
        "BpfError",
        "DocumentError",
        "EngineError",
        "InputError",
        "MachineError",
        "PluginError",
        "TemperError",
    ),
    "temper_core.hookspecs": ("hookimpl",),
    "temper_core.http.address": ("Address", "parse_address"),
    "temper_core.http.bounded_server": ("BoundedServer",),
    "temper_core.http.bounds": ("Bounds",),
    "temper_core.http.client_network": ("client_network",),
    "temper_core.http.listener": ("listen_on",),
    "temper_core.json_items": ("JsonItems",),
    "temper_core.tenant_json": ("parse_tenant_json",),
    "temper_core.logs": ("configure_logs",),
    "temper_core.directory_tree": ("directories_below",),
    "temper_core.node.cgroups": ("thread_owner",),
    "temper_core.node.local_source": ("LocalPods",),
    "temper_core.node.pod_cgroups": ("find_pod_cgroups",),
    "temper_core.node.pod_claims": ("claim_rank",),
    "temper_core.node.podlist": ("read_pod_object",),
    "temper_core.node.quantities": ("cpu_millis", "memory_bytes"),
    "temper_core.node.topology": ("read_machine",),
    "temper_core.observe.moments": ("rfc3339",),
    "temper_core.observe.places": ("Places",),
    "temper_core.observe.process_text": ("cgroup_namespace", "parse_cgroup"),
    "temper_core.patient_reading": ("PatientReader",),
    "temper_core.plan.assign": ("tier_of",),
    "temper_core.plan.membership": ("layer_of",),
    "temper_core.plugin_settings": ("fit_settings", "load_settings"),
    "temper_core.records.contributions": (
        "Command",
        "Detection",
        "Detector",
        "Exporter",
        "Metric",
        "MetricSample",
        "OpenPodSource",
        "PodSource",
        "PodSourceContext",
        "Staleness",
    ),
    "temper_core.records.declarations": ("MetricFamily", "PanelHint", "SettingsTable"),
    "temper_core.settings.fields": ("setting",),
    "temper_core.profiles.completed_files": ("completed_profiles",),
    "temper_core.profiles.covering": ("first_taker", "takes_by_name"),
    "temper_core.records.checks": ("Check", "CheckState"),
    "temper_core.records.endpoints": (
        "Answer",
        "Cookie",
        "Endpoint",
        "Request",
        "Requester",
        "ServerSentEvent",
        "event_stream",
    ),
    "temper_core.records.events": ("Event", "EventKind", "EventLevel"),
    "temper_core.records.executions": ("Execution", "ExecutionNews"),
    "temper_core.records.histogram": ("Histogram",),
    "temper_core.records.instruments": (
        "HelperProcess",
        "HelperBounds",
        "Instrument",
        "InstrumentContext",
        "NodeLookup",
        "OpenInstrument",
        "StateDirectory",
        "Trial",
    ),
    "temper_core.records.invariants": ("Invariant",),
    "temper_core.records.restored": ("Leftover", "Restored"),
    "temper_core.records.layers": ("Layer",),
    "temper_core.records.lint": ("Finding", "Severity", "Violation", "violation_id"),
    "temper_core.records.machine": ("Cpu", "MachineShape"),
    "temper_core.profiles.lifetimes": ("Lifetime", "Stay", "group_stays"),
    "temper_core.profiles.matching": ("matches",),
    "temper_core.records.threads": ("ThreadBehaviour", "ThreadIdentity"),
    "temper_core.records.plans": ("Assignment", "LayerPlan", "Note"),
    "temper_core.records.pods": ("Container", "Origin", "Pod", "QosClass"),
    "temper_core.profiles.documents": ("parse_profile",),
    "temper_core.records.profiles": ("WorkloadProfile",),
    "temper_core.records.thread_groups": ("ThreadGroup", "Treatment"),
    "temper_core.records.snapshots": (
        "LayerSample",
        "Mode",
        "Observing",
        "Overhead",
        "PodSample",
        "Pressure",
        "Section",
        "Snapshot",
        "Status",
        "ThreadSample",
    ),
    "temper_core.records.tiers": ("FENCING_TIERS", "LayerKind", "Tier"),
    "temper_core.profiles.image_versions": ("satisfies",),
    "temper_core.request_bodies": ("fit_body",),
    "temper_core.restoring.kernel_values": ("KernelValues",),
    "temper_core.restoring.tracing_instances": ("remove_tracing_instances", "tracefs_mounts"),
    "temper_core.rich_output": ("VisibleConsole",),
    "temper_core.standard_output": ("ReaderGone", "deliver"),
    "temper_core.records.wakes": (
        "Blocking",
        "Party",
        "WaitHistogram",
        "WakeEdge",
        "WakeWindow",
        "read_wake_window",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605 - a list of names, made from the table above


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'temper_core' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
