"""Runs in the guest as root: ``python examples/demo --engine PATH [--report FILE]``."""

import argparse
import sys
from pathlib import Path

from report import Report
from walk import Walk


def main() -> int:
    """Walk through the agent's life; exit with 1 where something was not as claimed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True, help="the scx_layered to run")
    parser.add_argument("--report", type=Path, help="also write every outcome here, as JSON lines")
    parser.add_argument("--spin-seconds", type=float, default=60.0)
    options = parser.parse_args()
    report = Report(options.report)
    Walk(report, options.engine, options.spin_seconds).run()
    return report.exit_code


sys.exit(main())
