"""Reads a PodList and the metrics of its pods, as files."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen
from attrs.validators import ge

from temper_core import DocumentError, fit, parse_yaml, read_json, read_pod_object, read_text
from temper_plugin_power.workloads.energy import Dialect
from temper_plugin_power.workloads.pods import MeasuredPod, PodMeasures

YAML = (".yaml", ".yml")


@frozen
class Metrics:
    """What a file of metrics says."""

    window_s: int = field(default=600, validator=ge(1))
    dialect: Dialect = Dialect.NONE
    pods: Mapping[str, PodMeasures] = field(factory=dict)
    """By ``namespace/name``."""


@frozen
class PodFile:
    """The pods of a file, and a line about each that is left out."""

    pods: tuple[MeasuredPod, ...]
    left_out: tuple[str, ...]

    def with_metrics(self, metrics: Metrics) -> tuple[MeasuredPod, ...]:
        """Return the pods with their measures."""
        return tuple(
            evolve(pod, measures=metrics.pods.get(pod.pod.key, PodMeasures())) for pod in self.pods
        )

    def unknown(self, metrics: Metrics) -> list[str]:
        """Return the pods of *metrics* that the file does not have."""
        return sorted(metrics.pods.keys() - {pod.pod.key for pod in self.pods})


def read_metrics(path: Path) -> Metrics:
    """Return the metrics of a JSON file, ``-`` for standard input. Raise DocumentError if invalid.

    Energy needs a dialect, since without one it is not known what it means.
    """
    try:
        metrics = fit(read_json(path), Metrics, source=str(path))
    except RecursionError as error:
        raise DocumentError(str(path), ["is nested too deeply"]) from error
    energetic = [key for key, measures in metrics.pods.items() if measures.has_energy]
    if energetic and metrics.dialect is Dialect.NONE:
        named = " or ".join(repr(str(each)) for each in Dialect if each is not Dialect.NONE)
        problem = f"dialect: must be {named}, since pods.{energetic[0]} has energy of Kepler"
        raise DocumentError(str(path), [problem])
    return metrics


def read_pod_file(path: Path) -> PodFile:
    """Return the pods of a PodList, a List or a Pod, in JSON or YAML (by the name of the file).

    Pods that have ended are left out without a line. Raises DocumentError if it is none of these.
    """
    pods, left_out = [], []
    for place, item in _items(path):
        try:
            pod = _pod(item, f"{path}: {place}")
        except DocumentError as error:
            left_out.append(f"left out: {error.lines[0]}")
        else:
            pods += [pod] if pod else []
    return PodFile(tuple(pods), tuple(left_out))


def _items(path: Path) -> Iterator[tuple[str, object]]:
    """Yield every Pod object with its place in the file."""
    is_yaml = path.suffix in YAML
    documents = parse_yaml(read_text(path, pipes=True), source=str(path)) if is_yaml else None
    yield from _items_of(documents or [read_json(path)], str(path))


def _items_of(documents: Iterable[object], source: str) -> Iterator[tuple[str, object]]:
    for number, document in enumerate(documents):
        items = document.get("items") if isinstance(document, Mapping) else None
        if isinstance(items, list):
            yield from ((f"items[{place}]", item) for place, item in enumerate(items))
        elif isinstance(document, Mapping) and document.get("kind") == "Pod":
            yield f"documents[{number}]", document
        else:
            raise DocumentError(source, ["must be a PodList, a List or a Pod"])


def _pod(item: object, source: str) -> MeasuredPod | None:
    """Return the pod, None if it has ended or is no pod. Raise DocumentError if it is invalid."""
    if not isinstance(item, Mapping):
        raise DocumentError(source, ["must be a table"])
    if item.get("kind", "Pod") != "Pod":
        return None
    pod = read_pod_object(item, source=source)
    if pod is None:
        return None
    created = _text(item, "metadata", "creationTimestamp")
    return MeasuredPod(pod, _text(item, "spec", "nodeName"), created)


def _text(item: Mapping[str, Any], table: str, key: str) -> str:
    """Return a text of a valid pod, empty for any other value."""
    value = (item.get(table) or {}).get(key)
    return value if isinstance(value, str) else ""
