"""``temper placement score``: reads nodes and pods once, and scores one pod."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from temper_core import DocumentError, InputError
from temper_kube.api_server import ApiServer
from temper_plugin_density.cluster_access import about, find_access
from temper_plugin_density.object_files import STANDARD_INPUT, read_objects
from temper_plugin_density.placement.asking import PodDemand, PodReader
from temper_plugin_density.placement.explaining import (
    RECKONED,
    RECKONED_AGAIN,
    ScoreRecord,
    explain,
)
from temper_plugin_density.placement.ledger import Ledger
from temper_plugin_density.placement.watching import NODES, PODS, NodeFollower, PodFollower

ENDINGS = (".yaml", ".yml", ".json")
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def score_once(pod: str, reader: PodReader, kubeconfig: Path | None) -> Mapping[str, Any]:
    """Explain the score of every node for *pod*, a file or a [namespace/]name.

    Raises InputError if there is no such pod, MachineError if the API server does not answer.
    """
    manifest = _read_file(pod) if _is_file(pod) else None
    with ApiServer(find_access(kubeconfig)) as server:
        item = _completed(server, manifest) if manifest is not None else _found(server, pod)
        demand, ledger = _wish(item, reader, pod), _ledger(server, reader)
    scores = ledger.scores(demand, ledger.nodes)
    source = RECKONED_AGAIN if ledger.find_pod(demand.pod) else RECKONED
    return explain(ScoreRecord(demand, scores, time.time()), ledger, source)


def _is_file(pod: str) -> bool:
    return pod == STANDARD_INPUT or pod.endswith(ENDINGS)


def _read_file(path: str) -> Mapping[str, Any]:
    source = "standard input" if path == STANDARD_INPUT else path
    documents = read_objects(Path(path), source)
    pods = [
        document
        for document in documents
        if isinstance(document, dict) and document.get("kind") == "Pod"
    ]
    if len(pods) != 1:
        raise InputError(f"{source}: must have exactly one Pod, and has {len(pods)}")
    return pods[0]


def _found(server: ApiServer, pod: str) -> Mapping[str, Any]:
    namespace, _, name = pod.rpartition("/")
    path = f"/api/v1/namespaces/{quote(namespace or server.access.namespace, '')}/pods"
    with about(f"pod {pod}"):
        return server.get(f"{path}/{quote(name, '')}")


def _completed(server: ApiServer, manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set the priority of a manifest as the API server does at admission."""
    spec = manifest.get("spec")
    name = spec.get("priorityClassName") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(name, str) or "priority" in spec:
        return manifest
    with about(f"priority class {name}"):
        value = server.get(f"{PRIORITY_CLASSES}/{quote(name, '')}").get("value", 0)
    return {**manifest, "spec": {**spec, "priority": value}}


def _wish(item: Mapping[str, Any], reader: PodReader, source: str) -> PodDemand:
    try:
        return reader.demand(item)
    except DocumentError as error:
        raise DocumentError(source, error.problems) from error


def _ledger(server: ApiServer, reader: PodReader) -> Ledger:
    ledger = Ledger()
    with about("nodes"):
        NodeFollower(ledger).replaced(server.each(NODES.path))
    with about("pods"):
        PodFollower(ledger, reader).replaced(server.each(PODS.path, fields=PODS.fields))
    return ledger
