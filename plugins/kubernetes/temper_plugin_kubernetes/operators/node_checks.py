"""Checks of the nodes, from their Node objects and their agents' annotations."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from temper_core.console import age
from temper_plugin_kubernetes.operators.findings import Finding, error, note, warning
from temper_plugin_kubernetes.operators.fleet import Fleet, FleetNode, NodeStanding

OLDEST_KERNEL = (6, 12)
OS = "kubernetes.io/os"
SAFE_MODE_PAGE = "docs/safe-mode.md"

_ON_THE_NODE = "run `temper doctor` on the node"
_REASONS = {
    "foreign_scheduler": (
        "another sched_ext scheduler runs",
        (
            "stop it (systemctl disable --now scx.service scx_loader.service, or its DaemonSet); "
            "Temper never does"
        ),
    ),
    "preflight": ("the agent's preflight fails", _ON_THE_NODE),
    "invalid_plan": ("the engine refuses the plan", "change the pods' tiers or the profile"),
    "ejected": ("the kernel ejected the engine", f"{_ON_THE_NODE}: it names the cause"),
    "crash_loop": (
        "the engine failed five times within an hour",
        "find the cause (agent's log, `temper doctor`), then set safe mode and release it",
    ),
}
_PREFLIGHT = {
    "btf": "boot a kernel with CONFIG_DEBUG_INFO_BTF=y",
    "cgroup_v2": "boot with systemd.unified_cgroup_hierarchy=1",
    "static_cpu_manager": "set the kubelet's cpuManagerPolicy to none, or [scheduler] "
    "allow_static_cpu_manager = true",
    "privileges": "the chart's agent.securityContext was cut down too far",
    "memory": "give the agent 768Mi or more, and the node some memory",
}


def kernels(fleet: Fleet) -> Iterator[Finding]:
    """Find kernels that are too old for sched_ext, which came with Linux 6.12."""
    for kernel, nodes in _grouped(fleet.nodes, lambda node: node.kernel):
        version = _version(kernel)
        if version is not None and version < OLDEST_KERNEL:
            yield error(
                "kernel",
                f"kernel {kernel} has no sched_ext; it needs 6.12 or later",
                "use another node image; until then Temper only observes there",
                nodes,
            )


def platforms(fleet: Fleet) -> Iterator[Finding]:
    """Find platforms whose kernels or rules are known to exclude the engine."""
    for problem, nodes in _grouped(fleet.nodes, _platform):
        if problem:
            what, remedy = _PLATFORMS[problem]
            yield error("platform", what, remedy, nodes)


_PLATFORMS = {
    "autopilot": (
        "GKE Autopilot admits no agent: pods with host access are forbidden",
        "use a Standard cluster",
    ),
    "aks": (
        "AKS (Azure Linux, Ubuntu) builds its kernels without sched_ext, the 6.12 HWE kernel too",
        "none yet; Temper observes, lints and advises there",
    ),
    "openshift": (
        "OpenShift 4 nodes (RHEL CoreOS on RHEL 9) run a 5.14 kernel without sched_ext",
        "wait for RHEL CoreOS on RHEL 10",
    ),
}


def _platform(node: FleetNode) -> str:
    if node.name.startswith("gk3-"):
        return "autopilot"
    if node.provider == "azure" or "kubernetes.azure.com/cluster" in node.labels:
        return "aks"
    if re.match(r"Red Hat Enterprise Linux CoreOS 4", node.os_image):
        return "openshift"
    return ""


def agents(fleet: Fleet) -> Iterator[Finding]:
    """Find nodes whose agent fails, is gone, silent or stale."""
    yield from _by_standing(
        fleet,
        NodeStanding.FAILING,
        lambda nodes: error(
            "agent",
            "the agent's pod does not run",
            "kubectl -n temper describe pod, and its log with --previous",
            nodes,
        ),
    )
    yield from _by_standing(
        fleet,
        NodeStanding.GONE,
        lambda nodes: error(
            "agent",
            "the node has an agent's annotations but no agent: it was killed or removed",
            "bring the agent back, or run `temper k8s restore` for the node",
            nodes,
        ),
    )
    yield from _by_standing(
        fleet,
        NodeStanding.SILENT,
        lambda nodes: warning(
            "agent",
            "the agent has not annotated its node",
            "kubectl -n temper describe pod, and its log; it is pending, starts, or lacks the "
            "rights of ClusterRole temper-agent",
            nodes,
        ),
    )
    for node in fleet.nodes:
        if node.standing is NodeStanding.STALE:
            detail = f"the agent's annotations {_are_of(node.age_s)}"
            yield warning(
                "agent", detail, "see its log: it cannot write to the API server", [node.name]
            )


def _are_of(age_s: float | None) -> str:
    if age_s is None:
        return "have no time that can be read"
    return f"are {age(age_s)} old" if age_s > 0 else f"are {age(-age_s)} ahead of this clock"


def coverage(fleet: Fleet) -> Iterator[Finding]:
    """Find nodes without an agent, if others have one."""
    bare = [
        node.name
        for node in fleet.nodes
        if node.standing is NodeStanding.NO_AGENT and node.labels.get(OS, "linux") == "linux"
    ]
    if bare and any(fleet.agents):
        yield note(
            "coverage",
            "no agent runs there, so the kernel's default scheduler is in use",
            "if that is not intended, see agent.nodeSelector and agent.tolerations of the chart",
            bare,
        )


def modes(fleet: Fleet) -> Iterator[Finding]:
    """Find nodes whose agent does not enforce, with the agent's reason."""
    for node in fleet.nodes:
        if node.standing is NodeStanding.SAFE_MODE:
            yield from _safe_mode(node)
        elif node.standing is NodeStanding.OBSERVING and node.reason == "no_sched_ext":
            yield error(
                "sched_ext",
                f"the kernel {node.kernel} was built without sched_ext",
                "boot a kernel with CONFIG_SCHED_CLASS_EXT=y",
                [node.name],
            )
    requested = [
        fleet_node.name
        for fleet_node in fleet.nodes
        if fleet_node.standing is NodeStanding.REQUESTED
    ]
    if requested:
        yield note(
            "safe_mode",
            "in safe mode on request",
            "`temper safe-mode status` on the node names the requester; "
            "kubectl annotate node NODE temper.codes/safe-mode-requested- releases the cluster's "
            "request, and temper.codes/safe-mode-requested=false that of a former Node object",
            requested,
        )


def _safe_mode(node: FleetNode) -> Iterator[Finding]:
    what, remedy = _REASONS.get(node.reason, ("in safe mode", SAFE_MODE_PAGE))
    if node.reason != "preflight":
        yield error(node.reason or "safe_mode", f"{what}: {node.message}", remedy, [node.name])
        return
    # The agent joins the failed checks with semicolons: ``btf: no BTF; cgroup_v2: only v1``.
    for part in filter(None, node.message.split("; ")):
        check, has_name, detail = part.partition(": ")
        is_check = bool(has_name) and re.fullmatch(r"[a-z0-9_]+", check) is not None
        yield error(
            check if is_check else "preflight",
            f"{what}: {detail if is_check else part}",
            _PREFLIGHT.get(check, _ON_THE_NODE),
            [node.name],
        )


def versions(fleet: Fleet) -> Iterator[Finding]:
    """Find agents of several versions, without the canary."""
    nodes_by_version: defaultdict[str, list[str]] = defaultdict(list)
    for agent in fleet.agents:
        if not agent.is_canary:
            nodes_by_version[agent.version].append(agent.node)
    if len(nodes_by_version) > 1:
        totals = ", ".join(
            f"{len(nodes)} of {version}" for version, nodes in sorted(nodes_by_version.items())
        )
        fewest = min(nodes_by_version.values(), key=len)
        yield warning(
            "version_skew",
            f"agents of several versions: {totals}",
            "kubectl -n temper rollout status ds/temper-agent",
            sorted(fewest),
        )


def _by_standing(
    fleet: Fleet, standing: NodeStanding, finding_of: Callable[[list[str]], Finding]
) -> Iterator[Finding]:
    nodes = [node.name for node in fleet.nodes if node.standing is standing]
    if nodes:
        yield finding_of(nodes)


def _grouped(
    nodes: Iterable[FleetNode], key: Callable[[FleetNode], str]
) -> Iterator[tuple[str, Sequence[str]]]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for node in nodes:
        groups[key(node)].append(node.name)
    for value in sorted(groups):
        yield value, sorted(groups[value])


def _version(kernel: str) -> tuple[int, int] | None:
    matched = re.match(r"(\d+)\.(\d+)", kernel)
    return (int(matched[1]), int(matched[2])) if matched else None
