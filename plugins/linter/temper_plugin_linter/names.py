"""What threads are called: in messages by their number, as subjects without any."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from temper_core import ThreadSample
from temper_plugin_linter.placement import pod_key

NUMBER = re.compile(r"\d+")


def thread_name(thread: ThreadSample) -> str:
    """Name a thread as people look for it: its pod, its name, its number."""
    name = f"{thread.comm}[{thread.tid}]"
    return f"{pod_key(thread)} {name}" if thread.pod else name


def owner_name(thread: ThreadSample) -> str:
    """Name what a thread belongs to: its pod, or its process."""
    return pod_key(thread) if thread.pod else thread.process or thread.comm


def subject_of(thread: ThreadSample) -> str:
    """Name the kind of thread, so that it keeps its name from window to window and restart.

    A pool's threads are one kind whatever their number: ``shop/db-0 worker-#``.
    """
    return kind_of(pod_key(thread), thread.process, thread.comm)


def kind_of(pod: str, process: str, comm: str) -> str:
    """Name a kind of thread by its pod's key, or else its process, and its name without numbers."""
    kind = NUMBER.sub("#", comm)
    return f"{pod or process} {kind}" if pod or process not in ("", comm) else kind


def by_subject(threads: Iterable[ThreadSample]) -> Mapping[str, list[ThreadSample]]:
    """Put threads of one kind together."""
    found: defaultdict[str, list[ThreadSample]] = defaultdict(list)
    for thread in threads:
        found[subject_of(thread)].append(thread)
    return found


def by_use(threads: Iterable[ThreadSample]) -> list[ThreadSample]:
    """Return *threads*, busiest first."""
    return sorted(threads, key=lambda thread: (-thread.cpu_used, thread.tid))


def busiest(threads: Iterable[ThreadSample], most: int = 3) -> str:
    """Name the busiest of *threads*, busiest first."""
    return ", ".join(thread_name(thread) for thread in by_use(threads)[:most])


def listed(cpus: Iterable[int]) -> str:
    """List CPUs by their numbers."""
    return ", ".join(map(str, sorted(cpus))) or "(none)"


def inferred(*threads: ThreadSample) -> dict[str, int]:
    """Return the evidence that the layer of some thread is a guess. None where all are known."""
    return {} if all(thread.layer_is_known for thread in threads) else {"inferred": 1}
