"""Runs in the guest as root: ``python tests/kernel/faults --group NAME --engine PATH``."""

import argparse
import json
import sys
from pathlib import Path

import loading_on_machines
import loading_with_agents
import while_ejected
import while_enforcing
import while_loading
import while_steering
import while_swapping

MODULES = (
    while_loading,
    loading_on_machines,
    loading_with_agents,
    while_enforcing,
    while_steering,
    while_swapping,
    while_ejected,
)
GROUPS = {module.GROUP.name: module.GROUP for module in MODULES}


def main() -> None:
    """Play a group of faults; exit with 1 where one was not as claimed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print every fault as a line of JSON")
    parser.add_argument("--group", choices=GROUPS)
    parser.add_argument("--engine", type=Path, help="the scx_layered to run")
    parser.add_argument("--report", type=Path, help="also write every outcome here")
    parser.add_argument("faults", nargs="*", help="only these")
    options = parser.parse_args()
    if options.list:
        list_faults()
        return
    from playing import play  # noqa: PLC0415 - only the guest has what it looks for

    failed = play(GROUPS[options.group], options.faults, options.engine, options.report)
    sys.exit(1 if failed else 0)


def list_faults() -> None:
    """Print every fault, except for what it does."""
    for group in GROUPS.values():
        for fault in group:
            told = {
                "group": group.name,
                "cpus": group.cpus,
                "id": fault.id,
                "claim": fault.claim,
                "takes_minutes": fault.takes_minutes,
            }
            sys.stdout.write(json.dumps(told) + "\n")


main()
