"""The table of all endpoints: the core's, then the plugins'."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import structlog
from attrs import frozen

from temper_core.records.endpoints import Endpoint

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Table = Mapping[str, Mapping[str, "ServedEndpoint"]]

MOST_OF_PLUGIN = 256
"""Endpoints of one plugin: those of all plugins are in one answer of ``/openapi.json``."""
FALLBACKS = frozenset({"/"})
"""Paths of the core that a plugin may claim."""
_REST = ":path"
_SEGMENT = re.compile(r"[^{}]*|\{[a-z_][a-z0-9_]*\}")
_LAST_SEGMENT = re.compile(r"[^{}]*|\{[a-z_][a-z0-9_]*(?::path)?\}")
_PARAMETER = re.compile(r"\{[^{}:/]*")


@frozen
class Lane:
    """A named pool of answering threads. A slow call in one lane delays no other lane.

    A lane without *workers* answers in the event loop, and its calls must not block.
    """

    name: str
    workers: int


PROBES = Lane("probes", 0)
CHECKS = Lane("checks", 1)
CORE = Lane("core", 2)
METRICS = Lane("metrics", 2)
PLUGINS = Lane("plugins", 4)


@frozen
class ServedEndpoint:
    """An endpoint with its lane. ``plugin`` is empty for the core's endpoints."""

    endpoint: Endpoint
    lane: Lane
    plugin: str = ""


_LANES = {"/healthz": PROBES, "/readyz": PROBES, "/metrics": METRICS, "/checks": CHECKS}


def serve_all(core: Iterable[Endpoint], plugins: Iterable[tuple[str, Endpoint]]) -> Table:
    """Order all endpoints by path and method.

    A path of the core stays the core's for every method, except the ``FALLBACKS``. A method and
    path that two plugins claim goes to neither. Each refusal is logged. A plugin has at most
    ``MOST_OF_PLUGIN``.
    """
    table: dict[str, dict[str, ServedEndpoint]] = {}
    for endpoint in core:
        lane = _lane_of(endpoint, _LANES.get(endpoint.path, CORE))
        table.setdefault(endpoint.path, {})[endpoint.method] = ServedEndpoint(endpoint, lane)
    for plugin, endpoint in _undisputed(
        _bounded(plugins), reserved=_shapes(set(table) - FALLBACKS)
    ):
        served = ServedEndpoint(endpoint, _lane_of(endpoint, PLUGINS), plugin)
        table.setdefault(endpoint.path, {})[endpoint.method] = served
    return table


def _bounded(offered: Iterable[tuple[str, Endpoint]]) -> tuple[tuple[str, Endpoint], ...]:
    counts: Counter[str] = Counter()
    taken = []
    for plugin, endpoint in offered:
        counts[plugin] += 1
        if counts[plugin] <= MOST_OF_PLUGIN:
            taken.append((plugin, endpoint))
    for plugin, count in counts.items():
        if count > MOST_OF_PLUGIN:
            log.warning("endpoints_left_out", plugin=plugin, offered=count, taken=MOST_OF_PLUGIN)
    return tuple(taken)


def _lane_of(endpoint: Endpoint, reading: Lane) -> Lane:
    """Return a lane of its own for an endpoint that acts, so that it never waits for readers."""
    return Lane(f"{endpoint.method} {endpoint.path}", 1) if endpoint.acts else reading


def _undisputed(
    offered: tuple[tuple[str, Endpoint], ...], reserved: frozenset[str]
) -> Iterable[tuple[str, Endpoint]]:
    claims = Counter(_claim(endpoint) for _, endpoint in offered)
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
    if _shape(endpoint.path) in reserved:
        return "the path is the core's own"
    if claims[_claim(endpoint)] > 1:
        return "it is claimed twice"
    *leading, last = endpoint.path.split("/")
    if not (all(map(_SEGMENT.fullmatch, leading)) and _LAST_SEGMENT.fullmatch(last)):
        return (
            "a path parameter must fill its segment, as in /trace/{id}, and only the last may "
            "take the rest, as in /assets/{file:path}"
        )
    names = parameters_in(endpoint.path)
    if len(names) != len(set(names)):
        return "a path parameter is named twice"
    return ""


def parameters_in(path: str) -> tuple[str, ...]:
    """Return the parameter names of a path: ``/trace/{id}`` has ``id``."""
    segments = path.split("/")
    written = (s[1:-1] for s in segments if s.startswith("{") and s.endswith("}"))
    return tuple(name.removesuffix(_REST) for name in written)


def plain_path(path: str) -> str:
    """Return a path in OpenAPI's syntax: ``/assets/{file:path}`` is ``/assets/{file}``."""
    return path.replace(_REST + "}", "}")


def path_pattern(path: str) -> str:
    """Return the regular expression that matches *path* whole, with a group per parameter."""
    return "/".join(map(_segment_pattern, path.split("/")))


def _segment_pattern(segment: str) -> str:
    if not segment.startswith("{"):
        return re.escape(segment)
    name = segment[1:-1]
    if name.endswith(_REST):
        return f"(?P<{name.removesuffix(_REST)}>.*)"
    return f"(?P<{name}>[^/]+)"


def in_order(table: Table) -> list[str]:
    """Return the paths of *table* in order: the core's first, then the most specific."""
    return sorted(table, key=lambda path: (_is_plugins(table[path]), *_generality(path)))


def _is_plugins(methods: Mapping[str, ServedEndpoint]) -> bool:
    return all(served.plugin for served in methods.values())


def _generality(path: str) -> tuple[bool, int, int]:
    """Rank a path. Paths without parameters come first, paths that take the rest last."""
    return path.endswith(_REST + "}"), path.count("{"), -path.count("/")


def _claim(endpoint: Endpoint) -> tuple[str, str]:
    return endpoint.method, _shape(endpoint.path)


def _shape(path: str) -> str:
    """Return a path without the names of its parameters."""
    return _PARAMETER.sub("{", path)


def _shapes(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(map(_shape, paths))
