"""Writes the dashboards as files of the chart."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from deploy.monitoring.board import Board
from deploy.monitoring.fleet import fleet
from deploy.monitoring.node import node
from deploy.monitoring.pod import pod

FILES = Path(__file__).parents[1] / "helm/temper/files/dashboards"

UNUSED: Mapping[str, str] = {}
"""Families that no dashboard shows, and why."""


def boards() -> Mapping[str, Board]:
    """Return the dashboards by the names of their files."""
    return {"fleet.json": fleet(), "node.json": node(), "pod.json": pod()}


def written(board: Board) -> str:
    """Return a dashboard as indented JSON, so that a change of one panel changes a few lines."""
    return json.dumps(board.json(), indent=1, ensure_ascii=False) + "\n"


def stale(directory: Path = FILES) -> Iterator[str]:
    """Yield the names of files in *directory* that are missing, outdated or superfluous."""
    current = boards()
    for name, board in current.items():
        path = directory / name
        if not path.exists() or path.read_text(encoding="utf-8") != written(board):
            yield name
    yield from (path.name for path in directory.glob("*.json") if path.name not in current)


def write(directory: Path = FILES) -> None:
    """Write all of them into *directory*."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, board in boards().items():
        (directory / name).write_text(written(board), encoding="utf-8")
