"""Judge the shapes of plans in the guest, and keep the rows: ``make judge-shapes``.

    python -m tests.kernel.starvation.judge [--minutes N] [--seconds S] [--cpus N ...] [--shape T]

Takes the shapes of which there is no row yet, or none of that many seconds, one guest after the
other. A row is written as soon as it is there, so whatever ends the work loses one shape at most.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import asdict, evolve, frozen

from temper_core.plan import render_engine
from temper_core.plan.shapes import (
    TABLE,
    Row,
    Shape,
    ShapeTable,
    Verdict,
    proven_shapes,
    shape_of,
)
from temper_core.records.plans import LayerPlan
from temper_core.records.steering import SYSTEM
from temper_core.records.tiers import LayerKind
from temper_core.settings import Settings
from tests.kernel.guest import CHECKOUT, VM_RUN
from tests.kernel.starvation.emitted import emitted

SATURATE = Path(__file__).with_name("saturate.py")
MACHINES = {2: (2, 1), 4: (2, 2), 8: (4, 2)}
"""By the number of CPUs: cores, and threads of each. Two CPUs of one core leave nothing to own."""
SYSTEM_MS = 100.0
ANYBODY_MS = 1_000.0
WATCHDOG_MS = 5_000
"""Not the 30 s of a node, so that starvation ends an engine while it is judged."""
SHAPES_PER_GUEST = 4
HOST_S_PER_SHAPE = 600
HOST_S_PER_SECOND = 20


@frozen
class Case:
    """One plan to be judged, on a machine of its own size; ``only`` in these scenarios."""

    plan: LayerPlan
    seconds: float
    only: tuple[str, ...] = ()

    @property
    def shape(self) -> Shape:
        """The shape that is judged."""
        return shape_of(self.plan)

    @property
    def scenarios(self) -> tuple[str, ...]:
        """What is saturated, in turn: all at once, then each layer but the system's alone."""
        return self.only or (
            "all",
            *(layer.name for layer in self.plan.layers if layer.name != SYSTEM),
        )

    def document(self) -> dict[str, Any]:
        """Write it for the guest, where every layer's matchers are replaced by its tenant's."""
        return {
            "shape": str(self.shape),
            "cpus": len(self.plan.machine.cpus),
            "layers": json.loads(render_engine(self.plan)),
            "peopled": [layer.name for layer in self.plan.layers],
            "scenarios": self.scenarios,
            "seconds": self.seconds,
            "watchdog_ms": WATCHDOG_MS,
            "max_exec_us": Settings().scheduler.max_exec_us,
        }

    def row(self, seen: Mapping[str, Any]) -> Row:
        """Judge what the guest saw."""
        worst = {
            name: self._by_role(scenario["late_ms"]) for name, scenario in seen["scenarios"].items()
        }
        ended = seen.get("ended", "")
        holds = seen["loads"] and not ended and all(map(is_kept, worst.values()))
        return Row(
            shape=str(self.shape),
            cpus=len(self.plan.machine.cpus),
            threads_per_core=self.plan.machine.threads_per_core,
            loads=seen["loads"],
            seconds=self.seconds,
            verdict=Verdict.GOOD if holds else Verdict.BAD,
            worst_ms=worst,
            ended=ended,
        )

    def _by_role(self, late_ms: Mapping[str, float]) -> dict[str, float]:
        worst: dict[str, float] = {}
        for layer in self.plan.layers:
            role = "open" if layer.kind is LayerKind.OPEN else "owning"
            role = SYSTEM if layer.name == SYSTEM else role
            worst[role] = max(worst.get(role, 0.0), late_ms[layer.name])
        return worst


def is_kept(worst_ms: Mapping[str, float]) -> bool:
    """Whether the promise was kept: to the system layer, and to everybody."""
    return worst_ms[SYSTEM] < SYSTEM_MS and max(worst_ms.values()) < ANYBODY_MS


def watch(share: Path, cases: Sequence[Case], cpus: int) -> Iterator[Row]:
    """Boot one guest for *cases* and yield every row as it comes; fewer where the guest dies."""
    (share / "cases.json").write_text(json.dumps([case.document() for case in cases]))
    by_shape = {str(case.shape): case for case in cases}
    guest = subprocess.Popen(
        _command(share, cases, cpus),
        cwd=CHECKOUT,
        env={"TEMPER_VM_FILL": str(2 * cpus), **os.environ},
        stdout=subprocess.PIPE,
        text=True,
    )
    with guest:
        assert guest.stdout is not None
        for line in guest.stdout:
            if line.startswith("{"):
                seen = json.loads(line)
                yield by_shape[seen["shape"]].row(seen)


def _command(share: Path, cases: Sequence[Case], cpus: int) -> list[str]:
    engine = subprocess.run(
        [CHECKOUT / "vm/build-engine"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
    spent = sum(HOST_S_PER_SHAPE + HOST_S_PER_SECOND * case.seconds for case in cases)
    machine = [*("--cpus", cpus), *("--threads-per-core", MACHINES[cpus][1])]
    limits = [*("--timeout", int(spent)), *("--share", share)]
    program = [sys.executable, "-S", SATURATE, "/share/cases.json", engine]
    return [str(each) for each in (VM_RUN, "--virtual-time", *machine, *limits, *program)]


def wanted(cpus: int, seconds: float, table: ShapeTable) -> Iterator[Case]:
    """Yield what is still to be judged on that many CPUs, the steered plans first."""
    enough = {(row.shape, row.cpus) for row in table.rows if row.seconds >= seconds}
    seen: set[Shape] = set()
    for steered in (True, False):
        for shape, plan in emitted(MACHINES[cpus], is_steered=steered).items():
            if (str(shape), cpus) not in enough and shape not in seen:
                seen.add(shape)
                yield Case(plan, seconds)


def keep(table: ShapeTable, row: Row, path: Path = TABLE) -> ShapeTable:
    """Write *row* into the table, in place of an older one, and return the new table."""
    others = [each for each in table.rows if (each.shape, each.cpus) != (row.shape, row.cpus)]
    rows = sorted([*others, row], key=lambda each: (each.cpus, each.shape))
    table = evolve(table, date=datetime.now(UTC).date().isoformat(), rows=tuple(rows))
    text = json.dumps(asdict(table), indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge until everything is judged or the time is up."""
    parser = argparse.ArgumentParser(description="Judge the shapes of plans in the guest.")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin no guest after that")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each kind of saturation")
    parser.add_argument("--cpus", type=int, nargs="*", choices=MACHINES, default=list(MACHINES))
    parser.add_argument("--shape", default="", help="only shapes whose text contains this")
    given = parser.parse_args(arguments)
    until = time.monotonic() + 60 * given.minutes
    table = proven_shapes()
    for cpus in given.cpus:
        found = wanted(cpus, given.seconds, table)
        asked = [case for case in found if given.shape in str(case.shape)]
        cases = sorted(asked, key=lambda case: -len(case.shape.layers))
        while cases and time.monotonic() < until:
            batch, cases = cases[:SHAPES_PER_GUEST], cases[SHAPES_PER_GUEST:]
            with tempfile.TemporaryDirectory() as share:
                for row in watch(Path(share), batch, cpus):
                    table = keep(table, row)
                    sys.stderr.write(f"{row.verdict:4} on {row.cpus} CPUs: {row.shape}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
