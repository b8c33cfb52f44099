"""A report as a workload profile, whose one group gives the hot threads cores of their own."""

import json
import math
import re
from collections.abc import Mapping, Sequence

from temper_core import InputError, parse_profile
from temper_core.console import Row, named, printable
from temper_core.observed import count, number, rows, table, text
from temper_plugin_rightsizer.commands.formats import texts

ORIGIN = "the profile of the report"
NOT_OF_AN_ID = re.compile("[^a-z0-9]+")
HEAD = """\
# A starting point by measurement. Record the program, test the profile on the recording, and
# compare latencies before and after: docs/profiles.md. The pod needs the tier critical or high, and
# the annotation temper.codes/workload-profile: {id}
"""


def as_profile(document: Row) -> str:
    """Return the profile of the one workload with hot threads, as TOML.

    Raises InputError if no workload has any, several have, or their names cannot be matched.
    """
    by_workload: dict[str, list[Row]] = {}
    for row in rows(document, "containers"):
        by_workload.setdefault(_workload(row), []).append(row)
    hot = sorted(
        workload
        for workload, containers in by_workload.items()
        if any(texts(row, "hot_threads") for row in containers)
    )
    if not hot:
        raise InputError("no container of the report has hot threads that are known by name")
    if len(hot) > 1:
        raise InputError(
            f"a profile is for one workload, and several have hot threads: {named(hot)}"
        )
    return _profile(hot[0], by_workload[hot[0]])


def _workload(row: Row) -> str:
    name = text(row, "pod") or text(row, "owner").partition("/")[2]
    return "/".join(filter(None, (text(row, "namespace"), name)))


def _profile(name: str, containers: Sequence[Row]) -> str:
    threads = dict.fromkeys(thread for row in containers for thread in texts(row, "hot_threads"))
    request = sum(filter(None, (_request(row) for row in containers)))
    cores = sum(count(row, "hot_cores") or 0 for row in containers) or len(threads)
    identity = NOT_OF_AN_ID.sub("-", name.lower()).strip("-") or "hot-threads"
    matches = ", ".join(_table(_match(thread)) for thread in threads)
    profile = f"""\
schema_version = 1
id = {_quoted(identity)}
description = {_quoted(f"Cores of their own for the hot threads of {printable(name)}")}

[[thread_groups]]
name = "hot"
match = [{matches}]
treatment = "exclusive"
cpu_fraction = {_fraction(cores, request)}

[[thread_groups]]
name = "rest"
treatment = "normal"
"""
    try:
        parse_profile(profile, ORIGIN)
    except InputError as error:
        told = "; ".join(str(error).splitlines())
        raise InputError(f"no profile can be written for {printable(name)}: {told}") from error
    return f"{HEAD.format(id=identity)}{profile}".rstrip("\n")


def _request(row: Row) -> float | None:
    """Return the CPU request by the advice, else the current one, in millicores."""
    field = "cpu_request_millis"
    return number(table(row, "recommended"), field) or number(table(row, "current"), field)


def _fraction(cores: int, request_millis: float) -> float:
    """Return the part of the request that makes so many whole cores, when it is rounded up."""
    if not request_millis:
        return 1.0
    return min(max(math.floor(100_000 * cores / request_millis) / 100, 0.01), 1.0)


def _match(family: str) -> Mapping[str, str]:
    """Return the match of a name family, in which ``#`` stands for a number."""
    prefix = family.partition("#")[0]
    if prefix:
        return {"comm_prefix": prefix}
    return {"comm_pattern": f"^{re.escape(family).replace(re.escape('#'), '[0-9]+')}$"}


def _table(match: Mapping[str, str]) -> str:
    keys = ", ".join(f"{key} = {_quoted(value)}" for key, value in match.items())
    return f"{{ {keys} }}"


def _quoted(value: str) -> str:
    """Return a basic string of TOML, without any character that a terminal acts on."""
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)
