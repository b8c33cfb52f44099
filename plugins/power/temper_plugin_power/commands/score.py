"""``temper power score``: how the scheduler extender would score nodes for a pod, by files."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from attrs import frozen

from temper_core import DocumentError, read_pod_object
from temper_core.console import (
    EXIT_CLEAN,
    EXIT_FINDINGS,
    bounded_memory,
    columns,
    output_option,
    print_json,
)
from temper_plugin_power.commands.object_files import read_objects
from temper_plugin_power.placing.rejecting import rejection
from temper_plugin_power.placing.scoring import Score, performance_pressure, score
from temper_plugin_power.placing.subjects import Choices, PodView
from temper_plugin_power.placing.views import ClusterView, cluster_view

TERMS = ("base", "class", "eviction", "marginal", "sensitivity")
HEADS = ("NODE", "SCORE", *(term.upper() for term in TERMS), "REJECTED")


@frozen
class NodeScore:
    """The score of a node, and why it does not take the pod, if it does not."""

    node: str
    score: Score
    rejected: str | None


@click.command("score")
@click.argument("pod", type=click.Path(path_type=Path))
@click.option(
    "--objects",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="A List of Node, NodeTwin, NodeHardware and WorkloadProfile objects; - is standard input.",
)
@output_option
def score_command(*, pod: Path, objects: Path, output: str) -> int:
    """Show how each node would be scored for POD, term by term.

    POD is a file of one Pod in JSON or YAML. The objects are those of the cluster, as kubectl get
    nodes,nodetwins,nodehardwares,workloadprofiles -A -o json prints them. Exit code 1 if no node
    takes the pod, 2 if a file is invalid.
    """
    with bounded_memory("the objects take"):
        view = cluster_view(read_objects(objects), datetime.now(UTC))
        asked = _read_pod(pod, view)
        scores = score_nodes(asked, view)
    if output == "json":
        print_json([_as_document(each) for each in scores])
    else:
        click.echo("\n".join(columns(HEADS, [_cells(each) for each in scores])))
    return EXIT_CLEAN if any(each.rejected is None for each in scores) else EXIT_FINDINGS


def score_nodes(pod: PodView, view: ClusterView) -> Sequence[NodeScore]:
    """Return the score of every node, the best first, and those that do not take the pod last."""
    pressure = performance_pressure(view.nodes.values())
    scores = [
        NodeScore(name, score(pod, node, pressure, Choices()), rejection(pod, node))
        for name, node in view.nodes.items()
    ]
    return sorted(scores, key=lambda each: (bool(each.rejected), -each.score.points, each.node))


def _read_pod(path: Path, view: ClusterView) -> PodView:
    documents = read_objects(path)
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        raise DocumentError(str(path), ["must have exactly one Pod"])
    document = documents[0]
    pod = read_pod_object(document, source=str(path))
    if pod is None or document.get("kind") != "Pod":
        raise DocumentError(str(path), ["must be a Pod that has not ended"])
    return view.pod_view(pod, document.get("spec") or {})


def _as_document(each: NodeScore) -> Mapping[str, object]:
    reason = {} if each.rejected is None else {"rejected": each.rejected}
    return {"node": each.node, "score": each.score.points, "terms": each.score.terms, **reason}


def _cells(each: NodeScore) -> tuple[str, ...]:
    terms = each.score.terms
    shown = (f"{terms[term]:.1f}" if term in terms else "-" for term in TERMS)
    return (each.node, str(each.score.points), *shown, each.rejected or "")
