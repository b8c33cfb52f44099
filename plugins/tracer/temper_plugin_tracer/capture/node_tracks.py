"""Temper's own tracks in a trace.

The agent's looks give layers, plan, mode, pods and violations. Its events are a track beside them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from temper_plugin_tracer.capture.node_reading import NodeNotes
from temper_plugin_tracer.capture.recording import Recorded
from temper_plugin_tracer.trace.perfetto.writer import TraceWriter

MILLI = 1_000
MOST_CPUS = 256
"""Number of CPUs that have a track with the layer that owns them."""
Look = Mapping[str, Any]


def write_tracks(writer: TraceWriter, notes: NodeNotes, recorded: Recorded) -> None:
    """Write the tracks. The agent's last look before the recording is in force at its start."""
    seen = _during(notes.looks, recorded)
    events = [
        event for event in notes.events if recorded.began_ns <= event["ns"] <= recorded.ended_ns
    ]
    if not seen and not events:
        return
    root = writer.track("Temper")
    if events:
        _write_events(writer, writer.track("events", root), events)
    if seen:
        _write_looks(writer, root, seen, recorded)


def _write_events(writer: TraceWriter, track: int, events: Sequence[Mapping[str, Any]]) -> None:
    for event in events:
        name = ": ".join(filter(None, [event["kind"], event["subject"]]))
        writer.instant(track, event["ns"], name, event["facts"])


def _write_looks(
    writer: TraceWriter, root: int, seen: Sequence[tuple[int, Look]], recorded: Recorded
) -> None:
    _write_states(writer, writer.track("mode", root), _modes(seen), recorded)
    _write_states(writer, writer.track("plan", root), _plans(seen), recorded)
    owners = writer.track("owner of each CPU", root)
    for cpu, states in _owners(seen).items():
        _write_states(writer, writer.track(f"CPU {cpu}", owners), states, recorded)
    _write_layers(writer, root, seen)
    _write_pods(writer, root, seen)
    _write_violations(writer, writer.track("violations", root), seen)


def _during(looks: Sequence[Look], recorded: Recorded) -> list[tuple[int, Look]]:
    """Return the looks with their times, which are within the recording."""
    before = [look for look in looks if look["ns"] <= recorded.began_ns][-1:]
    after = [look for look in looks if recorded.began_ns < look["ns"] <= recorded.ended_ns]
    later = [look for look in looks if look["ns"] > recorded.ended_ns][:1]
    chosen = [*before, *after] or later  # the first look at a node whose agent has just started
    return [(max(int(look["ns"]), recorded.began_ns), look) for look in chosen]


def _modes(seen: Sequence[tuple[int, Look]]) -> list[tuple[int, str]]:
    return [(ns, " ".join(filter(None, [look["mode"], look["reason"]]))) for ns, look in seen]


def _plans(seen: Sequence[tuple[int, Look]]) -> list[tuple[int, str]]:
    """Return the plans in force. One that follows another is the result of a swap."""
    return [(ns, f"generation {look['generation']}" * bool(look["layers"])) for ns, look in seen]


def _owners(seen: Sequence[tuple[int, Look]]) -> dict[int, list[tuple[int, str]]]:
    """Return by CPU the layers that own it, from the time of each look."""
    owned = [(ns, dict(_cpus_of(look))) for ns, look in seen]
    cpus = sorted({cpu for _, owners in owned for cpu in owners})[:MOST_CPUS]
    return {cpu: [(ns, owners.get(cpu, "")) for ns, owners in owned] for cpu in cpus}


def _cpus_of(look: Look) -> Iterator[tuple[int, str]]:
    for layer in look["layers"]:
        tier = f" ({layer['tier']})" if layer["tier"] else ""
        yield from ((cpu, f"{layer['name']}{tier}") for cpu in layer["cpus"])


def _write_states(
    writer: TraceWriter, track: int, states: Sequence[tuple[int, str]], recorded: Recorded
) -> None:
    """Write a slice for as long as a state lasts. An empty name is no slice."""
    changes = [
        state for place, state in enumerate(states) if not place or states[place - 1][1] != state[1]
    ]
    ends = [ns for ns, _ in changes[1:]] + [recorded.ended_ns]
    for (ns, name), end in zip(changes, ends, strict=True):
        if name and end > ns:
            writer.slice(track, ns, end, name)


def _write_layers(writer: TraceWriter, root: int, seen: Sequence[tuple[int, Look]]) -> None:
    parent = writer.track("CPUs used by layers (thousandths)", root)
    names = sorted({layer["name"] for _, look in seen for layer in look["layers"]})
    for name in names:
        track = writer.track(name, parent, is_counter=True)
        for ns, look in seen:
            used = sum(each["cpus_used"] for each in look["layers"] if each["name"] == name)
            writer.counter(track, ns, round(used * MILLI))


def _write_pods(writer: TraceWriter, root: int, seen: Sequence[tuple[int, Look]]) -> None:
    parent = writer.track("pods (thousandths of a CPU)", root)
    keys = sorted({pod["key"] for _, look in seen for pod in look["pods"]})
    for key in keys:
        for counter, what in (("cpu_used", "used"), ("run_delay", "waited")):
            track = writer.track(f"{key} {what}", parent, is_counter=True)
            for ns, look in seen:
                value = sum(each[counter] for each in look["pods"] if each["key"] == key)
                writer.counter(track, ns, round(value * MILLI))


def _write_violations(writer: TraceWriter, track: int, seen: Sequence[tuple[int, Look]]) -> None:
    ids: set[str] = set()
    for ns, look in seen:
        for violation in look["violations"]:
            if violation["id"] not in ids:
                ids.add(violation["id"])
                name = f"{violation['invariant']}: {violation['subject']}"
                writer.instant(track, ns, name, {"message": violation["message"]})
