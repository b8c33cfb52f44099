"""``kubectl temper trace-compare``: short captures of two pods, and how their waits differ."""

from collections.abc import Sequence
from pathlib import Path

import click

from temper_core.console import Progress, output_option
from temper_kube.kubectl import Kubectl
from temper_kube.placing import PlacedPod, place
from temper_plugin_tracer.remote import capturing
from temper_plugin_tracer.remote.options import capture_options
from temper_plugin_tracer.trace.analysis.report import LEVELS
from temper_plugin_tracer.trace.commands.analyze import MOST_ROWS, USUAL_ROWS
from temper_plugin_tracer.trace.commands.compare import show_comparison
from temper_plugin_tracer.trace.commands.partial_file import refuse_unwritable


@click.command("trace-compare")
@click.argument("first")
@click.argument("second")
@capture_options
@click.option("--by", type=click.Choice(LEVELS), default="process", show_default=True)
@click.option("--of", default="", help="Only subjects with this text in their name.")
@click.option(
    "--top", type=click.IntRange(1, MOST_ROWS), default=USUAL_ROWS, show_default=True, help="Rows."
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path(),
    help="Where the traces 1-POD.pftrace and 2-POD.pftrace are written. Here by default.",
)
@output_option
def command(  # noqa: PLR0913 - one for each option
    *,
    first: str,
    second: str,
    kubeconfig: str,
    context: str,
    namespace: str,
    seconds: float,
    by: str,
    of: str,
    top: int,
    directory: Path,
    output: str,
) -> None:
    """Capture the pods FIRST and SECOND, [NAMESPACE/]NAME, and compare their runs and waits.

    Pods of two nodes are captured at the same time, such as a canary and another. Two pods of one
    node, or one pod twice, are captured one after the other.

    Exit codes: 0 done, 2 no such pod or a refused request, 3 no agent, or nothing was captured.
    """
    kubectl = Kubectl(kubeconfig, context)
    pods = [place(kubectl, pod, namespace) for pod in (first, second)]
    paths = [
        directory / f"{number}-{placed.pod.rpartition('/')[2]}.pftrace"
        for number, placed in enumerate(pods, 1)
    ]
    for path in paths:
        refuse_unwritable(path)
    entries, progress = _captured(pods, seconds), Progress()
    for placed, entry, path in zip(pods, entries, paths, strict=True):
        capturing.fetch(placed.agent, entry, path, progress.show)
    progress.end(f"the traces are in {paths[0]} and {paths[1]}")
    show_comparison(*paths, by=by, of=of, top=top, output=output)


def _captured(pods: Sequence[PlacedPod], seconds: float) -> list[capturing.Row]:
    """Return the entries of the pods' traces. A node has one capture at a time."""
    asked = [(placed.agent, [f"--pod={placed.pod}", f"--seconds={seconds}"]) for placed in pods]
    if len({placed.node for placed in pods}) == len(pods):
        return capturing.capture(asked, seconds)
    return [entry for each in asked for entry in capturing.capture([each], seconds)]
