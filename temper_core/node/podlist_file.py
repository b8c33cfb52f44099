"""Reads the PodList of a file one pod after the other, so that the list is never whole."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from temper_core import documents
from temper_core.errors import DocumentError
from temper_core.json_items import JsonItems
from temper_core.node.podlist import read_pod_object, read_pods
from temper_core.records.pods import Pod

LISTS = ("PodList", "List")


def read_pod_file(path: Path, *, node: str | None = None) -> tuple[Pod, ...]:
    """Return the pods of the file, as ``read_pods`` does of its text.

    A PodList in JSON without a misfit is read pod by pod. Anything else is read whole, and what
    ``read_pods`` says of it holds. Raises DocumentError.
    """
    try:
        pods = _streamed(path, node)
    except (OSError, ValueError, RecursionError, DocumentError):
        pods = None
    if pods is None:
        return read_pods(documents.read_text(path), source=str(path), node=node)
    return pods


def _streamed(path: Path, node: str | None) -> tuple[Pod, ...] | None:
    """Return the pods of a PodList; None for a document of another kind."""
    # A pipe would be waited for without end where the file must not be one.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - of a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return _pods_of(file, str(path), node)


def _pods_of(file: BinaryIO, source: str, node: str | None) -> tuple[Pod, ...] | None:
    listed = JsonItems(file.read, documents.LARGEST_DOCUMENT_BYTES)
    pods: dict[str, Pod] = {}
    for item in listed:
        if not isinstance(item, dict) or item.get("kind", "Pod") != "Pod":
            return None
        pod = read_pod_object(item, source=source, node=node)
        if pod is not None:
            pods.setdefault(pod.uid, pod)
    is_pod_list = listed.has_list and listed.rest.get("kind") in LISTS
    return tuple(pods.values()) if is_pod_list else None
