"""Installs the built wheels as users do: by pip, by pipx and by uv, outside of the checkout."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 600
KUBECTL = "temper-plugin-kubernetes"
"""The distribution with the command ``kubectl-temper``, which pipx and uv are told to show."""
LEFT_OUT = ("PYTHON", "TEMPER", "VIRTUAL_ENV", "PIPX", "UV_")
"""Beginnings of the names of variables that would let the caller's environment show through."""


def run(*command, check=True, **more):
    """Run *command* without what the environment says of other environments."""
    words = [str(word) for word in command]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
    options = {"capture_output": True, "text": True, "timeout": SECONDS, "env": kept | more}
    done = subprocess.run(words, check=False, **options)
    assert not check or done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


@cache
def uv():
    """Return the uv that ``scripts/install`` uses."""
    cached = Path(os.environ.get("TEMPER_CACHE") or Path.home() / ".cache/temper") / "uv/bin/uv"
    return shutil.which("uv") or cached


def by_pip(requirement, wheels, pins, python, folder):
    """Install into a virtual environment by pip; return the folder of its commands."""
    run(python, "-m", "venv", folder / "environment")
    commands = folder / "environment" / "bin"
    given = ("--find-links", wheels, "--constraint", pins, "--only-binary", ":all:")
    run(commands / "pip", "install", "--quiet", *given, requirement)
    return commands


def by_uv_pip(requirement, wheels, pins, python, folder):
    """Install into a virtual environment by ``uv pip``; return the folder of its commands."""
    run(uv(), "venv", "--quiet", "--python", python, folder / "environment")
    commands = folder / "environment" / "bin"
    given = ("--find-links", wheels, "--constraint", pins, "--only-binary", ":all:")
    run(uv(), "pip", "install", "--quiet", "--python", commands / "python", *given, requirement)
    return commands


def by_pipx(requirement, wheels, pins, python, folder):
    """Install by a pipx of its own; return the folder of the commands that it puts on PATH."""
    run(python, "-m", "venv", folder / "pipx")
    run(folder / "pipx/bin/pip", "install", "--quiet", "pipx")
    places = {"PIPX_HOME": str(folder / "home"), "PIPX_BIN_DIR": str(folder / "bin")}
    given = f"--find-links={wheels} --constraint={pins} --only-binary=:all:"
    command = (folder / "pipx/bin/pipx", "install", "--python", python, f"--pip-args={given}")
    run(*command, "--include-resources-from", KUBECTL, requirement, **places)
    return folder / "bin"


def by_uv_tool(requirement, wheels, pins, python, folder):
    """Install by ``uv tool``; return the folder of the commands that it puts on PATH."""
    places = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    given = ("--find-links", wheels, "--constraints", pins, "--no-build")
    shown = ("--with-executables-from", KUBECTL)
    command = (uv(), "tool", "install", "--quiet", "--python", python, *given, *shown)
    run(*command, requirement, **places)
    return folder / "bin"


TOOLS = {"pip": by_pip, "pipx": by_pipx, "uv": by_uv_tool}
