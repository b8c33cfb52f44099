"""``kubectl temper rightsize``: what the agents of a cluster recommend together."""

import re
from pathlib import Path

import click

from temper_core import InputError
from temper_core.console import Progress
from temper_core.observed import rows
from temper_plugin_rightsizer.advice.options import AdviceOptions
from temper_plugin_rightsizer.commands.choices import advice_options, chosen
from temper_plugin_rightsizer.commands.fleet import of_workload
from temper_plugin_rightsizer.commands.showing import Showing, show_report, showing_options
from temper_plugin_rightsizer.options import HOURS_OF_DAY, MOST_DAYS
from temper_plugin_rightsizer.prices.reading import prices_in
from temper_plugin_rightsizer.prices.settings import Prices

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@click.command("rightsize")
@click.argument("workload", required=False)
@click.option("--kubeconfig", default="", metavar="FILE", help="Instead of KUBECONFIG.")
@click.option("--context", default="", help="Instead of the current one.")
@click.option(
    "-n", "--namespace", default="temper", show_default=True, help="Where Temper is installed."
)
@click.option(
    "--in",
    "only",
    metavar="NAMESPACE",
    multiple=True,
    help="Only the workloads in this namespace. May be repeated.",
)
@click.option(
    "--hours",
    type=click.IntRange(1, MOST_DAYS * HOURS_OF_DAY),
    help="The hours of history that the advice follows from. [default: the agents' setting]",
)
@click.option(
    "--settings",
    "settings_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Settings (TOML) whose prices are used, in place of those that most agents have.",
)
@advice_options
@showing_options
def command(  # noqa: PLR0913 - one argument for each option
    *,
    workload: str | None,
    kubeconfig: str,
    context: str,
    namespace: str,
    only: tuple[str, ...],
    hours: int | None,
    settings_path: Path | None,
    showing: Showing,
    **choices: float | None,
) -> int:
    """Recommend requests and limits of the workloads of a cluster, or of WORKLOAD.

    The agents of all nodes are asked through the API server, and the demand of replicas is added
    up. It needs the rights to list pods and to get pods/proxy in Temper's namespace. Nodes whose
    agent gives no answer are named.

    Exit codes: 0 done, 1 a change is due (with --fail-on-change), 2 wrong options or an unknown
    workload, 3 no API server, no agent that answers, or a right is missing.
    """
    from temper_kube.kubeconfig import find_access  # noqa: PLC0415 - slow
    from temper_plugin_rightsizer.cluster.report import Question, report  # noqa: PLC0415

    if not _NAME.fullmatch(namespace):
        raise InputError(
            f"--namespace {namespace!r}: must be up to 63 lower-case letters, digits and '-'"
        )
    prices = _prices(settings_path, showing)
    access = find_access(kubeconfig, context)
    question = Question(access, namespace, hours, frozenset(only), prices)
    progress = Progress()
    document = report(
        question,
        AdviceOptions(**chosen(choices)),
        lambda asked, all_: progress.show(f"asked {asked} of {all_} agents"),
    )
    progress.end(f"{len(rows(document, 'containers'))} containers")
    return show_report(of_workload(document, workload), showing)


def _prices(settings_path: Path | None, showing: Showing) -> Prices | None:
    """Return the prices to use. None for those of the agents."""
    if settings_path:
        return prices_in(settings_path)
    return Prices() if showing.has_prices else None  # which those of the command line replace
