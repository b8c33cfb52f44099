"""``kubectl temper trace POD``: capture a pod on its node, and copy the trace here."""

from pathlib import Path

import click

from temper_core.console import Progress, output_option, print_json, printable
from temper_kube.kubectl import Kubectl
from temper_kube.placing import place
from temper_plugin_tracer.remote import capturing
from temper_plugin_tracer.remote.options import capture_options
from temper_plugin_tracer.trace.commands import destination
from temper_plugin_tracer.trace.commands.progress_bar import in_words


@click.command("trace")
@click.argument("pod")
@capture_options
@click.option("--container", default="", help="Capture this container of the pod only.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="The file for the trace, - for standard output. NAME.pftrace without it.",
)
@output_option
def command(  # noqa: PLR0913 - one for each option
    *,
    pod: str,
    kubeconfig: str,
    context: str,
    namespace: str,
    seconds: float,
    container: str,
    out: Path | None,
    output: str,
) -> None:
    """Capture the scheduler's events of POD, [NAMESPACE/]NAME, as a trace for Perfetto.

    The agent of the pod's node captures, and kubectl copies the trace into a file here. It needs
    the right to create pods/exec in Temper's namespace. Ctrl-C ends the recording, and what there
    is is kept.

    Exit codes: 0 done, 2 no such pod or a refused request, 3 no agent, or nothing was captured.
    """
    placed = place(Kubectl(kubeconfig, context), pod, namespace)
    words = [f"--pod={placed.pod}", f"--seconds={seconds}"]
    if container:
        words.append(f"--container={container}")
    path = out or Path(f"{placed.pod.rpartition('/')[2]}.pftrace")
    destination.refuse_unusable(path, output)
    [entry] = capturing.capture([(placed.agent, words)], seconds)
    progress = Progress()
    capturing.fetch(placed.agent, entry, path, progress.show)
    progress.end(destination.arrival(path))
    if output == "json":
        print_json({**entry, "node": placed.node, "file": str(path)})
    else:
        is_stdout_taken = path == destination.STANDARD_OUTPUT
        click.echo(printable(f"{placed.node}: {in_words(entry)}"), err=is_stdout_taken)
