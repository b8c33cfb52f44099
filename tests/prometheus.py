"""A Prometheus and its promtool, as ``scripts/fetch-prometheus`` puts them into the cache."""

import subprocess
from functools import cache
from pathlib import Path

import pytest

FETCH = Path(__file__).parents[1] / "scripts/fetch-prometheus"


@cache
def _directory(*options):
    done = subprocess.run([FETCH, *options], capture_output=True, text=True, check=False)
    return done.stdout.strip(), done.stderr.strip()


def program(name, *, fetch=False):
    """Return the path of ``prometheus`` or ``promtool``; skip where it is not there.

    With *fetch* it is fetched, and a machine that cannot is a failure.
    """
    found, reason = _directory(*(() if fetch else ("--where",)))
    if not found:
        if fetch:
            pytest.fail(f"no Prometheus: {reason}")
        pytest.skip(f"needs Prometheus; {reason}")
    return Path(found) / name


def promtool(*arguments, **given):
    """Run promtool, and return what it printed and its exit status."""
    return subprocess.run(
        [program("promtool"), *map(str, arguments)], capture_output=True, check=False, **given
    )
