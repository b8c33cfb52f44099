"""Generates the table of proven and unproven plan shapes. Cog writes it into ``starvation.md``."""

from collections.abc import Collection, Iterator, Mapping

from temper_core.plan.shape_arguments import is_served
from temper_core.plan.shapes import Verdict, proven_shapes
from tests.kernel.starvation.emitted import emitted
from tests.kernel.starvation.judge import MACHINES

ROLES = ("system", "owning", "open")


def shapes_reference() -> str:
    """Render the judged shapes, and the unproven ones."""
    return "\n".join([*_proven(), "", *_unproven()])


def _proven() -> Iterator[str]:
    table = proven_shapes()
    yield f"{table.engine}, Linux {table.kernel}, {table.date}. {len(table.rows)} shapes judged."
    yield ""
    yield "| CPUs | shape | s of each | system | owning | open | verdict |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in table.rows:
        cells = " | ".join(_worst(row.worst_ms, role) for role in ROLES)
        verdict = f"{row.verdict}: {row.ended}" if row.ended else str(row.verdict)
        cpus = f"{row.cpus} = {row.cpus // row.threads_per_core} x {row.threads_per_core}"
        yield f"| {cpus} | `{row.shape}` | {row.seconds:g} | {cells} | {verdict} |"


def _worst(worst_ms: Mapping[str, Mapping[str, float]], role: str) -> str:
    latencies = [by_role[role] for by_role in worst_ms.values() if role in by_role]
    return f"{max(latencies):.0f} ms" if latencies else "-"


def _unproven() -> Iterator[str]:
    """Yield the unsaturated shapes that the compiler emits for each size of machine."""
    table = proven_shapes()
    for cpus, machine in MACHINES.items():
        shapes = {
            shape
            for is_steered in (True, False)
            for shape in emitted(machine, is_steered=is_steered)
            if table.verdict(shape, cpus) is Verdict.UNPROVEN
        }
        argued = sorted(str(shape) for shape in shapes if is_served(shape.layers))
        yield from _listed(f"On {cpus} CPUs proven by the order of dispatch alone", argued)
        unproven = sorted(str(shape) for shape in shapes if not is_served(shape.layers))
        yield from _listed(f"On {cpus} CPUs unproven", unproven)


def _listed(title: str, shapes: Collection[str]) -> Iterator[str]:
    """Yield the number of *shapes*, and a list of them."""
    yield f"{title}: {len(shapes) or 'none'}."
    yield ""
    if shapes:
        yield from (f"- `{shape}`" for shape in shapes)
        yield ""
