from temper_core.bpf.access import explain_bpf_error
from temper_core.bpf.package import load_object
from temper_core.bpf.skeleton import Skeleton
from temper_core.client import ask_agent, ask_observation
from temper_core.command_group import CommandGroup
from temper_core.directory_tree import directories_below
from temper_core.disk_thread import DiskThread, SilentDiskError
from temper_core.documents import fit, parse_json, parse_yaml, read_bytes, read_json, read_text
from temper_core.errors import (
    BpfError,
    DocumentError,
    EngineError,
    InputError,
    MachineError,
    PluginError,
    TemperError,
)
from temper_core.foreign_writers import foreign_writer
from temper_core.given_files import UnpackedFile, open_file
from temper_core.hookspecs import hookimpl
from temper_core.http.address import Address, parse_address
from temper_core.http.bounded_server import BoundedServer
from temper_core.http.bounds import Bounds
from temper_core.http.client_network import client_network
from temper_core.http.listener import listen_on
from temper_core.http.listener_owners import listener_owners
from temper_core.http.protocol import extend_exchange
from temper_core.json_items import JsonItems
from temper_core.logs import configure_logs
from temper_core.node.cgroups import thread_owner
from temper_core.node.local_source import LocalPods
from temper_core.node.pod_cgroups import find_pod_cgroups
from temper_core.node.pod_claims import claim_rank
from temper_core.node.podlist import read_pod_object
from temper_core.node.topology import read_machine
from temper_core.observe.moments import rfc3339
from temper_core.observe.places import Places
from temper_core.observe.process_text import cgroup_namespace, parse_cgroup
from temper_core.patient_reading import PatientReader
from temper_core.plan.assign import tier_of
from temper_core.plan.membership import layer_of
from temper_core.plugin_settings import fit_settings, load_settings
from temper_core.profiles.completed_files import completed_profiles
from temper_core.profiles.covering import first_taker, takes_by_name
from temper_core.profiles.documents import parse_profile
from temper_core.profiles.fingerprints import image_sign, version_misfit
from temper_core.profiles.image_versions import satisfies
from temper_core.profiles.lifetimes import Lifetime, Stay, group_stays
from temper_core.profiles.matching import matches
from temper_core.quantities import cpu_millis, memory_bytes
from temper_core.records.checks import Check, CheckState
from temper_core.records.contributions import (
    Command,
    Detection,
    Detector,
    Exporter,
    Metric,
    MetricSample,
    OpenPodSource,
    PodSource,
    PodSourceContext,
    Staleness,
)
from temper_core.records.declarations import MetricFamily, PanelHint, SettingsTable
from temper_core.records.endpoints import (
    Answer,
    Cookie,
    Endpoint,
    Request,
    Requester,
    ServerSentEvent,
    event_stream,
)
from temper_core.records.events import Event, EventKind, EventLevel
from temper_core.records.executions import Execution, ExecutionNews
from temper_core.records.histogram import Histogram
from temper_core.records.instruments import (
    HelperBounds,
    HelperProcess,
    Instrument,
    InstrumentContext,
    NodeLookup,
    OpenInstrument,
    StateDirectory,
    Trial,
    ValueHolder,
)
from temper_core.records.invariants import Invariant
from temper_core.records.layers import Layer
from temper_core.records.lint import Finding, Severity, Violation, violation_id
from temper_core.records.machine import Cpu, MachineShape
from temper_core.records.plans import Assignment, LayerPlan, Note
from temper_core.records.pods import Container, Origin, Pod, QosClass
from temper_core.records.profiles import WorkloadProfile
from temper_core.records.restored import Leftover, Restored
from temper_core.records.snapshots import (
    LayerSample,
    Mode,
    Observing,
    Overhead,
    PodSample,
    Pressure,
    Section,
    Snapshot,
    Status,
    ThreadSample,
)
from temper_core.records.thread_groups import ThreadGroup, Treatment
from temper_core.records.threads import ThreadBehaviour, ThreadIdentity
from temper_core.records.tiers import FENCING_TIERS, LayerKind, Tier
from temper_core.records.wakes import (
    Blocking,
    Party,
    WaitHistogram,
    WakeEdge,
    WakeWindow,
    read_wake_window,
)
from temper_core.request_bodies import fit_body
from temper_core.restoring.device_values import DeviceValues
from temper_core.restoring.kernel_values import KernelValues
from temper_core.restoring.tracing_instances import remove_tracing_instances, tracefs_mounts
from temper_core.rich_output import VisibleConsole
from temper_core.settings.fields import setting
from temper_core.standard_output import ReaderGone, deliver
from temper_core.suggestions import did_you_mean
from temper_core.tenant_json import parse_tenant_json

__version__: str

__all__ = [
    "FENCING_TIERS",
    "Address",
    "Answer",
    "Assignment",
    "Blocking",
    "BoundedServer",
    "Bounds",
    "BpfError",
    "Check",
    "CheckState",
    "Command",
    "CommandGroup",
    "Container",
    "Cookie",
    "Cpu",
    "Detection",
    "Detector",
    "DeviceValues",
    "DiskThread",
    "DocumentError",
    "Endpoint",
    "EngineError",
    "Event",
    "EventKind",
    "EventLevel",
    "Execution",
    "ExecutionNews",
    "Exporter",
    "Finding",
    "HelperBounds",
    "HelperProcess",
    "Histogram",
    "InputError",
    "Instrument",
    "InstrumentContext",
    "Invariant",
    "JsonItems",
    "KernelValues",
    "Layer",
    "LayerKind",
    "LayerPlan",
    "LayerSample",
    "Leftover",
    "Lifetime",
    "LocalPods",
    "MachineError",
    "MachineShape",
    "Metric",
    "MetricFamily",
    "MetricSample",
    "Mode",
    "NodeLookup",
    "Note",
    "Observing",
    "OpenInstrument",
    "OpenPodSource",
    "Origin",
    "Overhead",
    "PanelHint",
    "Party",
    "PatientReader",
    "Places",
    "PluginError",
    "Pod",
    "PodSample",
    "PodSource",
    "PodSourceContext",
    "Pressure",
    "QosClass",
    "ReaderGone",
    "Request",
    "Requester",
    "Restored",
    "Section",
    "ServerSentEvent",
    "SettingsTable",
    "Severity",
    "SilentDiskError",
    "Skeleton",
    "Snapshot",
    "Staleness",
    "StateDirectory",
    "Status",
    "Stay",
    "TemperError",
    "ThreadBehaviour",
    "ThreadGroup",
    "ThreadIdentity",
    "ThreadSample",
    "Tier",
    "Treatment",
    "Trial",
    "UnpackedFile",
    "ValueHolder",
    "Violation",
    "VisibleConsole",
    "WaitHistogram",
    "WakeEdge",
    "WakeWindow",
    "WorkloadProfile",
    "ask_agent",
    "ask_observation",
    "cgroup_namespace",
    "claim_rank",
    "client_network",
    "completed_profiles",
    "configure_logs",
    "cpu_millis",
    "deliver",
    "did_you_mean",
    "directories_below",
    "event_stream",
    "explain_bpf_error",
    "extend_exchange",
    "find_pod_cgroups",
    "first_taker",
    "fit",
    "fit_body",
    "fit_settings",
    "foreign_writer",
    "group_stays",
    "hookimpl",
    "image_sign",
    "layer_of",
    "listen_on",
    "listener_owners",
    "load_object",
    "load_settings",
    "matches",
    "memory_bytes",
    "open_file",
    "parse_address",
    "parse_cgroup",
    "parse_json",
    "parse_profile",
    "parse_tenant_json",
    "parse_yaml",
    "read_bytes",
    "read_json",
    "read_machine",
    "read_pod_object",
    "read_text",
    "read_wake_window",
    "remove_tracing_instances",
    "rfc3339",
    "satisfies",
    "setting",
    "takes_by_name",
    "thread_owner",
    "tier_of",
    "tracefs_mounts",
    "version_misfit",
    "violation_id",
]
