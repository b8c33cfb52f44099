"""The arms: what is compared. A new arm is one entry of ``ARMS``."""

import tomllib
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from bench.ladder.servers import SERVERS

CRITICAL, HIGH = 1_000_000, 100_000
"""Priorities in the default mapping, where each is the smallest of its tier."""

SERVING = """
schema_version = 1
id = "ladder"

[fingerprint]
processes = ["ladder-client"]

[[thread_groups]]
name = "serving"
match = [{ comm_prefix = "ladder-server" }, { comm_prefix = "ladder-client" }]
"""
"""The beginning of every profile: the group of the threads that a request waits for."""

SPLIT = f"""{SERVING}
treatment = "exclusive"
cpu_fraction = 0.6

[[thread_groups]]
name = "logs"
treatment = "yield"
"""


@frozen
class Arm:
    """How the node is scheduled while a load is measured.

    ``settings`` are tables of the agent's settings file. They are merged over those that every arm
    has. ``profile`` is the text of the server's workload profile, empty for none. ``priority`` is
    that of the server's pod, and so its tier. On a crowded node an idle pod of the same priority
    requests all CPUs that the server's pod does not, so critical pods are demoted. ``pack`` is the
    id of a builtin profile that the annotation of the server's pod names, empty for none.
    """

    is_stock: bool = False
    settings: Mapping[str, Any] = field(factory=dict)
    profile: str = ""
    priority: int = CRITICAL
    is_crowded: bool = False
    pack: str = ""

    @property
    def profile_id(self) -> str:
        """The id of the profile that the annotation of the server's pod names, or nothing."""
        return str(tomllib.loads(self.profile)["id"]) if self.profile else self.pack


TIERS, TRAINED = "tiers", "trained"
"""The second is the arm of a profile of ``temper train``."""

ARMS: Mapping[str, Arm] = {
    "stock": Arm(is_stock=True),
    TIERS: Arm(),
    "preempt": Arm(settings={"tiers": {"critical": {"preempt": True}}}),
    "lend": Arm(settings={"tiers": {"critical": {"isolation": "lend"}}}),
    "profile": Arm(profile=SPLIT),
    "latency": Arm(profile=f'{SERVING}treatment = "latency"\n'),
    "boost": Arm(profile=f'{SERVING}treatment = "boost"\n'),
    "high": Arm(priority=HIGH),
    "demoted": Arm(is_crowded=True),
    **{f"{name}-pack": Arm(pack=server.pack) for name, server in SERVERS.items() if server.pack},
}
"""Stock is the agent in safe mode, so that its own cost is a part of every arm."""


def with_trained(profile: str) -> Mapping[str, Arm]:
    """Return all arms, with that of a trained *profile* if there is one."""
    return {**ARMS, TRAINED: Arm(profile=profile)} if profile else ARMS
