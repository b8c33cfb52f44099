"""``python -m deploy.monitoring``: write the dashboards. With ``--check`` only list stale ones."""

import argparse
import sys

from deploy.monitoring.writing import stale, write


def main() -> int:
    """Write or check the dashboards. Return 1 if a checked one is stale."""
    parser = argparse.ArgumentParser(prog="python -m deploy.monitoring", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if stale")
    if not parser.parse_args().check:
        write()
        return 0
    names = list(stale())
    for name in names:
        sys.stderr.write(f"{name} is stale: run python -m deploy.monitoring\n")
    return 1 if names else 0


if __name__ == "__main__":
    raise SystemExit(main())
