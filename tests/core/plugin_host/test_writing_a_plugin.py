import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import temper_core

ROOT = Path(temper_core.__file__).parents[1]
PAGE = Path(__file__).parents[3] / "docs" / "writing-a-plugin.md"
FILE = re.compile(r"^`([\w./]+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """Write the files of the example, as a reader would."""
    folder = tmp_path_factory.mktemp("example")
    for name, text in FILE.findall(PAGE.read_text()):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def run(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_examples_own_tests_pass(example):
    tested = run(example, "pytest", "-q", "-p", "no:cacheprovider")

    assert tested.returncode == 0, tested.stdout
    assert "4 passed" in tested.stdout


def test_the_examples_entry_point_names_its_module(example):
    project = tomllib.loads((example / "pyproject.toml").read_text())["project"]
    [module] = project["entry-points"]["temper.plugins"].values()

    assert (example / module / "__init__.py").exists()
