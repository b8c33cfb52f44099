"""The threads of one pod, each with its layer by plan, by hint and in the engine."""

from collections.abc import Iterable, Iterator
from typing import Any

from temper_core.records.snapshots import Snapshot, ThreadSample
from temper_core.records.steering import ThreadTruth
from temper_core.steering.truth import Truths

Json = dict[str, Any]


def pod_threads(pod: str, truth: Truths | None, snapshot: Snapshot | None, top: int) -> list[Json]:
    """Return at most *top* threads of the pod *pod*, astray ones first and then the busiest.

    Without *truth* they are those that ran in the last window, and their layers are inferred.
    """
    samples = {thread.tid: thread for thread in snapshot.threads} if snapshot else {}
    rows = (
        _from_truth(truth.of_pod(pod), samples)
        if truth is not None
        else _from_samples(pod, samples.values())
    )
    return sorted(rows, key=lambda row: (not row["is_astray"], -row["cpu_used"], row["tid"]))[:top]


def _from_truth(truths: Iterable[ThreadTruth], samples: dict[int, ThreadSample]) -> Iterator[Json]:
    for truth in truths:
        sample = samples.get(truth.tid)
        yield {
            "tid": truth.tid,
            "tgid": truth.tgid,
            "comm": truth.comm,
            "expected_layer": truth.expected,
            "hinted_layer": truth.hinted,
            "layer": truth.layer,
            "layer_is_known": bool(truth.layer),
            "is_decided": truth.is_decided,
            "is_astray": bool(truth.layer) and truth.layer != truth.expected,
            "cpu_used": round(sample.cpu_used, 6) if sample is not None else 0.0,
        }


def _from_samples(pod: str, samples: Iterable[ThreadSample]) -> Iterator[Json]:
    for sample in samples:
        key = f"{sample.namespace}/{sample.pod}" if sample.namespace else sample.pod
        if key == pod:
            yield {
                "tid": sample.tid,
                "tgid": sample.tgid,
                "comm": sample.comm,
                "expected_layer": sample.expected_layer,
                "hinted_layer": sample.hinted_layer,
                "layer": sample.layer,
                "layer_is_known": sample.layer_is_known,
                "is_decided": False,
                "is_astray": sample.layer_is_known and sample.layer != sample.expected_layer,
                "cpu_used": round(sample.cpu_used, 6),
            }
