"""Reads what the agent knew of the node, as ``node_notes`` writes it."""

import json
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from temper_plugin_tracer.capture.who_is_who import Membership, Memberships


@frozen
class NodeNotes:
    """The agent's looks at the node in order, and the membership of its threads."""

    looks: tuple[Mapping[str, Any], ...] = ()
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
    looks = sorted(document["looks"], key=lambda look: int(look["ns"]))
    return NodeNotes(tuple(looks), Memberships(by_tid, by_cgroup))
