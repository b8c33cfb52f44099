"""The annotation that holds the original requests of a lowered pod."""

import json
from collections.abc import Mapping

from temper_core import InputError, cpu_millis
from temper_plugin_density.overcommit.names import ORIGINALS

MOST_BYTES = 256 * 1024
"""Kubernetes' limit for all annotations of an object together."""


def written(originals: Mapping[str, str]) -> str:
    """Return the annotation's text: requests by container."""
    return json.dumps(dict(originals), separators=(",", ":"), ensure_ascii=False)


def claimed(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Return the requests in the annotation by container. Empty if it is missing or malformed.

    Any creator of a pod may write the annotation, so malformed text raises no error.
    """
    text = annotations.get(ORIGINALS, "{}")
    if len(text) > MOST_BYTES:
        return {}
    try:
        claims = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(claims, dict):
        return {}
    return {key: text for key, text in claims.items() if isinstance(text, str)}


def claimed_millis(text: str | None) -> int | None:
    """Return a request of the annotation in millicores. None if it is not a quantity."""
    try:
        return None if text is None else cpu_millis(text)
    except InputError:
        return None


def fits(annotations: Mapping[str, str], text: str) -> bool:
    """Whether *text* fits beside the pod's present *annotations*."""
    beside = {**annotations, ORIGINALS: text}
    return sum(_size(key) + _size(value) for key, value in beside.items()) <= MOST_BYTES


def _size(text: str) -> int:
    # JSON may have lone surrogates, which UTF-8 cannot encode.
    return len(text.encode(errors="surrogatepass"))
