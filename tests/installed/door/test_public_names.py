"""Distributions import what is public in the core, and nothing below."""

import ast
from pathlib import Path

import pytest

import temper_core
from tests.installed.wheels import ROOT

FOLDERS = (
    *sorted((ROOT / "examples").glob("temper-plugin-*")),
    *sorted((ROOT / "libs").iterdir()),
    *sorted((ROOT / "plugins").iterdir()),
    Path(__file__).parent / "temper-plugin-abusive",
)
PUBLIC_MODULES = {"temper_core.testing", "temper_core.console", "temper_core.observed"}


def imports_below(folder):
    """Yield what the modules in *folder* import of the core that is not public."""
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names = {alias.name for alias in node.names}
                yield from {name for name in names if name.startswith("temper_core.")}
            elif isinstance(node, ast.ImportFrom) and node.module == "temper_core":
                yield from {alias.name for alias in node.names} - {*dir(temper_core)}
            elif isinstance(node, ast.ImportFrom) and node.module.startswith("temper_core."):
                yield from {node.module} - PUBLIC_MODULES


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_only_public_names_are_imported(folder):
    assert list(imports_below(folder)) == []


def test_an_import_of_what_is_below_is_seen(tmp_path):
    (tmp_path / "odd.py").write_text("from temper_core.records.pods import Pod\n")

    assert list(imports_below(tmp_path)) == ["temper_core.records.pods"]
