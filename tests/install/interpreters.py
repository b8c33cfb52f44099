"""Finds the interpreters of this machine."""

import subprocess
from functools import cache

from tests.install.tools import ROOT

VERSIONS = ("3.11", "3.12", "3.13", "3.14")


@cache
def python_of(version):
    """Return the path of the interpreter of *version*, None where there is none."""
    asked = [ROOT / "scripts" / "install", "--which", version]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None
