"""Every distribution declares what it imports, so that its own requirements are enough."""

import ast
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECTS = sorted(
    file.parent
    for file in (ROOT / "pyproject.toml", *ROOT.glob("*/*/pyproject.toml"))
    if "project" in tomllib.loads(file.read_text())
)


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def our_packages():
    """Yield package and distribution of each of ours, which is a link to its source here."""
    for project in PROJECTS:
        table = tomllib.loads((project / "pyproject.toml").read_text())
        for package in table["tool"]["hatch"]["build"]["targets"]["wheel"].get("packages", ()):
            yield package, [table["project"]["name"]]


def modules_of(project):
    """Return the source files that the distribution's wheel holds."""
    table = tomllib.loads((project / "pyproject.toml").read_text())
    wheel = table["tool"]["hatch"]["build"]["targets"]["wheel"]
    folders = [project / package for package in wheel.get("packages", ())]
    files = [project / file for file in wheel.get("only-include", ())]
    found = [*(file for folder in folders for file in folder.rglob("*.py")), *files]
    assert found, f"no modules of {project.name} were found"
    return found


def imports_of(file):
    """Yield the top-level package of every absolute import, wherever in the file it is."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]


def declared_by(project):
    """Return the names of the distributions that are required, optional ones included."""
    table = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    extras = table.get("optional-dependencies", {}).values()
    written = [*table.get("dependencies", ()), *(each for extra in extras for each in extra)]
    return {normal(re.match(r"[\w.-]+", each)[0]) for each in written} | {normal(table["name"])}


OWNERS = {**metadata.packages_distributions(), **dict(our_packages())}


def undeclared_in(project):
    imported = {name for file in modules_of(project) for name in imports_of(file)}
    foreign = imported - sys.stdlib_module_names - {"__future__"}
    declared = declared_by(project)
    return {name for name in foreign if declared.isdisjoint(map(normal, OWNERS.get(name, [name])))}


@pytest.mark.parametrize("project", PROJECTS, ids=lambda project: project.name)
def test_a_distribution_declares_every_package_that_it_imports(project):
    assert undeclared_in(project) == set()


def test_all_distributions_are_looked_at():
    names = {
        tomllib.loads((each / "pyproject.toml").read_text())["project"]["name"] for each in PROJECTS
    }

    assert names >= {"temper-agent", "temper-plugin-density", "temper-plugin-kubernetes"}
    assert names >= {"temper-plugin-linter", "temper-plugin-builtin-profiles"}


def test_a_package_that_is_not_declared_is_found(tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "__init__.py").write_text("def f():\n    from attrs import frozen\n")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "some"\ndependencies = ["click>=8"]\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["some"]\n'
    )

    assert undeclared_in(tmp_path) == {"attrs"}
