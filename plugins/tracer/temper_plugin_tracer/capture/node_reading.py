"""Reads what the agent knew of the node, as ``node_notes`` writes it."""

import json
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from temper_plugin_tracer.capture.who_is_who import Membership, Memberships


@frozen
class NodeNotes:
    """The agent's looks at the node and its events, in order, and the membership of threads."""

    looks: tuple[Mapping[str, Any], ...] = ()
    events: tuple[Mapping[str, Any], ...] = ()
    memberships: Memberships = field(factory=Memberships)


def read_notes(content: bytes) -> NodeNotes:
    """Read the notes. Raises ValueError."""
    document = json.loads(content)
    by_tid = {
        tid: (tgid, Membership(pod, group, tier, layer))
        for tid, tgid, pod, group, tier, layer in document["threads"]
    }
    by_cgroup = {
        int(cgroup): Membership(pod, "", tier, "")
        for cgroup, (pod, tier) in document["cgroups"].items()
    }
    looks, events = (
        tuple(sorted(document[name], key=lambda entry: int(entry["ns"])))
        for name in ("looks", "events")
    )
    return NodeNotes(looks, events, Memberships(by_tid, by_cgroup))
