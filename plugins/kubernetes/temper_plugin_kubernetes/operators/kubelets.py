"""Checks of the kubelets' own configuration, as far as it may be read.

Source: the kubelet's ``/configz``, through the API server (``nodes/N/proxy/configz``).
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from attrs import frozen

from temper_core import MachineError, parse_tenant_json
from temper_core.console import named
from temper_core.observed import table
from temper_kube.access import Access
from temper_kube.api_server import ApiServer
from temper_kube.proxied import get_proxied, require_proxy
from temper_plugin_kubernetes.operators.findings import Finding, Unknown, error, note

AT_ONCE = 16
ANSWER_S = 5.0
ALL_S = 60.0
"""The deadline for all kubelets of a fleet. Later ones are listed as unknown."""
MOST_REASONS = 3
LARGEST_BYTES = 256 * 1024
"""The largest answer. A configuration has some 6 KiB, and an attacker may control a node."""


@frozen
class KubeletSettings:
    """What is checked of a kubelet's configuration."""

    pins_cpus: bool
    accepts_cgroup_v1: bool


@frozen
class Kubelets:
    """The kubelets' settings by node, and the kubelets without an answer."""

    settings: Mapping[str, KubeletSettings]
    unknown: tuple[Unknown, ...] = ()


def ask_kubelets(access: Access, nodes: Sequence[str]) -> Kubelets:
    """Read the configurations of *nodes*, AT_ONCE at a time, none without the right."""
    settings: dict[str, KubeletSettings] = {}
    silent: defaultdict[str, list[str]] = defaultdict(list)
    try:
        _require_right(access, nodes)
    except MachineError as problem:
        return Kubelets({}, (Unknown("the kubelets' configuration", str(problem)),))
    for node, answer in zip(nodes, _ask_all(access, nodes), strict=True):
        if isinstance(answer, str):
            silent[answer].append(node)
        else:
            settings[node] = answer
    return Kubelets(settings, tuple(_unknown(silent)))


def _require_right(access: Access, nodes: Sequence[str]) -> None:
    """Raise MachineError if the user may not ask kubelets."""
    with ApiServer(access) as api:
        for node in nodes[:1]:
            require_proxy(api, "nodes", node)


def _ask_all(access: Access, nodes: Sequence[str]) -> list[KubeletSettings | str]:
    """Return each answer, or why there is none. An interruption cancels the remaining requests."""
    deadline = time.monotonic() + ALL_S
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        return list(pool.map(lambda node: _tried(access, node, deadline), nodes))
    finally:
        pool.shutdown(cancel_futures=True)


def _unknown(silent: Mapping[str, Sequence[str]]) -> Iterator[Unknown]:
    """Yield the commonest reasons, and one entry for all others: each reason may name a node."""
    commonest = sorted(silent.items(), key=lambda reason: -len(reason[1]))
    for why, which in commonest[:MOST_REASONS]:
        yield Unknown(f"the kubelets' configuration of {named(which)}", why)
    others = [node for _, which in commonest[MOST_REASONS:] for node in which]
    if others:
        yield Unknown(f"the kubelets' configuration of {named(others)}", "for other reasons")


def cpu_managers(kubelets: Kubelets) -> Iterator[Finding]:
    """Find kubelets that pin containers to CPUs themselves."""
    pinning = [node for node, its in sorted(kubelets.settings.items()) if its.pins_cpus]
    if pinning:
        yield error(
            "static_cpu_manager",
            "the kubelet's static CPU manager pins containers to CPUs, unknown to the engine",
            "set cpuManagerPolicy: none (and remove /var/lib/kubelet/cpu_manager_state), or "
            "[scheduler] allow_static_cpu_manager = true",
            pinning,
        )


def cgroup_drivers(kubelets: Kubelets) -> Iterator[Finding]:
    """Find kubelets that accept cgroup v1."""
    lax = [node for node, its in sorted(kubelets.settings.items()) if its.accepts_cgroup_v1]
    if lax:
        yield note(
            "cgroup_v2",
            "the kubelet is configured to run on cgroup v1 too (failCgroupV1: false)",
            "Temper needs cgroup v2; an agent on cgroup v1 fails its preflight",
            lax,
        )


def _tried(access: Access, node: str, deadline: float) -> KubeletSettings | str:
    if time.monotonic() > deadline:
        return f"not reached within {ALL_S:g} s; run `temper doctor` on the node"
    try:
        return _ask(access, node)
    except MachineError as problem:
        return str(problem)


def _ask(access: Access, node: str) -> KubeletSettings:
    path = f"/api/v1/nodes/{node}/proxy/configz"
    body = get_proxied(access, path, "the kubelet", most_bytes=LARGEST_BYTES, timeout_s=ANSWER_S)
    try:
        document = parse_tenant_json(body)
    except (ValueError, RecursionError) as error:
        raise MachineError("the kubelet's answer is not JSON") from error
    if not isinstance(document, dict):
        raise MachineError("the kubelet's answer is not an object")
    configuration = table(document, "kubeletconfig")
    return KubeletSettings(
        configuration.get("cpuManagerPolicy") == "static",
        configuration.get("failCgroupV1") is False,
    )
