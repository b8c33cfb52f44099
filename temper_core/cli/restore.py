"""``temper restore``: undo everything that Temper may have left on this host."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core.console import output_option, print_json, read_settings, read_settings_to_act
from temper_core.errors import EXIT_FINDINGS, EXIT_MACHINE, MachineError

if TYPE_CHECKING:
    from temper_core.records.restored import Leftover, Restored

NOTHING = "nothing of Temper's is on this host"


@click.command("restore")
@click.option("--settings", "path", type=click.Path(path_type=Path), help="Settings file (TOML).")
@click.option("--dry-run", is_flag=True, help="List what would be removed, and change nothing.")
@click.option(
    "--all", "with_switch", is_flag=True, help="Remove the file that requests safe mode too."
)
@output_option
def command(path: Path | None, dry_run: bool, with_switch: bool, output: str) -> None:
    """Undo everything that Temper may have left on this host.

    Ends an engine that outlived its agent, and removes the pin, sockets, notes and state files
    that the settings name. Only files and cgroups that Temper makes are touched. Others in the same
    places are listed. The file by which an operator requests safe mode stays, unless --all is
    given.

    Exit codes: 0 nothing of Temper's is left, 1 an unknown file was found and stays, 2 another user
    may change the file of --settings, 3 an agent runs here, or a removal failed.
    """
    from temper_core.restoring.restoration import refuse_beside_agent, restore_without_agent
    from temper_core.scheduler.host.roots import Roots

    settings = read_settings(path) if dry_run else read_settings_to_act(path)
    roots = Roots.of(settings)
    refuse_beside_agent(settings, roots, path)
    files = restore_without_agent(settings, roots, with_switch=with_switch, is_dry=dry_run)
    done = _with_cgroups(files, is_dry=dry_run)
    if output == "json":
        _print_json(done, dry_run)
    else:
        _print_lines(done, dry_run)
    raise click.exceptions.Exit(_exit_code(done))


def _with_cgroups(files: "Restored", *, is_dry: bool) -> "Restored":
    """Remove the cgroups of ``temper run`` too, except those with a running command."""
    from temper_core.launch import remove_left_behind
    from temper_core.records.restored import Leftover, Restored

    try:
        removed, left = remove_left_behind(is_dry=is_dry)
    except MachineError as error:  # the removals before it are reported all the same
        failure = Leftover("cgroups of temper run", str(error), is_failure=True)
        return Restored(files.removed, (*files.left, failure))
    return Restored(
        (*files.removed, *map(str, removed)),
        (*files.left, *(Leftover(str(cgroup), why) for cgroup, why in left.items())),
    )


def _exit_code(done: "Restored") -> int:
    if any(leftover.is_failure for leftover in done.left):
        return EXIT_MACHINE
    return EXIT_FINDINGS if any(not leftover.is_kept for leftover in done.left) else 0


def _print_json(done: "Restored", is_dry: bool) -> None:
    document: dict[str, Any] = {
        "schema_version": 1,
        "dry_run": is_dry,
        "removed": list(done.removed),
        "left": [
            {"path": leftover.path, "why": leftover.why, "state": _state(leftover)}
            for leftover in done.left
        ],
    }
    print_json(document)


def _state(left: "Leftover") -> str:
    if left.is_failure:
        return "failed"
    return "kept" if left.is_kept else "unknown"


def _print_lines(done: "Restored", is_dry: bool) -> None:
    from temper_core.console import shown

    word = "would go" if is_dry else "removed"
    for path in done.removed:
        click.echo(f"{word}: {shown(path)}")
    for leftover in done.left:
        click.echo(f"{_WORDS[_state(leftover)]}: {shown(leftover.path)}: {shown(leftover.why)}")
    if not done.removed and not done.left:
        click.echo(NOTHING)


_WORDS = {"failed": "NOT REMOVED", "kept": "kept", "unknown": "left"}
