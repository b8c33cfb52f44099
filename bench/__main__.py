"""Every measurement, one after the other: ``make bench``, or ``python bench``."""

import subprocess
import sys
from pathlib import Path

PROGRAMS = (
    "startup.py",
    "compile_plan.py",
    "observe_tick.py",
    "always_on.py",
    "memory.py",
    "steering.py",
    "wakes.py",
    "trace_encode.py",
    "admissions.py",
    "placement.py",
    "power_extender.py",
)


def main() -> int:
    """Run each program in a process of its own. Return the number that failed."""
    failed = 0
    for program in PROGRAMS:
        print(f"\n## {program}", flush=True)
        path = Path(__file__).with_name(program)
        failed += subprocess.run([sys.executable, str(path)], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
