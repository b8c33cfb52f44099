"""``temper k8s status``: the fleet as a table, worst first."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from temper_core import Tier
from temper_core.console import age, columns, print_json, printable, watch_options
from temper_kube.api_server import ApiServer
from temper_plugin_kubernetes.operators.fleet import (
    AgentPod,
    Fleet,
    FleetNode,
    NodeStanding,
    read_fleet,
)
from temper_plugin_kubernetes.operators.options import asked_of, cluster_options

FINDINGS = 1
HEADS = (
    "NODE", "KERNEL", "MODE", "REASON", "GEN", "PODS c/h/n/l/b", "CPUS c/h/n/l/b", "AGE",
    "AGENT", "VERSION", "RESTARTS",
)  # fmt: skip


@click.command("status")
@cluster_options
@watch_options
@click.option("-l", "--selector", default="", help="Only nodes with these labels.")
@click.option("--not-enforcing", is_flag=True, help="Leave out the nodes that enforce.")
def command(
    kubeconfig: str, context: str, namespace: str, output: str, selector: str, not_enforcing: bool
) -> int:
    """Show the state of every node, worst first.

    Columns: kernel, mode and reason, generation, pods and requested CPUs by tier (critical, high,
    normal, low, background), the age of these numbers, and the agent's pod.

    Exit codes: 0 no problem, 1 a node has a problem: its agent fails, is gone or silent, its
    numbers are old, or it is in safe mode without a request, 2 wrong options, 3 no API server, or
    the right to list nodes is missing.
    """
    options = asked_of(kubeconfig, context, namespace, output)
    with ApiServer(options.access) as api:
        fleet = read_fleet(api, options.namespace, selector)
    nodes = [node for node in fleet.nodes if not (not_enforcing and node.mode == "enforcing")]
    if options.is_json:
        print_json(document(fleet, nodes))
    else:
        for line in table(nodes):
            click.echo(line)
        click.echo(summary(fleet))
    for node in fleet.unknown:
        click.echo(printable(f"not known: {node.what}: {node.why}"), err=True)
    return FINDINGS if any(node.standing.needs_a_look for node in fleet.nodes) else 0


def table(nodes: Sequence[FleetNode]) -> list[str]:
    """Return the lines of the table. Empty without nodes."""
    return columns(HEADS, [_row(node) for node in nodes]) if nodes else []


def summary(fleet: Fleet) -> str:
    """Return the number of nodes by state, in one line."""
    counts = Counter(node.standing for node in fleet.nodes)
    parts = [f"{counts[standing]} {standing.text}" for standing in sorted(counts, reverse=True)]
    canaries = sum(agent.is_canary for agent in fleet.agents)
    number = f"{len(fleet.nodes)} node{'' if len(fleet.nodes) == 1 else 's'}"
    text = f"{number}: {', '.join(parts)}" if parts else "no nodes"
    return f"{text}; {canaries} of the canary" if canaries else text


def document(fleet: Fleet, nodes: Sequence[FleetNode]) -> dict[str, Any]:
    """Return the table and the summary as a JSON document."""
    counts = Counter(node.standing.name.lower() for node in fleet.nodes)
    return {
        "schema_version": 1,
        "nodes_in_all": len(fleet.nodes),
        "standings": dict(sorted(counts.items())),
        "nodes": [_record(node) for node in nodes],
        "unknown": [{"what": unknown.what, "why": unknown.why} for unknown in fleet.unknown],
    }


def _row(node: FleetNode) -> tuple[str, ...]:
    agent = node.agent
    return (
        node.name,
        node.kernel or "-",
        node.mode or "-",
        _reason(node),
        node.generation or "-",
        "/".join(_count(node.number(tier, "pods")) for tier in Tier),
        "/".join(_cpus(node.number(tier, "cpu-millis")) for tier in Tier),
        _age(node),
        _agent(node),
        (agent.version if agent else "") or "-",
        str(agent.restarts) if agent else "-",
    )


def _age(node: FleetNode) -> str:
    if node.standing is not NodeStanding.STALE:
        return age(node.age_s if node.age_s is None else max(0.0, node.age_s))
    if node.age_s is None:
        return "no time"
    return f"{age(abs(node.age_s))} {'old' if node.age_s > 0 else 'ahead'}"


def _reason(node: FleetNode) -> str:
    requested, done, _ = node.restore
    parts = [node.reason or ""]
    if requested:
        parts.append("restored" if done else "restoring")
    if not node.is_ready:
        parts.append("node not ready")
    return ", ".join(filter(None, parts)) or "-"


def _agent(node: FleetNode) -> str:
    if node.agent is None:
        return "none" if node.are_pods_known else "?"
    return f"{node.agent.text} (canary)" if node.agent.is_canary else node.agent.text


def _count(number: int | None) -> str:
    return "-" if number is None else str(number)


def _cpus(millis: int | None) -> str:
    return "-" if millis is None else f"{millis / 1000:.4g}"


def _record(node: FleetNode) -> dict[str, Any]:
    requested, done, left = node.restore
    return {
        "name": node.name,
        "kernel": node.kernel,
        "is_ready": node.is_ready,
        "standing": node.standing.name.lower(),
        "mode": node.mode,
        "reason": node.reason,
        "message": node.message,
        "generation": node.generation_number,
        "tiers": {
            str(tier): {
                "pods": node.number(tier, "pods"),
                "cpu_millis": node.number(tier, "cpu-millis"),
            }
            for tier in Tier
        },
        "age_s": node.age_s,
        "restore": {"requested": requested, "restored": done, "left": left},
        "agent": _agent_record(node.agent),
    }


def _agent_record(agent: AgentPod | None) -> dict[str, Any] | None:
    if agent is None:
        return None
    return {
        "pod": agent.name,
        "namespace": agent.namespace,
        "state": agent.text,
        "is_ready": agent.is_ready,
        "restarts": agent.restarts,
        "version": agent.version,
        "is_canary": agent.is_canary,
    }
