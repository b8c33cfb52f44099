"""Profiles that come, go and are spoilt while the agent runs, and what may change by that."""

from pathlib import Path
from typing import Any

import kernel
from judging import claim_soon
from kernel import NotInTime
from outcomes import Report
from placements import REST, TIER, faults, is_innodb, rows_of, told
from profiled import PROFILES, Node, load_failures

CHANGED = PROFILES / "changed.toml"
SPOILT = {
    "torn.toml": 'id = "torn\n[[thread_groups',
    "wrong.toml": """
        id = "mysql-innodb"
        [fingerprint]
        images = ["mysql:*"]
        [[thread_groups]]
        name = "all"
        match = [{ comm_prefix = "connection-handler-1" }]
        treatment = "exclusiv"
        """,
}
CHANGE = """
id = "mysql-innodb"
extends = "mysql-innodb"
[[thread_groups]]
name = "innodb"
treatment = "yield"
"""
SPOILT_CHANGE = CHANGE.replace('"yield"', '"boost"') + "cpu_fraction = 7"
WINDOWS = 3
AWAKE = 5


def drop_bad_ones(node: Node, report: Report) -> None:
    """Drop profiles that cannot be loaded; claim that this is told, and is all that changes."""
    before, defects = _picture(node), set(node.observe()["defects"])
    for name, text in SPOILT.items():
        (PROFILES / name).write_text(text)

    def new() -> list[str]:
        return sorted(set(node.observe()["defects"]) - defects)

    def is_told() -> bool:
        return all(any(name in each for each in new()) for name in SPOILT)

    try:
        took = node.wait_until("the bad profiles are told", is_told)
        report.claim("told", bool(load_failures()), f"{took:.1f} s; {new()}; {load_failures()}")
    except NotInTime as missed:
        report.claim("told", False, f"{missed}; {new()}; {load_failures()}")
    for _ in range(WINDOWS):
        node.agent.settled()
    after = _picture(node)
    lasting = before["threads"].keys() & after["threads"].keys()
    for picture in (before, after):
        picture["threads"] = {tid: picture["threads"][tid] for tid in lasting}
    changed = [
        f"{key}: {before[key]} -> {after[key]}" for key in before if before[key] != after[key]
    ]
    report.claim("untouched", not changed, "; ".join(changed) or _said(after))


def edit(node: Node, report: Report) -> None:
    """Change a group of the shipped profile, spoil that change, and take it back."""
    before = _engine()
    _put(CHANGED, CHANGE)
    _expect(node, report, "edited", REST)
    _put(CHANGED, SPOILT_CHANGE)
    node.wait_until("spoilt", lambda: "last good version" in str(node.observe()["defects"]))
    for _ in range(WINDOWS):
        node.agent.settled()
    _expect(node, report, "kept", REST)
    CHANGED.unlink()
    _expect(node, report, "taken_back", TIER)
    report.claim("by_hints", before == _engine(), f"{before} -> {_engine()}")


def _expect(node: Node, report: Report, claim: str, layer: str) -> None:
    """Claim that all threads of InnoDB are sent to a layer, and that those that wake up come."""

    def elsewhere() -> list[str]:
        rows = rows_of(node, "mysql", is_innodb)
        return [row["comm"] for row in rows if row["hinted_layer"] != layer]

    node.wait_until(f"hints to {layer}", lambda: not elsewhere())
    node.count_switches(node.rows("db"))

    def missing() -> list[str]:
        awake = node.awake
        rows = [row for row in rows_of(node, "mysql", is_innodb) if row["tid"] in awake]
        few = [f"only {len(rows)} awake"] if len(rows) < AWAKE else []
        return [*few, *faults(rows, layer)]

    claim_soon(node, report, claim, missing, lambda: told(rows_of(node, "mysql", is_innodb)))


def _put(path: Path, text: str) -> None:
    part = path.with_suffix(".part")
    part.write_text(text)
    part.rename(path)


def _engine() -> dict[str, Any]:
    return {"attaches": kernel.attaches(), "engines": kernel.engines(), "state": kernel.state()}


def _picture(node: Node) -> dict[str, Any]:
    """Return all that a bad profile might change."""
    seen = node.observe()
    rows = [row for name in ("mysql", "exporter", "trainer") for row in rows_of(node, name)]
    keys = ("expected_layer", "hinted_layer", "layer")
    threads = {row["tid"]: [row["comm"], *(row[key] for key in keys)] for row in rows}
    return {
        **_engine(),
        "generation": seen["generation"],
        "mode": seen["mode"],
        "profiles": {pod["pod"]: [pod["profile"], pod["profile_code"]] for pod in seen["pods"]},
        "layers": [each["name"] for each in seen["layers"]],
        "config": node.agent.ask("/config"),
        "threads": threads,
    }


def _said(picture: dict[str, Any]) -> str:
    threads = picture["threads"]
    return f"generation {picture['generation']}, {len(threads)} threads, {_engine()}"
