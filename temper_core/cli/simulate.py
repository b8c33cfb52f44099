"""``temper simulate``: plan and lint a recorded node again, on any machine, without effects."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core.console import SavedFile, output_option, print_json
from temper_core.errors import EXIT_CLEAN, EXIT_FINDINGS

if TYPE_CHECKING:
    from temper_core.rehearsal.simulation import SimulationOverrides

FILE = click.Path(path_type=Path)


@click.command("simulate")
@click.argument("file", type=FILE)
@click.option("--settings", type=FILE, help="Settings (TOML) in place of those recorded.")
@click.option(
    "--profiles", type=FILE, help="Directory of profile files in place of those recorded."
)
@click.option("--machine", type=FILE, help="Machine file in place of the machine recorded.")
@click.option("--steered", is_flag=True, help="Plan for hints, as where the kernel allows them.")
@click.option(
    "--save",
    metavar="FILE.svg|FILE.html",
    type=SavedFile(".svg", ".html"),
    help="Write a plot as well: the layers of each pod over time, changes and violations.",
)
@output_option
@click.pass_context
def command(
    context: click.Context,
    /,
    file: Path,
    output: str,
    save: Path | None,
    **overrides: Any,  # noqa: ANN401 - the overrides
) -> None:
    """Plan and lint again the node that 'temper observe --record FILE' has recorded.

    Shows the plan with the reason of every pod, how each change of the pods would take effect, the
    linter's violations, and the threads that would be in another layer than recorded. Exit code 0
    if nothing is wrong, 1 if a violation stood or the plan could starve a layer, 2 if a file has
    errors.
    """
    from temper_core.cli.simulated_tables import print_simulation, simulation_document
    from temper_core.logs import configure_logs
    from temper_core.rehearsal.simulation import simulate

    # The linter logs its violations, which are printed below.
    configure_logs("critical")
    simulation = simulate(file, _given(**overrides))
    if save is not None:
        from temper_core.cli.simulated_plot import save_plot

        save_plot(save, simulation_document(simulation))
    if output == "json":
        print_json(simulation_document(simulation))
    else:
        print_simulation(simulation)
    context.exit(EXIT_FINDINGS if simulation.has_findings else EXIT_CLEAN)


def _given(
    *, settings: Path | None, profiles: Path | None, machine: Path | None, steered: bool
) -> "SimulationOverrides":
    from temper_core.errors import DocumentError
    from temper_core.node.machine_file import read_machine_file
    from temper_core.rehearsal.simulation import SimulationOverrides
    from temper_core.settings import load

    if profiles is not None and not profiles.is_dir():
        raise DocumentError(str(profiles), ["is not a directory of profiles"])
    return SimulationOverrides(
        settings=None if settings is None else load(settings).settings,
        machine=None if machine is None else read_machine_file(machine),
        profiles=profiles,
        steered=steered,
    )
