"""The part of the agent's answers that a training reads, so that no more is sent over an exec.

A training looks at its node every few seconds, through the API server. ``Door`` reads a few fields,
and an observation of a node with 200 pods is a hundred times as large.
"""

from collections.abc import Mapping
from typing import Any

WHOLE: tuple[str, ...] = ()
"""Of a field that is sent as it is."""
READ: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "/observe": {
        **dict.fromkeys(("at", "mode", "reason", "detail", "engine"), WHOLE),
        "violations": ("invariant", "subject"),
        "pods": ("namespace", "pod", "run_delay"),
    },
    "/explain": {"profile_reason": WHOLE, "inputs": ("cpu_request",)},
    "/plan": {
        "machine": ("threads_per_core",),
        "notes": ("code", "subject", "message"),
        "layers": ("name", "cpus_max", "pods"),
    },
}
"""The fields by path, and of tables and their rows the keys."""


def narrowed(path: str, answer: object) -> object:
    """Return what ``Door`` reads of the *answer* to *path*. Another answer stays as it is."""
    read = READ.get(path)
    if read is None or not isinstance(answer, Mapping):
        return answer
    return {name: _kept(answer[name], keys) for name, keys in read.items() if name in answer}


def _kept(value: Any, keys: tuple[str, ...]) -> Any:  # noqa: ANN401 - any JSON
    if keys and isinstance(value, Mapping):
        return {key: value[key] for key in keys if key in value}
    if keys and isinstance(value, list):
        return [_kept(row, keys) for row in value]
    return value
