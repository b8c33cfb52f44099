"""Cold starts: ``temper --help`` and ``temper plan`` (250 pods, 64 CPUs) against bare Python."""

import json
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

from timing import cpu_ms_in_turn

PODS = 250
CORES = 32
ROUNDS = 15


def podlist(count: int = PODS) -> str:
    """Return a PodList as kubectl prints it."""
    podlists = runpy.run_path(str(Path(__file__).parents[1] / "tests" / "podlists.py"))
    return json.dumps(podlists["make_podlist"](count), indent=4)


def measure() -> dict[str, Any]:
    """Return median CPU milliseconds, and ratios to bare Python."""
    temper = str(Path(sys.executable).with_name("temper"))
    with tempfile.TemporaryDirectory() as directory:
        pods, machine = Path(directory, "pods.json"), Path(directory, "machine.json")
        pods.write_text(podlist())
        machine.write_text(json.dumps({"cores": CORES, "threads_per_core": 2}))
        plan = [temper, "plan", "--pods", str(pods), "--machine", str(machine)]
        spent = cpu_ms_in_turn(
            {
                "python -c pass": [sys.executable, "-c", "pass"],
                "temper --help": [temper, "--help"],
                "temper plan --output engine": [*plan, "--output", "engine"],
                "temper plan --output table": [*plan, "--output", "table"],
            },
            ROUNDS,
        )
    bare = spent["python -c pass"]
    return {name: {"cpu_ms": ms, "ratio": round(ms / bare, 2)} for name, ms in spent.items()}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
