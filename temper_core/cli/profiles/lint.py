"""``temper profiles lint``: errors and warnings in profile files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from temper_core.cli.profiles.check import each_file
from temper_core.console import output_option, print_json

if TYPE_CHECKING:
    from temper_core.profiles.catalogue import ProfileCatalogue
    from temper_core.records.profiles import LoadedProfile

EXIT_FINDINGS = 1
EXIT_INPUT = 2


@click.command("lint")
@click.argument(
    "files", metavar="FILE|DIR...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@output_option
@click.option(
    "--profiles",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Directory of profiles that these may extend.",
)
@click.option("--settings", type=click.Path(path_type=Path), help="Settings file (TOML).")
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    output: str,
    profiles: Path | None,
    settings: Path | None,
) -> None:
    """Report errors and warnings in profile files, for the installed engine.

    Exit code 2 for a profile that the agent would not load, 1 for one with warnings.
    """
    from temper_core.profiles.completed_files import completed_files

    paths = list(each_file(files))
    catalogue = completed_files(paths, settings=settings, directory=profiles)
    documents = [document for path in paths for document in _documents(path, catalogue)]
    if output == "json":
        print_json(documents)
    else:
        for document in documents:
            _print(document)
    kinds = {remark["severity"] for document in documents for remark in document["remarks"]}
    context.exit(EXIT_INPUT if "error" in kinds else EXIT_FINDINGS if kinds else 0)


def _documents(path: Path, catalogue: "ProfileCatalogue") -> list[dict[str, Any]]:
    """Return one document for each profile of the file, and one for all of its errors."""
    sound = [profile for profile in catalogue.profiles if profile.source == str(path)]
    errors = [
        {"severity": "error", "code": "not_loaded", "path": "", "message": problem}
        for failure in catalogue.failures
        if failure.source == str(path)
        for problem in failure.problems or (failure.reason,)
    ]
    documents = [_document(path, profile) for profile in sound]
    if errors:
        documents.append({"file": str(path), "profile": "", "remarks": errors})
    return documents


def _document(path: Path, loaded: "LoadedProfile") -> dict[str, Any]:
    from attrs import asdict

    from temper_core.profiles.completion import today
    from temper_core.profiles.lint import remarks_on

    remarks = remarks_on(loaded.profile, today())
    warnings = [{"severity": "warning", **asdict(remark)} for remark in remarks]
    return {"file": str(path), "profile": loaded.profile.id, "remarks": warnings}


def _print(document: dict[str, Any]) -> None:
    from temper_core.console import shown

    for remark in document["remarks"]:
        where = f"{remark['path']}: " if remark["path"] else ""
        line = f"{document['file']}: {remark['severity']}: {where}{remark['message']}"
        code = f" [{remark['code']}]" if remark["severity"] == "warning" else ""
        click.echo(shown(line + code), err=remark["severity"] == "error")
    if not document["remarks"]:
        click.echo(f"{document['file']}: profile {document['profile']!r}: no remarks")
