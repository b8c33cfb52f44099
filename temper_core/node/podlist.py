"""Reads pods in the format of ``kubectl get pods -A -o json``, JSON or YAML."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from temper_core import documents
from temper_core.errors import DocumentError
from temper_core.node.pod_claims import PodClaims
from temper_core.node.pod_fields import JsonObject
from temper_core.node.pod_reading import has_ended, is_elsewhere, read_pod
from temper_core.records.pods import Pod

LONGEST_KEY = 320
KINDS = ("Pod", "PodList", "List")


def read_pods(
    text: str,
    *,
    source: str,
    node: str | None = None,
    report: Callable[[str], object] | None = None,
) -> tuple[Pod, ...]:
    """Return the pods of a PodList, a List, a single Pod, or several YAML documents.

    Finished and terminating pods are left out. So are those of other nodes if *node* is not None.
    A mirror pod and its static pod are one. Of several pods that claim one cgroup the strongest
    claim counts, and *report* gets a line about it. A pod of an API server that does not fit is
    left out of a list, with a line as well, and a quantity of such a pod that cannot be read counts
    as 0. Raises DocumentError with every other misfit.
    """
    tell = report or (lambda _line: None)
    problems: list[str] = []
    doubts: list[str] = []
    claims = PodClaims(report)
    for table in _pod_tables(_documents(text, source), problems, doubts):
        problems_before = len(problems)
        if has_ended(table) or (node is not None and is_elsewhere(table, node)):
            continue
        pod = read_pod(table)
        if not is_of_api_server(table.values):
            problems += doubts
        elif doubts:
            tell(in_doubt_text(table.values, doubts[0].removeprefix(f"{table.path}.")))
        doubts.clear()
        if len(problems) == problems_before:
            claims.add(pod, table.values)
        elif is_of_api_server(table.values):
            problem = problems[problems_before].removeprefix(f"{table.path}.")
            tell(left_out_text(table.values, problem))
            del problems[problems_before:]
    if problems:
        raise DocumentError(source, tuple(dict.fromkeys(problems)))
    return claims.pods()


def read_pod_object(
    values: Mapping[str, Any],
    *,
    source: str,
    node: str | None = None,
    doubted: Callable[[str], object] | None = None,
) -> Pod | None:
    """Return the pod of one parsed Pod object, or None if ``read_pods`` would leave it out.

    A quantity that cannot be read counts as 0, and *doubted* is called with the reason of the first
    one: the author of the pod then gains no CPUs, and the pod keeps its tier. Without *doubted*, or
    if no API server has made the object, it is a misfit. Raises DocumentError with every misfit.
    """
    problems: list[str] = []
    doubts: list[str] = []
    table = JsonObject(values, "", problems, doubts)
    is_out = has_ended(table) or (node is not None and is_elsewhere(table, node))
    pod = None if is_out else read_pod(table)
    if doubted is None or not is_of_api_server(values):
        problems += doubts
    elif doubts and not problems:
        doubted(doubts[0])
    if problems:
        raise DocumentError(source, tuple(dict.fromkeys(problems)))
    return pod


def is_of_api_server(values: Mapping[str, Any]) -> bool:
    """Whether an API server has made the Pod object: it has a uid and the time of its creation.

    A user with the right to create pods chooses most of such an object. It is no mistake of the
    list's author, and must not keep other pods from being read.
    """
    metadata = values.get("metadata")
    return isinstance(metadata, Mapping) and {"uid", "creationTimestamp"} <= metadata.keys()


def left_out_text(values: Mapping[str, Any], problem: str) -> str:
    """Return the line about a pod of a list that is left out because of *problem*."""
    return f"pod {_key(values)} is left out: {problem}"


def in_doubt_text(values: Mapping[str, Any], problem: str) -> str:
    """Return the line about a pod with a quantity that counts as 0 because of *problem*."""
    return f"pod {_key(values)} has a quantity that counts as 0: {problem}"


def _key(values: Mapping[str, Any]) -> str:
    metadata = values["metadata"]
    return f"{metadata.get('namespace', 'default')}/{metadata.get('name', '')}"[:LONGEST_KEY]


def _documents(text: str, source: str) -> list[Any]:
    if text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        return [documents.parse_json(text.lstrip("\ufeff"), source=source)]
    parsed = documents.parse_yaml(text, source=source)
    return [document for document in parsed if document is not None]


def _pod_tables(
    documents: list[Any], problems: list[str], doubts: list[str]
) -> Iterator[JsonObject]:
    """Yield every Pod object. Objects of other kinds in a list are skipped."""
    if not documents:
        problems.append("document: is empty; a PodList, a List or a Pod is needed")
    for index, document in enumerate(documents):
        path = f"documents[{index}]" if len(documents) > 1 else ""
        if isinstance(document, dict):
            table = JsonObject(document, path, problems, doubts)
            yield from _pods_in(table, is_alone=len(documents) == 1)
        else:
            problems.append(f"{path or 'document'}: must be a PodList, a List or a Pod")


def _pods_in(table: JsonObject, *, is_alone: bool) -> Iterator[JsonObject]:
    kind = table.text("kind")
    if kind in ("PodList", "List"):
        yield from _items(table)
    elif kind == "Pod":
        yield table
    elif is_alone:
        table.complain("kind", f"must be one of {', '.join(KINDS)}, not {kind[:40]!r}")


def _items(table: JsonObject) -> Iterator[JsonObject]:
    if not isinstance(table.values.get("items"), list):
        table.complain("items", "must be a list")
        return
    # The items of the API server's PodList have no kind.
    yield from (item for item in table.tables("items") if item.text("kind") in ("", "Pod"))
