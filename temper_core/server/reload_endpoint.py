"""The endpoint that has the agent read all profile files again."""

from collections.abc import Callable, Mapping
from typing import Any

from temper_core.profiles.reloads import Reloaded
from temper_core.records.endpoints import Endpoint


def reload_endpoint(reload: Callable[[], Reloaded]) -> Endpoint:
    """Return ``POST /profiles/reload``, which calls *reload*."""
    return Endpoint(
        "reload-profiles",
        "POST",
        "/profiles/reload",
        "Read all profile files again, and say which cannot be loaded.",
        lambda _: _document(reload()),
        acts=True,
        largest_body_bytes=0,
    )


def _document(found: Reloaded) -> Mapping[str, Any]:
    failures = [
        {"source": failure.source, "profile": failure.profile, "reason": failure.reason}
        for failure in found.failures
    ]
    return {"profiles": found.profiles, "changed": found.changed, "failures": failures}
