"""Distributions as users get them: wheels, installed into an empty environment."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*command, check=True, **options):
    arguments = [str(part) for part in command]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, **options)
    assert not check or done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done


def environment_by_pip(wheels, folder):
    """Return an environment with *wheels*, made by plain venv and pip."""
    environment = folder / "environment"
    run(sys.executable, "-m", "venv", environment)
    pip = (environment / "bin" / "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", *wheels)
    return environment


def environment_by_uv(requirements, folder):
    """Return an environment with *requirements*, among them wheels, made by uv in a second."""
    environment = folder / "environment"
    run(_uv(), "venv", "--python", sys.executable, environment)
    run(_uv(), "pip", "install", "--python", environment / "bin/python", *requirements)
    return environment


def build(project, folder):
    """Build the wheel of *project* in a folder of its own; return its path."""
    run(_uv(), "build", "--wheel", project, "--out-dir", folder)
    [wheel] = folder.glob("*.whl")
    return wheel


@cache
def _uv():
    """Return the uv that ``scripts/install`` uses."""
    cached = Path(os.environ.get("TEMPER_CACHE") or Path.home() / ".cache/temper") / "uv/bin/uv"
    return shutil.which("uv") or cached
