"""Reads the PodList of a file one pod at a time, so that memory never holds the whole list."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from temper_core import documents
from temper_core.errors import DocumentError
from temper_core.json_items import JsonItems
from temper_core.node.pod_claims import PodClaims
from temper_core.node.podlist import (
    in_doubt_text,
    is_of_api_server,
    left_out_text,
    read_pod_object,
    read_pods,
)
from temper_core.records.pods import Pod

LARGEST_LIST_BYTES = 1 << 32
"""Tenants choose the size of their pods, up to 1.5 MiB. Only one is held at a time."""
LISTS = ("PodList", "List")
Report = Callable[[str], object]


def read_pod_file(
    path: Path, *, node: str | None = None, report: Report | None = None
) -> tuple[Pod, ...]:
    """Return the pods of the file, as ``read_pods`` does for its text.

    *report* gets a line about each pod that claims the cgroup of another, and about each that is
    left out. A PodList in JSON is read pod by pod, and of any size. Any other file is read whole by
    ``read_pods``. Raises DocumentError.
    """
    conflicts: list[str] = []
    try:
        pods = _streamed(path, node, conflicts.append)
    except (OSError, ValueError, RecursionError, DocumentError):
        pods = None
    if pods is None:
        return read_pods(documents.read_text(path), source=str(path), node=node, report=report)
    for conflict in conflicts:
        if report is not None:
            report(conflict)
    return pods


def _streamed(path: Path, node: str | None, report: Report) -> tuple[Pod, ...] | None:
    """Return the pods of a PodList, or None for a document of another kind."""
    # Without O_NONBLOCK, opening a FIFO blocks until it has a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        # With closefd, open() leaves the descriptor of a directory open.
        with open(descriptor, "rb", closefd=False) as file:
            return _pods_of(file, str(path), node, report)
    finally:
        os.close(descriptor)


def _pods_of(
    file: BinaryIO, source: str, node: str | None, report: Report
) -> tuple[Pod, ...] | None:
    listed = JsonItems(file.read, LARGEST_LIST_BYTES, documents.LARGEST_DOCUMENT_BYTES)
    claims = PodClaims(report)
    for item in listed:
        if not isinstance(item, dict) or item.get("kind", "Pod") != "Pod":
            return None
        doubts: list[str] = []
        try:
            pod = read_pod_object(item, source=source, node=node, doubted=doubts.append)
        except DocumentError as error:
            if not is_of_api_server(item):
                return None
            report(left_out_text(item, error.problems[0]))
            continue
        if doubts:
            report(in_doubt_text(item, doubts[0]))
        if pod is not None:
            claims.add(pod, item)
    is_pod_list = listed.has_list and listed.rest.get("kind") in LISTS
    return claims.pods() if is_pod_list else None
