"""The threads in the JSON of ``/observe``: the busiest, and the sum of each pod's others."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from heapq import nlargest
from math import fsum
from typing import Any

from temper_core.observe.document_values import count, name_or_none, rounded
from temper_core.records.snapshots import ThreadSample

REST = "rest"

Json = dict[str, Any]


def thread_documents(threads: Sequence[ThreadSample], top: int) -> list[Json]:
    """Return the *top* busiest threads, and one entry for all other threads of each pod."""
    busiest = nlargest(max(0, top), threads, key=lambda thread: (thread.cpu_used, -thread.tid))
    shown = {(thread.tid, thread.start_ticks) for thread in busiest}
    unlisted: defaultdict[tuple[str, str], list[ThreadSample]] = defaultdict(list)
    for thread in threads:
        if (thread.tid, thread.start_ticks) not in shown:
            unlisted[thread.namespace, thread.pod].append(thread)
    rests = [_rest(*place, unlisted[place]) for place in sorted(unlisted)]
    return [_thread(thread) for thread in busiest] + rests


def _thread(thread: ThreadSample) -> Json:
    return {
        "tid": thread.tid,
        "tgid": thread.tgid,
        "comm": thread.comm,
        "process": thread.process,
        "namespace": thread.namespace,
        "pod": thread.pod,
        "container": thread.container,
        "cgroup": thread.cgroup,
        "tier": name_or_none(thread.tier),
        "layer": thread.layer,
        "expected_layer": thread.expected_layer,
        "hinted_layer": thread.hinted_layer,
        "layer_is_known": thread.layer_is_known,
        "cpu": thread.cpu,
        "cpu_used": rounded(thread.cpu_used),
        "run_delay_ratio": rounded(thread.run_delay_ratio),
        "waiting_s": rounded(thread.waiting_s),
        "runs": count(thread.runs),
        "voluntary": count(thread.voluntary),
        "involuntary": count(thread.involuntary),
        "migrations": count(thread.migrations),
        "policy": thread.policy,
        "nice": thread.nice,
        "rt_priority": thread.rt_priority,
        "affinity": list(thread.affinity),
        "age_s": rounded(thread.age_s),
        "is_kthread": thread.is_kthread,
        "threads": 1,
    }


def _rest(namespace: str, pod: str, threads: Sequence[ThreadSample]) -> Json:
    """Sum up a pod's other threads. Fields that only a single thread has are null."""
    return {
        "tid": None,
        "tgid": None,
        "comm": REST,
        "process": "",
        "namespace": namespace,
        "pod": pod,
        "container": "",
        "cgroup": "",
        "tier": name_or_none(threads[0].tier) if pod else None,
        "layer": _if_same(thread.layer for thread in threads),
        "expected_layer": _if_same(thread.expected_layer for thread in threads),
        "hinted_layer": _if_same(thread.hinted_layer for thread in threads),
        "layer_is_known": all(thread.layer_is_known for thread in threads),
        "cpu": None,
        "cpu_used": rounded(sum(thread.cpu_used for thread in threads)),
        "run_delay_ratio": rounded(
            fsum(thread.run_delay_ratio for thread in threads) / len(threads)
        ),
        "waiting_s": rounded(max(thread.waiting_s for thread in threads)),
        **{
            counted: _sum([getattr(thread, counted) for thread in threads])
            for counted in ("runs", "voluntary", "involuntary", "migrations")
        },
        "policy": _if_same(thread.policy for thread in threads),
        "nice": None,
        "rt_priority": None,
        "affinity": [],
        "age_s": None,
        "is_kthread": all(thread.is_kthread for thread in threads),
        "threads": len(threads),
    }


def _sum(counts: Sequence[int]) -> int | None:
    """Add up counts. The sum is null if one of them is unknown."""
    return None if min(counts) < 0 else sum(counts)


def _if_same(names: Iterable[str]) -> str:
    different = set(names)
    return different.pop() if len(different) == 1 else ""
