"""The profile that a climb begins with: a file, or one made of a bundle."""

from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from temper_core import InputError, read_text
from temper_core.console import bounded_memory
from temper_plugin_trainer.refining.profile_table import Table, complete_table
from temper_plugin_trainer.refining.report import sha256_of
from temper_plugin_trainer.training.bundles import read_bundle
from temper_plugin_trainer.training.grouping import analyse
from temper_plugin_trainer.training.synthesis import Wanted, synthesise


@frozen
class Origin:
    """The table of a profile, and what is known of its groups from a bundle."""

    table: Table
    bundles: Sequence[tuple[str, str]] = ()
    groups: Sequence[str] = ()
    untold: Sequence[str] = ()


def origin_of(profile: Path | None, bundle: Path | None, request_millis: int | None) -> Origin:
    """Read the profile, or make one of the bundle.

    Raises InputError if neither is given, and DocumentError for a file that is invalid.
    """
    if bundle is None:
        if profile is None:
            raise InputError("--profile or --bundle: one of them must be given")
        return Origin(complete_table(read_text(profile), str(profile)))
    with bounded_memory("the bundle takes"):
        read = read_bundle(bundle)
    analysis = analyse(read)
    if profile is None:
        made = synthesise(read, analysis, Wanted(request_millis=request_millis), str(bundle))
        table, left_out = complete_table(made.text, str(bundle)), made.left_out
    else:
        table, left_out = complete_table(read_text(profile), str(profile)), ()
    groups = tuple(f"{group.label}: {group.kind}, {group.why}" for group in analysis.groups)
    untold = (*analysis.untold, *(f"left to the rest: {line}" for line in left_out))
    return Origin(table, ((bundle.name, sha256_of(bundle)),), groups, untold)
