"""The records of ``trace.roster`` from what a capture knows."""

import os
from collections.abc import Iterable

from attrs import asdict

from temper_plugin_tracer.capture.bounds import Ending
from temper_plugin_tracer.capture.bpf_recorder import BpfRecorder
from temper_plugin_tracer.capture.recording import Recorded
from temper_plugin_tracer.capture.trace_context import TraceContext
from temper_plugin_tracer.capture.who_is_who import (
    KnownThread,
    Membership,
    Memberships,
    SeenThreads,
)
from temper_plugin_tracer.trace.roster import CaptureFacts, TracedMachine, TracedThread


def traced_threads(seen: SeenThreads, memberships: Memberships, most: int) -> list[TracedThread]:
    """Return the *most* busiest threads of the events, with their names and memberships."""
    threads = seen.threads(most)
    found = memberships.of(threads)
    names = {thread.tid: thread.name for thread in threads}
    return [_traced(thread, names.get(thread.tgid, ""), found[thread.tid]) for thread in threads]


def traced_machine(cores: Iterable[tuple[int, ...]]) -> TracedMachine:
    """Return this machine with the core of each CPU."""
    uname = os.uname()
    core_of = {cpu: core for cpu, core in cores}  # noqa: C416 - of pairs from JSON
    return TracedMachine(
        utsname=(uname.sysname, uname.release, uname.version, uname.machine),
        cpus=tuple(sorted(core_of)),
        cores=core_of,
    )


def capture_facts(context: TraceContext, recorded: Recorded, ending: Ending) -> CaptureFacts:
    """Return the facts of the capture in a trace."""
    looks = context.notes.looks
    layers = looks[-1]["layers"] if looks else ()
    return CaptureFacts(
        node=context.node,
        seconds=recorded.seconds,
        backend=context.backend,
        selection=context.selection.label,
        asked_by=context.by,
        bounds={name: float(value) for name, value in asdict(context.bounds).items()},
        ended_by=str(ending),
        lost=dict(recorded.losses.by_cpu),
        planned={layer["name"]: tuple(layer["cpus"]) for layer in layers},
        tells_throttling=context.backend == BpfRecorder.name,
        cpus=context.selection.cpus,
    )


def _traced(thread: KnownThread, process: str, membership: Membership) -> TracedThread:
    return TracedThread(
        tid=thread.tid,
        tgid=thread.tgid,
        name=thread.name,
        process=process,
        pod=membership.pod,
        group=membership.group,
        tier=membership.tier,
        layer=membership.layer,
        is_selected=thread.is_selected,
    )
