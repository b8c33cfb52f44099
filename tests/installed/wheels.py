"""Distributions as users get them: wheels, installed by plain pip into an empty environment."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*command, check=True, **options):
    arguments = [str(part) for part in command]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, **options)
    assert not check or done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done


def environment_with(projects, folder, *requirements):
    """Build the wheels of *projects*; return an environment with them and *requirements*."""
    wheels, environment = folder / "wheels", folder / "environment"
    for project in projects:
        _build(project, wheels)
    run(sys.executable, "-m", "venv", environment)
    pip = (environment / "bin" / "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", *requirements, *sorted(wheels.glob("*.whl")))
    return environment


def _build(project, into):
    if shutil.which("uv"):
        run("uv", "build", "--wheel", project, "-o", into)
    else:
        run(sys.executable, "-m", "build", "--wheel", project, "--outdir", into)
