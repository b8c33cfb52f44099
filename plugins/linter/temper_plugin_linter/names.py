"""Names of threads: with their number in messages, without it in subjects."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from temper_core import ThreadSample
from temper_plugin_linter.placement import pod_key

NUMBER = re.compile(r"\d+")


def thread_name(thread: ThreadSample) -> str:
    """Return a thread's name in messages: its pod, its name, its number."""
    name = f"{thread.comm}[{thread.tid}]"
    return f"{pod_key(thread)} {name}" if thread.pod else name


def owner_name(thread: ThreadSample) -> str:
    """Return the owner of a thread: its pod, or its process."""
    return pod_key(thread) if thread.pod else thread.process or thread.comm


def owner_of(thread: ThreadSample) -> str:
    """Return the owner of a thread, which the thread cannot rename: pod, user or service.

    Empty for kernel threads.
    """
    if thread.pod:
        return pod_key(thread)
    if thread.is_kthread:
        return ""
    return "/".join(thread.cgroup.strip("/").split("/")[:2])


def subject_of(thread: ThreadSample) -> str:
    """Return the kind of a thread, which is stable across windows and restarts.

    All threads of a pool are one kind, without their numbers: ``shop/db-0 worker-#``.
    """
    return kind_of(pod_key(thread), thread.process, thread.comm)


def kind_of(pod: str, process: str, comm: str) -> str:
    """Return a kind: the pod's key or else the process, and the thread's name without numbers.

    In two words the slash that a pod's kind has is replaced, since users name their processes.
    """
    kind = NUMBER.sub("#", comm)
    if pod:
        return f"{pod} {kind}"
    own = kind if process in ("", comm) else f"{process} {kind}"
    return own.replace("/", "_") if " " in own else own


def by_subject(threads: Iterable[ThreadSample]) -> Mapping[str, list[ThreadSample]]:
    """Group threads by kind."""
    by_kind: defaultdict[str, list[ThreadSample]] = defaultdict(list)
    for thread in threads:
        by_kind[subject_of(thread)].append(thread)
    return by_kind


def by_use(threads: Iterable[ThreadSample]) -> list[ThreadSample]:
    """Return *threads*, busiest first."""
    return sorted(threads, key=lambda thread: (-thread.cpu_used, thread.tid))


def busiest(threads: Iterable[ThreadSample], most: int = 3) -> str:
    """Return the names of the busiest of *threads*, busiest first."""
    return ", ".join(thread_name(thread) for thread in by_use(threads)[:most])


def listed(cpus: Iterable[int]) -> str:
    """Return the numbers of CPUs as text, in order."""
    return ", ".join(map(str, sorted(cpus))) or "(none)"


def inferred(*threads: ThreadSample) -> dict[str, int]:
    """Return the evidence that a thread's layer is only inferred. Empty if all are known."""
    return {} if all(thread.layer_is_known for thread in threads) else {"inferred": 1}
