"""One table of everything that is served: the core's endpoints, then the plugins'."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import structlog
from attrs import frozen

from temper_core.records.endpoints import Endpoint

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Table = Mapping[str, Mapping[str, "Served"]]

_SEGMENT = re.compile(r"[^{}]*|\{[a-z_][a-z0-9_]*\}")


@frozen
class Lane:
    """Which threads answer, and how many: what is slow in one lane delays no other."""

    name: str
    workers: int


PROBES = Lane("probes", 1)
CORE = Lane("core", 2)
METRICS = Lane("metrics", 2)
PLUGINS = Lane("plugins", 4)


@frozen
class Served:
    """An endpoint as it is served; ``plugin`` is empty for the core's own."""

    endpoint: Endpoint
    lane: Lane
    plugin: str = ""


_LANES = {"/healthz": PROBES, "/readyz": PROBES, "/metrics": METRICS}


def serve_all(core: Iterable[Endpoint], plugins: Iterable[tuple[str, Endpoint]]) -> Table:
    """Order all endpoints by path and method.

    A path of the core's own stays the core's, whatever the method; a method and path that two
    plugins claim goes to neither. Each refusal is logged.
    """
    table: dict[str, dict[str, Served]] = {}
    for endpoint in core:
        lane = _lane_of(endpoint, _LANES.get(endpoint.path, CORE))
        table.setdefault(endpoint.path, {})[endpoint.method] = Served(endpoint, lane)
    for plugin, endpoint in _undisputed(tuple(plugins), reserved=frozenset(table)):
        served = Served(endpoint, _lane_of(endpoint, PLUGINS), plugin)
        table.setdefault(endpoint.path, {})[endpoint.method] = served
    return table


def _lane_of(endpoint: Endpoint, reading: Lane) -> Lane:
    """Give whatever acts a lane of its own; it must not wait for those who only read."""
    return Lane(f"{endpoint.method} {endpoint.path}", 1) if endpoint.acts else reading


def _undisputed(
    offered: tuple[tuple[str, Endpoint], ...], reserved: frozenset[str]
) -> Iterable[tuple[str, Endpoint]]:
    claims = Counter((endpoint.method, endpoint.path) for _, endpoint in offered)
    for plugin, endpoint in offered:
        reason = _refusal(endpoint, reserved, claims)
        if reason:
            place = f"{endpoint.method} {endpoint.path}"
            log.warning("endpoint_refused", plugin=plugin, endpoint=place, reason=reason)
        else:
            yield plugin, endpoint


def _refusal(
    endpoint: Endpoint, reserved: frozenset[str], claims: Mapping[tuple[str, str], int]
) -> str:
    if endpoint.path in reserved:
        return "the path is the core's own"
    if claims[endpoint.method, endpoint.path] > 1:
        return "two plugins claim it"
    if not all(map(_SEGMENT.fullmatch, endpoint.path.split("/"))):
        return "a path parameter must fill its segment, as in /trace/{id}"
    names = parameters_in(endpoint.path)
    if len(names) != len(set(names)):
        return "a path parameter is named twice"
    return ""


def parameters_in(path: str) -> tuple[str, ...]:
    """Name the parameters of a path: ``/trace/{id}`` has ``id``."""
    segments = path.split("/")
    return tuple(s[1:-1] for s in segments if s.startswith("{") and s.endswith("}"))
