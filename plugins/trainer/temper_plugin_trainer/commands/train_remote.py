"""``kubectl temper train POD``: refine a profile on a pod of a cluster, through the API server."""

from pathlib import Path
from typing import Any

import click
from attrs import frozen

from temper_core import InputError, configure_logs
from temper_core.console import FiniteRange, held_interruptions, printable
from temper_kube.kubectl import Kubectl
from temper_kube.placing import PlacedPod, place
from temper_plugin_trainer.commands.artifacts import artifacts_directory
from temper_plugin_trainer.commands.profile_origin import Origin, origin_of
from temper_plugin_trainer.commands.run_options import run_options
from temper_plugin_trainer.commands.train_run import node_for_trials
from temper_plugin_trainer.commands.training_run import TrainingRun
from temper_plugin_trainer.refining.guardian import Guardian
from temper_plugin_trainer.refining.node_facts import NodeFacts
from temper_plugin_trainer.refining.trial_door import Door
from temper_plugin_trainer.refining.window import parsed_window
from temper_plugin_trainer.remote.canary import Canary, canary_of
from temper_plugin_trainer.remote.pod_watch import ABORT, PodWatch
from temper_plugin_trainer.remote.relay_client import RelayClient
from temper_plugin_trainer.remote.values_patch import values_patch


@click.command("train")
@click.argument("pod")
@click.option("--kubeconfig", default="", metavar="FILE", help="Instead of KUBECONFIG.")
@click.option("--context", default="", help="Instead of the current one.")
@click.option(
    "-n", "--namespace", default="temper", show_default=True, help="Where Temper is installed."
)
@click.option(
    "--fraction",
    type=FiniteRange(min=0, min_open=True, max=1),
    help="Train on further pods of the owner on that node, up to this share of the owner's pods.",
)
@run_options
def command(
    *,
    pod: str,
    kubeconfig: str,
    context: str,
    namespace: str,
    fraction: float | None,
    **options: Any,  # noqa: ANN401 - options of click
) -> None:
    """Refine a profile by a benchmark, on POD, [NAMESPACE/]NAME, of a cluster.

    As temper train run. CMD runs here, and the agent of the pod's node makes the trials. It needs
    the rights to get the pod and the agents' pods, and to create pods/exec in Temper's namespace.
    The annotation temper.codes/abort-training=true of the pod ends it within seconds. The result is
    printed as values for the chart, and nothing in the cluster is changed.

    Exit codes: 0 a profile is better, 1 no improvement found, 2 refused input, interrupted or
    aborted, 3 no agent, or the benchmark fails.
    """
    configure_logs("warning")
    options["window"] = parsed_window(options["window"]) if options["window"] is not None else None
    kubectl = Kubectl(kubeconfig, context)
    placed = place(kubectl, pod, namespace)
    canary = canary_of(kubectl, placed, fraction)
    watch = PodWatch(kubectl, canary)
    if why := watch.look():
        raise InputError(f"{why}: remove it to train" if ABORT in why else why)
    _Training(placed, canary, watch, options).run()


@frozen
class _Training:
    """A training on the pods of *canary*, while *watch* looks at them."""

    placed: PlacedPod
    canary: Canary
    watch: PodWatch
    options: dict[str, Any]

    def run(self) -> None:
        """Refine, print the result, and exit with the verdict."""
        with self.placed.agent.converse("train", "relay") as conversation:
            relay = RelayClient(conversation)
            facts = relay.greeting()
            # The thread must not take a signal that is held back, and the relay needs its sign of
            # life also while a bundle is read.
            with held_interruptions(), self.watch.looking(relay.keep_alive):
                self._train(relay, facts)

    def _train(self, relay: RelayClient, facts: NodeFacts) -> None:
        door = Door(relay.ask, self.canary.pods)
        look = node_for_trials(door, may_observe=self.options["rehearse"])
        request = door.cpu_request_millis()
        origin = origin_of(self.options["profile"], self.options["bundle"], request)
        directory = self._directory(origin)
        guardian = Guardian(is_remote=True)
        try:
            TrainingRun(
                *(door, look, facts, origin, directory, guardian, request, self.options),
                show=lambda *told: self._show(str(origin.table["id"]), *told),
                aborted=self.watch.reason,
            ).run()
        finally:
            guardian.close()

    def _directory(self, origin: Origin) -> Path:
        named = self.options["workload"] or str(origin.table["id"])
        return artifacts_directory(self.options["artifacts"], named)

    def _show(self, profile_id: str, verdict: str, report: Path, profile: str) -> None:
        """Print the values for the chart, which are not applied."""
        comments = [
            f"{', '.join(self.canary.pods)} on {self.canary.node}: {verdict}",
            f"record: {report}",
        ]
        if profile:
            comments.append(
                f"helm upgrade temper CHART -n {self.placed.agent.namespace} --reuse-values -f FILE"
            )
        click.echo(values_patch(profile_id, profile, list(map(printable, comments))), nl=False)
