"""The candidate nodes that take a pod, for ``/filter`` and ``/preempt``."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import field, frozen

from temper_plugin_power.extender.cluster import Cluster
from temper_plugin_power.extender.places import Place
from temper_plugin_power.extender.questions import Question
from temper_plugin_power.extender.rating import Moment
from temper_plugin_power.extender.reading import label_of
from temper_plugin_power.extender.victims import Preemption
from temper_plugin_power.placing.rejecting import is_filtered, rejection_cause, rejection_text
from temper_plugin_power.placing.subjects import PodView


@frozen
class Filtered:
    """The answer to a question, and how many nodes were rejected for each cause."""

    body: str
    causes: Mapping[str, int] = field(factory=dict)


def filtered(question: Question, pod: PodView, cluster: Cluster, moment: Moment) -> Filtered:
    """Return an ExtenderFilterResult: the nodes that take *pod*, and why others do not."""
    causes = _causes(question, pod, cluster, moment)
    counts = Counter(causes.values())
    text_of = {cause: rejection_text(pod, cause) for cause in counts}
    reply: dict[str, Any] = {}
    if question.labels is not None:
        nodes = zip(question.names, question.labels, strict=True)
        items = [_item(name, labels) for name, labels in nodes if name not in causes]
        reply["nodes"] = {"items": items}
    else:
        reply["nodenames"] = [name for name in question.names if name not in causes]
    if causes:
        reasons = {name: text_of[cause] for name, cause in causes.items()}
        # Unresolvable: no eviction would make them take the pod.
        reply["failedAndUnresolvableNodes"] = reasons
    return Filtered(json.dumps(reply), counts)


def remaining(preemption: Preemption, pod: PodView | None, cluster: Cluster, moment: Moment) -> str:
    """Return an ExtenderPreemptionResult: the victims on the nodes that take *pod*.

    All victims remain without a view of the pod.
    """
    entries = preemption.entries
    causes = _known_causes(entries, pod, cluster, moment) if pod is not None else {}
    kept = (entry for name, entry in entries.items() if name not in causes)
    return f'{{"NodeNameToMetaVictims": {{{", ".join(kept)}}}}}'


def _known_causes(
    names: Iterable[str], pod: PodView, cluster: Cluster, moment: Moment
) -> Mapping[str, str]:
    """Return the nodes that do not take *pod* as the cache has them, with the cause."""
    if not is_filtered(pod):
        return {}
    rejecting = cluster.rejecting_between(moment.oldest, moment.newest)
    return {name: rejecting[name] for name in names if name in rejecting}


def _causes(
    question: Question, pod: PodView, cluster: Cluster, moment: Moment
) -> Mapping[str, str]:
    """Return the candidates that do not take *pod*, with the cause."""
    if question.labels is None:
        return _known_causes(question.names, pod, cluster, moment)
    if not is_filtered(pod):
        return {}
    causes = {}
    for name, labels in zip(question.names, question.labels, strict=True):
        # The label of the question is newer than that of the cache.
        place = cluster.places.get(name) or Place(name)
        is_fresh = place.is_fresh(moment.oldest, moment.newest)
        cause = rejection_cause(place.node_class, label_of(labels), is_fresh=is_fresh)
        if cause is not None:
            causes[name] = cause
    return causes


def _item(name: str, labels: Mapping[str, str]) -> Mapping[str, Any]:
    return {"metadata": {"name": name, **({"labels": labels} if labels else {})}}
