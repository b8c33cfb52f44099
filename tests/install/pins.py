"""The ends of the version ranges that our distributions declare, as a file of constraints.

Only what a distribution names itself is taken at its lowest. What that needs in turn is the newest,
since its ranges are the promises of others.
"""

import tomllib
from functools import cache

from tests.install.tools import ROOT, run, uv

ENDS = {"lowest": "lowest-direct", "newest": "highest"}
"""The name of each end, and how uv calls it."""
FILES = (
    ROOT / "pyproject.toml",
    *sorted(ROOT.glob("libs/*/pyproject.toml")),
    *sorted(ROOT.glob("plugins/*/pyproject.toml")),
)


@cache
def projects():
    """Return the project tables of our distributions by name, each with its file."""
    tables = {file: tomllib.loads(file.read_text())["project"] for file in FILES}
    return {table["name"]: (file, table) for file, table in tables.items()}


def plugins():
    """Return the distributions that are plugins, each with the names of its plugins."""
    return {
        name: tuple(table["entry-points"]["temper.plugins"])
        for name, (_, table) in projects().items()
        if "temper.plugins" in table.get("entry-points", {}) and name.startswith("temper-plugin-")
    }


def needed_by(name):
    """Return the files of *name* and of all distributions of ours that it needs."""
    file, table = projects()[name]
    ours = [
        each for each in projects() if any(_names(need, each) for need in table["dependencies"])
    ]
    return {file}.union(*map(needed_by, ours))


def _names(requirement, name):
    return requirement.startswith((f"{name}~", f"{name}>", f"{name}["))


def write_pins(files, end, wheels, python, target):
    """Write the versions at *end* of the ranges in *files* to *target*; return it."""
    given = ("--no-sources", "--no-header", "--no-annotate", "--only-binary", ":all:")
    chosen = ("--resolution", ENDS[end], "--python", python, "--find-links", wheels)
    command = (uv(), "pip", "compile", "--quiet", *given, *chosen, "--all-extras")
    run(*command, "--output-file", target, *sorted(files))
    return target
