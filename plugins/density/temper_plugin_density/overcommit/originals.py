"""The annotation that keeps what a lowered pod asked for, and what is believed of one found."""

import json
from collections.abc import Mapping

from temper_core import InputError, cpu_millis
from temper_plugin_density.overcommit.names import ORIGINALS

MOST_BYTES = 256 * 1024
"""Kubernetes takes no more of all annotations of an object together."""


def written(originals: Mapping[str, str]) -> str:
    """Return the annotation's text: requests by container."""
    return json.dumps(dict(originals), separators=(",", ":"), ensure_ascii=False)


def claimed(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Return what the annotation claims. Nothing where there is none, or where it is no such text.

    Whoever makes a pod may write one: nothing is ever raised because of it.
    """
    text = annotations.get(ORIGINALS, "{}")
    if len(text) > MOST_BYTES:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: text for key, text in found.items() if isinstance(text, str)}


def claimed_millis(text: str | None) -> int | None:
    """Return a claim in millicores; None where it is no quantity."""
    try:
        return None if text is None else cpu_millis(text)
    except InputError:
        return None


def fits(annotations: Mapping[str, str], text: str) -> bool:
    """Whether *text* has room beside the *annotations* that the pod has already."""
    beside = {**annotations, ORIGINALS: text}
    return sum(_size(key) + _size(value) for key, value in beside.items()) <= MOST_BYTES


def _size(text: str) -> int:
    # JSON may have halves of surrogate pairs, which are no text in UTF-8.
    return len(text.encode(errors="surrogatepass"))
