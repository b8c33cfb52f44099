"""JSON patches (RFC 6902) of a pod."""

from collections.abc import Mapping
from typing import Any

from temper_plugin_density.overcommit.names import ORIGINALS
from temper_plugin_density.overcommit.pod_objects import Place


def replace_request(place: Place, millis: int) -> Mapping[str, Any]:
    """Replace the CPU request of the container at *place*."""
    kind, index = place
    path = f"/spec/{kind}/{index}/resources/requests/cpu"
    return {"op": "replace", "path": path, "value": f"{millis}m"}


def annotate(text: str, *, has_annotations: bool) -> Mapping[str, Any]:
    """Annotate the original requests. A pod without annotations first needs the whole table."""
    if not has_annotations:
        return {"op": "add", "path": "/metadata/annotations", "value": {ORIGINALS: text}}
    return {"op": "add", "path": f"/metadata/annotations/{escaped(ORIGINALS)}", "value": text}


def escaped(key: str) -> str:
    """Return *key* escaped for a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")
