"""``temper doctor``: the checks of this machine with remedies, and the engine's last failure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core.console import (
    folded,
    output_option,
    print_json,
    printable,
    styled,
    watch_options,
)
from temper_core.errors import EXIT_MACHINE

if TYPE_CHECKING:
    from temper_core.records.checks import Check
    from temper_core.scheduler.failure.kernel_messages import KernelMessage
    from temper_core.scheduler.preflight.preflight import Hold
    from temper_core.settings import Settings

NOTE = (
    "While the engine is attached the kernel does not enforce cgroup cpu.max and cpu.weight; "
    "the ceilings of the layers contain pods instead. Memory limits are not affected."
)
MARKS = {"ok": "ok", "warning": "warn", "failed": "FAIL", "unknown": "?"}
TOLD_OF_CHECKS = ("plugin", "name", "state", "detail", "remedy")
COLOURS = {"ok": "green", "warning": "yellow", "failed": "red", "unknown": "cyan"}
TOLD_OF_THE_AGENT = ("mode", "reason", "detail", "generation", "engine", "defects")


@click.command("doctor")
@click.option("--settings", "path", type=click.Path(path_type=Path), help="Settings file (TOML).")
@output_option
@watch_options
def command(path: Path | None, output: str) -> None:
    """Check what enforcing needs on this machine, and show what ejected the engine last.

    It loads a BPF object and makes a mount to test both, and removes them again. Exit code 0 when
    the engine may be started (there may be warnings), 3 when a check failed that enforcing needs.
    Checks of the agent's plugins do not affect the exit code.
    """
    from temper_core.scheduler.failure.kernel_messages import last_messages
    from temper_core.scheduler.host.roots import Roots
    from temper_core.scheduler.preflight.node_checks import own_engine
    from temper_core.scheduler.preflight.preflight import look_closely, run_preflight, verdict
    from temper_core.settings import load

    settings = load(path).settings
    roots = Roots.of(settings)
    engine = own_engine(roots)
    checks = run_preflight(roots, settings, own_engine=engine)
    hold = verdict(checks)
    closer = look_closely(roots, settings, own_engine=engine)
    checks = (*checks, *(closer if _has_engine(checks) else map(_without_engine, closer)))
    agent, messages = _ask_agent(settings), last_messages(roots.kmsg)
    last_end = _last_end(agent, messages, roots.proc)
    if output == "json":
        _print_json(checks, hold, {**agent, "last_end": last_end}, messages)
    else:
        _print_table(checks, hold)
        _print_agent(agent, last_end, messages)
    if hold is not None:
        raise click.exceptions.Exit(EXIT_MACHINE)


def _has_engine(checks: Iterable["Check"]) -> bool:
    return not any(check.name == "engine" and check.state == "failed" for check in checks)


def _without_engine(check: "Check") -> "Check":
    """Return *check* as it is without an engine: whether a swap works has then not been seen."""
    from temper_core.records.checks import unknown

    if check.name != "warm_swap" or check.state != "ok":
        return check
    return unknown(check.name, f"no engine is installed; {check.detail}")


def _ask_agent(settings: "Settings") -> dict[str, Any]:
    """Return the state of this node's agent. ``mode`` is None if no agent answers."""
    from temper_core.client import NoAgentError, ask_observation
    from temper_core.errors import TemperError

    try:
        document = ask_observation(settings, top=1)
    except NoAgentError:
        return {"mode": None, "detail": "no agent answers here", "checks": []}
    except TemperError as error:  # the agent listens but cannot answer now
        return {"mode": None, "detail": str(error), "checks": []}
    state = {name: document.get(name) for name in TOLD_OF_THE_AGENT}
    return {**state, "last_end": document.get("last_end"), "checks": _ask_checks(settings)}


def _ask_checks(settings: "Settings") -> list[dict[str, str]]:
    """Return the checks of the agent's plugins, none if the agent does not serve ``/checks``."""
    from temper_core.client import ask_agent
    from temper_core.errors import TemperError

    try:
        document = ask_agent("/checks", settings=settings)
    except TemperError:  # an older agent has no such path
        return []
    checks = document.get("checks") if isinstance(document, dict) else None
    return [
        {name: str(check.get(name, "")) for name in TOLD_OF_CHECKS}
        for check in checks or ()
        if isinstance(check, dict)
    ]


def _last_end(
    agent: Mapping[str, Any], messages: tuple["KernelMessage", ...], proc: Path
) -> Mapping[str, Any] | None:
    """Return the agent's diagnosis of the engine's last end, else the one from the kernel's log."""
    from temper_core.scheduler.failure.kernel_messages import last_ejection

    diagnosis = agent.get("last_end")
    if isinstance(diagnosis, dict):
        return diagnosis
    ejection = last_ejection(messages, proc)
    if ejection is None:
        return None
    return {"kind": str(ejection.kind), "summary": ejection.summary, "remedy": ejection.remedy}


def _print_json(
    checks: Sequence["Check"],
    hold: "Hold | None",
    agent: Mapping[str, Any],
    messages: Sequence["KernelMessage"],
) -> None:
    import attrs

    document: dict[str, Any] = {
        "schema_version": 1,
        "can_enforce": hold is None,
        "mode": hold.mode if hold else "enforcing",
        "reason": str(hold.reason) if hold else "",
        "checks": [attrs.asdict(check) for check in checks],
        "agent": agent,
        "kernel_log": [str(message) for message in messages],
        "notes": [NOTE],
    }
    print_json(document)


def _print_table(checks: Sequence["Check"], hold: "Hold | None") -> None:
    _print_lines([(check.state, check.name, check.detail, check.remedy) for check in checks])
    style = {"fg": "red" if hold else "green", "bold": hold is not None or None}
    conclusion = "\n".join(styled(line, **style) for line in folded(_conclusion(hold)).split("\n"))
    click.echo(f"\n{_counted(checks)}\n{conclusion}\n{folded(NOTE)}")


def _counted(checks: Sequence["Check"]) -> str:
    """Return the number of checks in each state, those first that need an action."""
    counts = Counter(str(check.state) for check in checks)
    words = {"failed": "failed", "warning": "warn", "unknown": "not known", "ok": "ok"}
    shown = [f"{counts[state]} {word}" for state, word in words.items() if counts[state]]
    return f"{len(checks)} checks: {', '.join(shown)}."


def _print_checks(checks: Sequence[Mapping[str, str]]) -> None:
    """Print the plugins' checks. A failed one does not keep the engine from starting."""
    _print_lines(
        [
            (
                check["state"],
                f"{check['plugin']}: {check['name']}",
                check["detail"],
                check["remedy"],
            )
            for check in checks
        ]
    )


def _print_lines(lines: Sequence[tuple[str, str, str, str]]) -> None:
    width = max((len(name) for _, name, _, _ in lines), default=0)
    for state, name, detail, remedy in lines:
        colour = COLOURS.get(state, "cyan")
        mark = styled(f"{MARKS.get(state, '?'):<5}", fg=colour, bold=colour == "red" or None)
        begins_at = len(f"{'':<5} {'':<{width}}  ")
        click.echo(f"{mark} {printable(name):<{width}}  {folded(detail, begins_at)}")
        if remedy:
            arrow = f"{'':<{begins_at}}-> "
            click.echo(f"{arrow}{folded(remedy, len(arrow))}")


def _print_agent(
    agent: Mapping[str, Any],
    last_end: Mapping[str, Any] | None,
    messages: Sequence["KernelMessage"],
) -> None:
    if agent["mode"] is None:
        click.echo(f"\nAgent: {agent['detail']}.")
    else:
        why = ": ".join(filter(None, (agent["reason"], agent["detail"])))
        click.echo(f"\nAgent: {agent['mode']}{f' ({printable(why)})' if why else ''}.")
        for defect in agent["defects"] or ():
            click.echo(f"Agent: {printable(str(defect))}")
        _print_checks(agent["checks"])
    if last_end is not None:
        what = f"Last end of an engine ({last_end.get('kind')}): {last_end.get('summary')}"
        click.echo(folded(what))
        click.echo(f"-> {folded(str(last_end.get('remedy')), 3)}")
    if agent["mode"] is None and messages:
        click.echo("The kernel's log on schedulers:")
        for message in messages:
            click.echo(f"  {folded(str(message), 2)}")


def _conclusion(hold: "Hold | None") -> str:
    if hold is None:
        return "This machine can enforce."
    mode = f"{hold.mode} ({hold.reason})"
    return f"This machine cannot enforce now. An agent that is to enforce would be in {mode}."
