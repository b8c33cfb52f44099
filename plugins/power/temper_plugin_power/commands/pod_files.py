"""Reads a PodList and the metrics of its pods, as files."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from attrs import field, frozen
from attrs.validators import ge

from temper_core import DocumentError, fit, read_json
from temper_plugin_power.commands.object_files import read_documents
from temper_plugin_power.measuring.readings import with_measures
from temper_plugin_power.resources.fields import text_at
from temper_plugin_power.workloads.energy import Dialect
from temper_plugin_power.workloads.pod_objects import measured_pod
from temper_plugin_power.workloads.pods import MeasuredPod, PodMeasures


@frozen
class Metrics:
    """The contents of a file of metrics."""

    window_s: int = field(default=600, validator=ge(1))
    dialect: Dialect = Dialect.NONE
    pods: Mapping[str, PodMeasures] = field(factory=dict)
    """By ``namespace/name``."""


@frozen
class PodFile:
    """The pods of a file that have not ended."""

    pods: tuple[MeasuredPod, ...]
    ended: frozenset[str]
    """The names of the others, ``namespace/name``."""
    left_out: tuple[str, ...]
    """A line about each that is invalid."""

    def with_metrics(self, metrics: Metrics) -> tuple[MeasuredPod, ...]:
        """Return the pods with their measures."""
        return with_measures(self.pods, metrics.pods)

    def unknown(self, metrics: Metrics) -> list[str]:
        """Return the pods of *metrics* that the file does not have."""
        return sorted(metrics.pods.keys() - self.ended - {pod.pod.key for pod in self.pods})


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
    return sort_pods(_items(path), str(path))


def sort_pods(items: Iterable[tuple[str, object]], source: str) -> PodFile:
    """Return the pods of Pod objects, each given with its place in *source*."""
    pods, ended, left_out = [], set(), []
    for place, item in items:
        try:
            pod = measured_pod(item, f"{source}: {place}")
        except DocumentError as error:
            left_out.append(f"left out: {error.lines[0]}")
            continue
        if pod is None:
            keys = (text_at(item, f"metadata.{key}") for key in ("namespace", "name"))
            ended.add("/".join(keys))
        else:
            pods.append(pod)
    return PodFile(tuple(pods), frozenset(ended), tuple(left_out))


def _items(path: Path) -> Iterator[tuple[str, object]]:
    """Yield every Pod object with its place in the file."""
    yield from _items_of(read_documents(path), str(path))


def _items_of(documents: Iterable[object], source: str) -> Iterator[tuple[str, object]]:
    for number, document in enumerate(documents):
        items = document.get("items") if isinstance(document, Mapping) else None
        if isinstance(items, list):
            yield from ((f"items[{at}]", item) for at, item in enumerate(items) if _is_pod(item))
        elif isinstance(document, Mapping) and document.get("kind") == "Pod":
            yield f"documents[{number}]", document
        else:
            raise DocumentError(source, ["must be a PodList, a List or a Pod"])


def _is_pod(item: object) -> bool:
    """Return whether an item of a list is a pod. The items of a PodList have no kind."""
    return not isinstance(item, Mapping) or item.get("kind", "Pod") == "Pod"
