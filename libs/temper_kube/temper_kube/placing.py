"""A pod's node, and the agent there."""

import re
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from temper_core import InputError, MachineError
from temper_core.observed import rows
from temper_kube.agents import AGENTS
from temper_kube.kubectl import AgentPod, Kubectl

NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
"""The name of an object (RFC 1123 subdomain)."""

Object = Mapping[str, Any]


@frozen
class PlacedPod:
    """A pod that runs, its node, and the pod of the node's agent.

    ``found`` is the pod as the API server has it.
    """

    pod: str
    node: str
    agent: AgentPod
    found: Object = field(eq=False, repr=False)


def place(kubectl: Kubectl, pod: str, agents_namespace: str) -> PlacedPod:
    """Find the node and the agent of *pod*, ``NAMESPACE/NAME`` or ``NAME``.

    Without a namespace kubectl's current one counts. Raises InputError if there is no such pod,
    MachineError if it does not run, if its node has no agent, or if kubectl fails.
    """
    namespace, name = _names(pod)
    words = (f"--namespace={namespace}",) if namespace else ()
    found = kubectl.read(*words, "--", "pod", name)
    full = f"{name_of(found, 'namespace')}/{name_of(found, 'name')}"
    node, phase = _text(found, "spec", "nodeName"), _text(found, "status", "phase")
    if not node or phase != "Running":
        raise MachineError(f"the pod {full} does not run: {phase or 'its phase is unknown'}")
    if not NAME.fullmatch(node):
        raise MachineError(f"kubectl answers with a pod whose node is {node!r}")
    return PlacedPod(full, node, _agent(kubectl, node, agents_namespace), found)


def _names(pod: str) -> tuple[str, str]:
    namespace, _, name = pod.rpartition("/")
    if not NAME.fullmatch(name) or ("/" in pod and not NAME.fullmatch(namespace)):
        raise InputError(f"{pod!r} is not the name of a pod: [NAMESPACE/]NAME")
    return namespace, name


def _agent(kubectl: Kubectl, node: str, namespace: str) -> AgentPod:
    """Return the agent of *node*. One that is ready takes precedence."""
    if not NAME.fullmatch(namespace):
        raise InputError(f"--namespace {namespace!r} is not the name of a namespace")
    words = (f"--namespace={namespace}", f"--selector={AGENTS}")
    listed = kubectl.read("pods", *words, f"--field-selector=spec.nodeName={node}")
    items = listed.get("items") if isinstance(listed, Mapping) else None
    running = [item for item in items or () if _text(item, "status", "phase") == "Running"]
    if not running:
        raise MachineError(f"no agent runs on the node {node} (namespace {namespace})")
    best = max(running, key=_is_ready)
    return AgentPod(kubectl, namespace, name_of(best, "name"))


def name_of(item: Object, key: str) -> str:
    """Return a name from the API server's answer. Another text could be an option of kubectl."""
    name = _text(item, "metadata", key)
    if not NAME.fullmatch(name):
        raise MachineError(f"kubectl answers with a pod whose {key} is {name!r}")
    return name


def _is_ready(item: Object) -> bool:
    return any(
        (_text(condition, "type"), _text(condition, "status")) == ("Ready", "True")
        for condition in rows(item.get("status"), "conditions")
    )


def _text(item: object, *keys: str) -> str:
    for key in keys:
        item = item.get(key) if isinstance(item, Mapping) else None
    return item if isinstance(item, str) else ""
