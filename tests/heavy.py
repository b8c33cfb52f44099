"""Tests that need a build, a control plane or a guest: a target of their own runs them."""

from collections.abc import Iterable
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FOLDERS = frozenset(
    TESTS / name for name in ("deb", "density", "image", "install", "kernel", "kubernetes")
)

CONTROL_PLANES = frozenset(TESTS / name for name in ("density", "kubernetes"))
NODES = TESTS / "kubernetes/node"
"""Tests of nodes in an emulator, which take long to start."""
LONG_LIMIT_S = 900
LONG = frozenset(
    TESTS / name
    for name in (
        "hostile/test_connections.py",
        "rightsizer/test_backtest.py",
        "rightsizer/test_rightsize_agent.py",
        "tracer/capture/test_kubectl_trace.py",
        "trainer/refining/test_train_run.py",
    )
)
"""Files elsewhere that take minutes each. See ``tests/long.py``."""


def leave_to(target: str, item: pytest.Item, reason: str) -> None:
    """Skip *item* in this run; ``make TARGET`` runs it."""
    item.add_marker(pytest.mark.heavy(target))
    item.add_marker(pytest.mark.skip(reason=f"{reason}: make {target}"))


def lift_time_limit(items: Iterable[pytest.Item]) -> None:
    """Let tests of the heavy folders run on: what they start has time limits of its own.

    Those beside a control plane get a long limit, since ``make test`` runs many of them without it.
    """
    for item in items:
        parents = item.path.parents
        if not FOLDERS.isdisjoint(parents):
            has_limit = not CONTROL_PLANES.isdisjoint(parents) and NODES not in parents
            item.add_marker(pytest.mark.timeout(LONG_LIMIT_S if has_limit else 0))


def named_files(arguments: Iterable[object]) -> frozenset[Path]:
    """Return the files that are named on the command line, or have a test that is."""
    return frozenset(Path(str(word).partition("::")[0]).resolve() for word in arguments)


def target_of(item: pytest.Item) -> str | None:
    """Return the target that *item* is left to, or None if this run has it."""
    marker = item.get_closest_marker("heavy")
    return str(marker.args[0]) if marker else None


def check_places(items: Iterable[pytest.Item]) -> None:
    """Refuse a collection where a test elsewhere is skipped unconditionally."""
    skipped = [item for item in items if item.get_closest_marker("heavy") or _is_skipped(item)]
    places = FOLDERS | LONG
    strays = [item.nodeid for item in skipped if places.isdisjoint((item.path, *item.path.parents))]
    if strays:
        shown = "\n".join(strays[:20])
        raise pytest.UsageError(
            f"{len(strays)} tests outside of {_names()} are skipped unconditionally:\n{shown}"
        )


def _is_skipped(item: pytest.Item) -> bool:
    return item.get_closest_marker("skip") is not None


def _names() -> str:
    return ", ".join(sorted(f"tests/{folder.name}" for folder in FOLDERS))
