"""``temper run``: start a command as a local workload, in a cgroup whose name has its tier."""

import click

from temper_core.records.tiers import Tier
from temper_core.suggestions import similar


@click.command(
    "run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option(
    "--tier", type=click.Choice([str(tier) for tier in Tier]), default="normal", show_default=True
)
@click.option("--profile", help="Workload profile for the command's threads.")
@click.option("--name", help="Name of the workload; the command's own name by default.")
@click.option("--cpu-request", help="CPU request, as Kubernetes writes it: 500m, 2.")
@click.option("--cpu-limit", help="CPU limit, as Kubernetes writes it.")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    tier: str,
    profile: str | None,
    name: str | None,
    cpu_request: str | None,
    cpu_limit: str | None,
    argv: tuple[str, ...],
) -> None:
    """Start a command as a workload with a tier, and wait for it.

    The command runs in a cgroup of its own below temper.slice. The agent's local pod source reports
    it as a pod while a process lives in it. The cgroup is removed when the command ends. If
    children of the command live on, or this process is killed, the next "temper run" after their
    end removes it. A name is used by one workload at a time. Signals sent to this process are
    forwarded to the command. The exit code is the command's own.
    """
    import sys

    from temper_core.launch import Workload, name_of_command, run

    if argv[0].startswith("-"):
        raise _no_such_option(argv[0])
    if name is None:
        name = name_of_command(argv[0])
    workload = Workload.parse(name, Tier(tier), profile, cpu_request, cpu_limit)
    ended = run(workload, argv, warn=_tell)
    if ended.still_running:
        pids = ", ".join(map(str, ended.still_running))
        _tell(f"still running in {ended.cgroup}: {pids}")
    sys.exit(ended.exit_code)


def _no_such_option(argument: str) -> click.NoSuchOption:
    option = argument.partition("=")[0]
    known = [name for parameter in command.params for name in parameter.opts]
    meant = similar(option, known)
    return click.NoSuchOption(option, possibilities=[meant] if meant else None)


def _tell(line: str) -> None:
    click.echo(f"temper: {line}", err=True)
