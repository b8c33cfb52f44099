"""Where threads are by the engine's own record, told by what they are called."""

from collections import Counter
from collections.abc import Callable

from profiled import Node, Rows

CONNECTIONS = "mysql-innodb.connections.critical"
TIER, REST, OWN = "critical", "open", "normal"
FEEDERS = OWN
"""Threads for latency stay in the layer of their tier."""

LOG = ("ib_log_writer", "ib_log_flush", "ib_log_wr_notif", "ib_log_fl_notif")
Named = Callable[[str], bool]


def is_connection(name: str) -> bool:
    """Whether MySQL calls the thread of a connection so, or one that commits wait for."""
    return name == "connection" or name.startswith(LOG)


def is_innodb(name: str) -> bool:
    """Whether MySQL calls a thread of InnoDB so."""
    return name.startswith("ib_") and not is_connection(name)


def is_main(name: str) -> bool:
    """Whether it is MySQL's main thread, which accepts connections."""
    return name == "mysqld"


def is_worker(name: str) -> bool:
    """Whether PyTorch calls a loader's worker process so."""
    return name == "pt_data_worker"


def is_any(_name: str) -> bool:
    """Whether it is called anything."""
    return True


def rows_of(node: Node, program: str, named: Named = is_any) -> Rows:
    """Return the threads in a program's container that are called so."""
    return [row for row in node.threads(program) if named(row["comm"])]


def faults(rows: Rows, layer: str) -> list[str]:
    """Name the threads that are not in that layer, or of which nobody knows where they are."""
    return [
        f"{row['comm']} {row['tid']} in {row['layer'] or 'nobody knows which'}"
        for row in rows
        if not (row["layer_is_known"] and row["layer"] == layer)
    ]


def told(rows: Rows) -> str:
    """Say how many threads are in which layer."""
    counted = Counter((row["comm"], row["layer"] or "-") for row in rows)
    return ", ".join(f"{count} {name} in {layer}" for (name, layer), count in counted.items())
