"""``kubectl temper resize``: apply a report of ``rightsize``, and take it back."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from temper_core import DocumentError, InputError, read_json
from temper_core.console import EXIT_FINDINGS, Row, printable
from temper_kube.api_server import ApiServer
from temper_plugin_rightsizer.applying.edits import REFUSALS, Edit, send
from temper_plugin_rightsizer.applying.targets import NAME, Choice, Refusal, edits_of, undos


@click.command("resize")
@click.argument(
    "report", required=False, type=click.Path(path_type=Path, dir_okay=False, allow_dash=True)
)
@click.option("--kubeconfig", default="", metavar="FILE", help="Instead of KUBECONFIG.")
@click.option("--context", default="", help="Instead of the current one.")
@click.option("--apply", "acts", is_flag=True, help="Change the objects. Without it nothing is.")
@click.option("--yes", is_flag=True, help="Do not ask on the terminal before changing them.")
@click.option(
    "--in-place",
    is_flag=True,
    help="Resize the running pods, and leave the templates as they are.",
)
@click.option("--low-confidence", is_flag=True, help="Take advice of low confidence too.")
@click.option("--undo", is_flag=True, help="Take back what was applied, instead of a REPORT.")
@click.option(
    "--in",
    "only",
    metavar="NAMESPACE",
    multiple=True,
    help="For --undo: only this namespace. May be repeated.",
)
def command(  # noqa: PLR0913 - one argument for each option
    *,
    report: Path | None,
    kubeconfig: str,
    context: str,
    acts: bool,
    yes: bool,
    in_place: bool,
    low_confidence: bool,
    undo: bool,
    only: tuple[str, ...],
) -> int:
    """Apply REPORT, the JSON of "rightsize", to the workloads of a cluster.

    Without --apply the API server only validates the change, and nothing changes. Changed
    templates start their pods anew. --in-place resizes running pods, from Kubernetes 1.33 on.
    The former amounts are kept in an annotation of the object, and --undo restores it. An object
    that has other requests than the report was made with is left as it is.

    Exit codes: 0 done, 1 an object was left as it is, 2 wrong options or a malformed report, 3 no
    API server.
    """
    from temper_kube.kubeconfig import find_access  # noqa: PLC0415 - slow

    _require_one_purpose(report, undo=undo, only=only)
    if acts and not yes and not sys.stdin.isatty():
        raise InputError("--apply asks on a terminal, and there is none; --yes goes without")
    document = None if report is None else _read(report)
    with ApiServer(find_access(kubeconfig, context)) as api:
        if document is None:
            accepted, refused = _rehearsed(api, undos(api, only))
        else:
            choice = Choice(low_confidence, in_place)
            accepted, refused = _rehearsed(api, edits_of(api, document, choice))
        if not accepted and not refused:
            click.echo("nothing is to be changed")
        if not acts:
            _show_next_step(accepted)
        elif accepted and (yes or click.confirm(f"Change {len(accepted)} objects?", err=True)):
            refused += _sent(api, accepted)
    return EXIT_FINDINGS if refused else 0


def _require_one_purpose(report: Path | None, *, undo: bool, only: tuple[str, ...]) -> None:
    """Raise InputError unless there is a report or an undo, and namespaces for an undo alone."""
    if undo == (report is not None):
        raise InputError("give a REPORT, or --undo")
    if only and not undo:
        raise InputError("--in is for --undo; a report is made with --in")
    for namespace in only:
        if not NAME.fullmatch(namespace):
            raise InputError(f"--in {namespace!r}: must be a namespace's name")


def _read(report: Path) -> Row:
    """Return the report. Raise DocumentError unless it is one."""
    document = read_json(report)
    if not isinstance(document, dict) or not isinstance(document.get("containers"), list):
        raise DocumentError(
            str(report), ["containers: must be a list, as rightsize -o json prints it"]
        )
    return document


def _rehearsed(api: ApiServer, found: Iterable[Edit | Refusal]) -> tuple[list[Edit], int]:
    """Let the API server judge each edit. Return those it accepts, and the number of the others."""
    accepted, refused = [], 0
    for each in found:
        if isinstance(each, Edit):
            try:
                send(api, each, is_dry=True)
            except REFUSALS as error:
                each = Refusal(each.title, str(error))  # noqa: PLW2901 - it is one now
        if isinstance(each, Refusal):
            refused += 1
            click.echo(printable(f"left     {each.title}: {each.why}"))
        else:
            accepted.append(each)
            for line in _lines(each):
                click.echo(printable(line))
    return accepted, refused


def _lines(edit: Edit) -> Iterable[str]:
    for change in edit.changes:
        for place, after in change.after.items():
            before = change.before[place] or "not set"
            yield (
                f"change   {edit.title} container {change.container}: {place} {before} -> "
                f"{after or 'not set'}"
            )


def _sent(api: ApiServer, edits: Iterable[Edit]) -> int:
    """Make the edits. Return the number of those that failed."""
    failed = 0
    for edit in edits:
        try:
            send(api, edit, is_dry=False)
        except REFUSALS as error:
            failed += 1
            click.echo(printable(f"failed   {edit.title}: {error}"))
        else:
            click.echo(printable(f"changed  {edit.title}"))
    return failed


def _show_next_step(accepted: list[Edit]) -> None:
    if accepted:
        click.echo(
            f"{len(accepted)} objects would change; --apply changes them, and --undo --apply takes "
            "that back",
            err=True,
        )
