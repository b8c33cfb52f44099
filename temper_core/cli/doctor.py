"""``temper doctor``: every preflight check of this machine, with its remedy."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core.errors import EXIT_MACHINE

if TYPE_CHECKING:
    from temper_core.scheduler.checks import Check
    from temper_core.scheduler.preflight import Hold

NOTE = (
    "While the engine is attached the kernel does not enforce cgroup cpu.max and cpu.weight; "
    "the ceilings of the layers contain pods instead. Memory limits are not affected."
)
MARKS = {"ok": "ok", "warning": "warn", "failed": "FAIL", "unknown": "?"}


@click.command("doctor")
@click.option("--settings", "path", type=click.Path(path_type=Path), help="Settings file (TOML).")
@click.option("--output", type=click.Choice(["table", "json"]), default="table")
def command(path: Path | None, output: str) -> None:
    """Check what enforcing needs on this machine.

    Looks only, and changes nothing. Exit code 0 when the engine may be started (there may be
    warnings), 3 when a check failed that enforcing needs.
    """
    from temper_core.scheduler.node_checks import own_engine
    from temper_core.scheduler.preflight import run_preflight, verdict
    from temper_core.scheduler.roots import Roots
    from temper_core.settings import load

    settings, roots = load(path).settings, Roots()
    checks = run_preflight(roots, settings, own_engine=own_engine(roots))
    hold = verdict(checks)
    if output == "json":
        _print_json(checks, hold)
    else:
        _print_table(checks, hold)
    if hold is not None:
        raise click.exceptions.Exit(EXIT_MACHINE)


def _print_json(checks: Sequence["Check"], hold: "Hold | None") -> None:
    import json

    import attrs

    told: dict[str, Any] = {
        "schema_version": 1,
        "can_enforce": hold is None,
        "mode": hold.mode if hold else "enforcing",
        "reason": str(hold.reason) if hold else "",
        "checks": [attrs.asdict(check) for check in checks],
        "notes": [NOTE],
    }
    click.echo(json.dumps(told, indent=2))


def _print_table(checks: Sequence["Check"], hold: "Hold | None") -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        click.echo(f"{MARKS[check.state]:<5} {check.name:<{width}}  {check.detail}")
        if check.remedy:
            click.echo(f"{'':<5} {'':<{width}}  -> {check.remedy}")
    click.echo(f"\n{_conclusion(hold)}\n{NOTE}")


def _conclusion(hold: "Hold | None") -> str:
    if hold is None:
        return "This machine can enforce."
    return f"This machine cannot enforce now; an agent here is in {hold.mode} ({hold.reason})."
