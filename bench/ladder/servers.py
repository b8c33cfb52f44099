"""Real request servers as loads of the ladder. A new server is one entry of ``SERVERS``.

A level is the number of busy threads in the best-effort pod, as in the load ``weight``.
"""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import evolve, frozen

from bench.ladder.loads import Server

Command = Sequence[str | Path]
HISTOGRAM = re.compile(r"^ *([0-9.]+) \|\** +([0-9]+)$", re.MULTILINE)
MAXIMUM = re.compile(r"^ +max: +([0-9.]+)$", re.MULTILINE)
REDIS_KEYS = 20_000
CONNECTIONS = 4
POOL_PIPES = ("orders", "answers")
POOL_THREADS = ("3", "2")
"""Of ``tests/kernel/training/pool.c``: threads that make noise, and workers."""
NOBODY = 65534
"""PostgreSQL refuses to run as root."""
BACKEND = re.compile(r"postgres: .+ \[local\]")
"""The title of a process that serves one connection."""


@frozen
class Installed:
    """Where the servers are: programs or their folders, and data directories to copy."""

    redis: Path = Path("redis-server")
    pool: Path = Path("pool")
    mysql: Path = Path("mysql")
    mysql_data: Path = Path("mysql-data")
    postgresql: Path = Path("/usr/lib/postgresql/15/bin")
    postgresql_data: Path = Path("postgresql-data")


@frozen
class Task:
    """A thread of a server: its name, and whether it leads its process.

    ``is_child`` is true in a process that the server has started. ``title`` is the command line.
    """

    comm: str
    leads: bool
    is_child: bool = False
    title: str = ""


@frozen
class Answers:
    """What a client saw: latencies in ms from the intended arrival. None where it cannot tell."""

    latencies_ms: Sequence[float]
    unanswered: int | None = None
    client_late_ms: float | None = None


@frozen
class RealServer:
    """A program that serves requests, and a client with a clock of its own.

    ``serve`` starts the server with its files in a directory. ``ready`` is a command that fails
    until the server answers, and that may fill it. ``call`` is the client. It prints a line with
    ``begins`` before its first request, and ``answers`` reads all that it prints after that.
    ``is_serving`` tells whether requests wait for a thread. ``pack`` is the builtin profile for the
    program, empty if there is none. ``measures`` is the metric that the client prints if that is
    its last argument, empty if it cannot. Then no profile can be trained.
    """

    summary: str
    pack: str
    serve: Callable[[Installed, Path], Command]
    ready: Callable[[Path], Command]
    call: Callable[[Path, Server, int], Command]
    begins: str
    answers: Callable[[str], Answers]
    is_serving: Callable[[Task], bool]
    measures: str = ""


def _socket(directory: Path) -> Path:
    return directory / "socket"


def _redis(installed: Installed, directory: Path) -> Command:
    """Let Redis save every two seconds, its shortest interval, and write an append-only file."""
    return [
        *(installed.redis, "--port", "0", "--unixsocket", _socket(directory), "--dir", directory),
        *("--appendonly", "yes", "--save", "1 1", "--enable-debug-command", "yes"),
    ]


def _redis_with_backup(installed: Installed, directory: Path) -> Command:
    """Let two streams of gzip compress the snapshots beside Redis, as a sidecar of its pod does."""
    dump = shlex.quote(str(directory / "dump.rdb"))
    stream = f"(until test -s {dump}; do sleep 1; done; while cat {dump}; do :; done | gzip -9) "
    served = shlex.join(map(str, _redis(installed, directory)))
    return ["sh", "-c", f"{stream} >/dev/null & {stream} >/dev/null & exec {served}"]


def _pool(installed: Installed, directory: Path) -> Command:
    """Give the pool its orders by one named pipe, and read its answers from another."""
    for name in POOL_PIPES:
        os.mkfifo(directory / name)
    orders, answers = (shlex.quote(str(directory / name)) for name in POOL_PIPES)
    program = shlex.join([str(installed.pool), *POOL_THREADS])
    return ["sh", "-c", f"exec {program} <>{orders} 1<>{answers}"]


def _find_pool(directory: Path) -> Command:
    return ["test", "-p", directory / POOL_PIPES[-1]]


def _call_pool(directory: Path, size: Server, _seed: int) -> Command:
    program = (sys.executable, "-m", "bench.ladder.pool_client")
    return [*program, *(directory / name for name in POOL_PIPES), str(size.seconds)]


def _fill_redis(directory: Path) -> Command:
    cli = ("redis-cli", "-s", _socket(directory))
    return [*cli, "DEBUG", "POPULATE", str(REDIS_KEYS), "key", "100"]


def _call_redis(directory: Path, size: Server, seed: int) -> Command:
    program = (sys.executable, "-m", "bench.ladder.redis_client")
    sizes = (str(size.seconds), str(size.period_us), str(REDIS_KEYS), str(seed))
    return [*program, _socket(directory), *sizes]


def redis_answers(printed: str) -> Answers:
    """Read the line that ``redis_client`` prints."""
    seen = json.loads(printed)
    latencies = [each / 1e6 for each in seen["latencies_ns"]]
    return Answers(latencies, seen["unanswered"], seen["client_late_ns"] / 1e6)


def _mysql(installed: Installed, directory: Path) -> Command:
    shutil.copytree(installed.mysql_data, directory / "data")
    return [
        *(installed.mysql / "bin/mysqld", "--no-defaults", "--user=root"),
        *(f"--basedir={installed.mysql}", f"--datadir={directory / 'data'}"),
        *(f"--socket={_socket(directory)}", "--skip-networking", "--mysqlx=OFF"),
        *("--disable-log-bin", "--innodb-use-native-aio=OFF", "--innodb-buffer-pool-size=16M"),
    ]


def _ask_mysql(directory: Path) -> Command:
    return [
        "mariadb-admin",
        "--no-defaults",
        f"--socket={_socket(directory)}",
        "-u",
        "root",
        "ping",
    ]


def _call_mysql(directory: Path, size: Server, seed: int) -> Command:
    socket = _socket(directory)
    return _sysbench(size, seed, "mysql", "--mysql-user=root", f"--mysql-socket={socket}")


def _sysbench(size: Server, seed: int, *driver: str) -> Command:
    """Update one row per request. Each commits, and so waits for the server's log."""
    return [
        *("sysbench", "oltp_update_index", "--tables=2", "--table-size=2000"),
        *(f"--db-driver={driver[0]}", *driver[1:]),
        *(f"--threads={CONNECTIONS}", f"--rand-seed={seed}", "--histogram"),
        *(f"--time={size.seconds:.0f}", f"--rate={1e6 / size.period_us:.0f}", "run"),
    ]


def sysbench_answers(printed: str) -> Answers:
    """Read sysbench's histogram. With ``--rate`` a latency includes the time in its queue.

    A bucket is 2 % wide or less. The longest request is the one that sysbench tells.
    """
    buckets = HISTOGRAM.findall(printed)
    latencies = [float(value) for value, count in buckets for _ in range(int(count))]
    longest = MAXIMUM.search(printed)
    if latencies and longest:
        latencies[-1] = float(longest[1])
    return Answers(latencies)


def _postgresql(installed: Installed, directory: Path) -> Command:
    """Let autovacuum look every second, its shortest interval, and take tables of few changes."""
    data = shutil.copytree(installed.postgresql_data, directory / "data")
    for path in (directory, data, *data.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    options = {
        "listen_addresses": "",
        "unix_socket_directories": str(directory),
        "shared_buffers": "16MB",
        "autovacuum_naptime": "1",
        "autovacuum_vacuum_threshold": "50",
        "autovacuum_vacuum_scale_factor": "0",
    }
    return [
        *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
        *(installed.postgresql / "postgres", "-D", data),
        *(part for key, value in options.items() for part in ("-c", f"{key}={value}")),
    ]


def _ask_postgresql(directory: Path) -> Command:
    return ["pg_isready", "-h", directory, "-U", "bench", "-d", "postgres"]


def _call_postgresql(directory: Path, size: Server, seed: int) -> Command:
    user = ("--pgsql-user=bench", "--pgsql-db=postgres")
    return _sysbench(size, seed, "pgsql", *user, f"--pgsql-host={directory}")


_REDIS = RealServer(
    "Redis with a snapshot every two seconds, beside busy threads in a best-effort pod",
    pack="redis",
    serve=_redis,
    ready=_fill_redis,
    call=_call_redis,
    begins="begin",
    answers=redis_answers,
    is_serving=lambda task: not task.is_child and (task.leads or task.comm.startswith("io_thd_")),
    measures="mean",
)

SERVERS = {
    "redis": _REDIS,
    "redis-backup": evolve(
        _REDIS,
        summary="the same, and two streams of gzip that compress the snapshots in Redis' own pod",
        pack="",
        serve=_redis_with_backup,
    ),
    "pool": RealServer(
        "a pool of two workers with three computing threads of its own, beside busy threads in a "
        "best-effort pod",
        pack="",
        serve=_pool,
        ready=_find_pool,
        call=_call_pool,
        begins="begin",
        answers=redis_answers,
        is_serving=lambda task: task.comm.startswith(("front", "worker-")),
        measures="mean",
    ),
    "mysql": RealServer(
        "MySQL with updates of single rows, beside busy threads in a best-effort pod",
        pack="mysql-innodb",
        serve=_mysql,
        ready=_ask_mysql,
        call=_call_mysql,
        begins="Threads started!",
        answers=sysbench_answers,
        is_serving=lambda task: task.comm.startswith("connection"),
    ),
    "postgresql": RealServer(
        "PostgreSQL with updates of single rows, beside busy threads in a best-effort pod",
        pack="postgresql",
        serve=_postgresql,
        ready=_ask_postgresql,
        call=_call_postgresql,
        begins="Threads started!",
        answers=sysbench_answers,
        is_serving=lambda task: task.is_child and bool(BACKEND.match(task.title)),
    ),
}
