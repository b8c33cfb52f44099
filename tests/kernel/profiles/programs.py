"""The programs in the pods: real ones, and a neighbour whose names are those of the database."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from agent import DIRECTORY
from kernel import NotInTime, wait_until

CHECKOUT = Path(__file__).parents[3]
TRAINING = CHECKOUT / "scripts/record-servers/pytorch-training/train.py"
SOCKET = DIRECTORY / "mysql.socket"
DATA = DIRECTORY / "mysql"
MANY_CONNECTIONS, ONE_PER_CORE = 6, 2
READS, READS_AND_WRITES = "oltp_read_only", "oltp_read_write"
PICTURE_SIDE = 4
# Emulated, a server that is there in a second takes half a minute; and it shares the one CPU.
STARTED_S = 400.0
NEIGHBOUR = """
import ctypes, pathlib, threading, time
def work():
    ctypes.CDLL(None).prctl(15, b"connection-1", 0, 0, 0)
    while True:
        until = time.thread_time() + 0.005
        while time.thread_time() < until: pass
        time.sleep(0.1)
pathlib.Path("/proc/self/comm").write_text("mysqld_exporter")
threading.Thread(target=work).start()
"""


@dataclass(frozen=True)
class Installed:
    """Where the programs are: the server and its data, and the Python that has PyTorch."""

    mysql: Path
    tables: Path
    python: Path


def server(installed: Installed) -> list[str | Path]:
    """Return the command of a MySQL server with a copy of the tables in memory."""
    shutil.copytree(installed.tables, DATA)
    return [
        installed.mysql / "bin/mysqld",
        "--no-defaults",
        "--user=root",
        f"--basedir={installed.mysql}",
        f"--datadir={DATA}",
        f"--socket={SOCKET}",
        "--skip-networking",
        "--mysqlx=OFF",
        "--disable-log-bin",
        "--innodb-use-native-aio=OFF",
        "--innodb-buffer-pool-size=16M",
    ]


def clients(connections: int, mix: str) -> list[str | Path]:
    """Return the command of sysbench with a mix of statements, for ever."""
    return [
        "sysbench",
        mix,
        "--db-driver=mysql",
        f"--mysql-socket={SOCKET}",
        "--mysql-user=root",
        "--tables=2",
        "--table-size=2000",
        f"--threads={connections}",
        "--time=0",
        "run",
    ]


def trainer(installed: Installed) -> list[str | Path]:
    """Return the command of a training with loader workers; it says ``step`` after each step."""
    environment = ["/usr/bin/env", "OMP_NUM_THREADS=1"]
    return [*environment, installed.python, TRAINING, str(PICTURE_SIDE)]


def answered() -> int:
    """Return how many statements the server has answered so far; raise NotInTime if it is mute."""
    status = ["mariadb", "--no-defaults", f"--socket={SOCKET}", "-u", "root", "-BN"]
    asked = subprocess.run(
        [*status, "-e", "SHOW GLOBAL STATUS LIKE 'Questions'"],
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode:
        raise NotInTime(f"the server does not answer: {asked.stderr.strip()}")
    return int(asked.stdout.split()[-1])


def wait_for_line(log: Path, line: str) -> None:
    """Wait until a program has written that; raise NotInTime with the last that it has."""
    try:
        wait_until(line, lambda: log.exists() and line in log.read_text(), STARTED_S)
    except NotInTime as missed:
        said = log.read_text() if log.exists() else ""
        raise NotInTime(f"{missed}; {log.name} ends with: {json.dumps(said[-800:])}") from None
