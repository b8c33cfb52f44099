"""Climbs the ladder as root: ``python -m bench.ladder --load PATH --engine PATH --records PATH``.

Each round goes through all arms, each time from another arm on, so that a drift of the machine
falls on all of them. The seeds are shared out among the rounds. Each arm has an agent of its own.
Each point appends one JSON line to the records. ``bench/ladder/run`` boots a guest in virtual time
for it. Without a guest it measures the machine itself.
"""

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

from attrs import asdict, evolve, fields

from bench.ladder.agent import Json, NotInTime
from bench.ladder.arms import ARMS, TIERS, TRAINED, Arm, with_trained
from bench.ladder.capturing import CAPTURES, captured
from bench.ladder.kernel import lacks
from bench.ladder.loads import LOADS, Server
from bench.ladder.node import Node, Programs, WrongPlan
from bench.ladder.pods import Cgroups
from bench.ladder.points import LoadFailed, measure
from bench.ladder.rows import FORMAT, UNCAPTURED
from bench.ladder.servers import SERVERS, Installed
from bench.ladder.serving import Site, measure_server
from bench.ladder.training import Training, TrainingFailed, train

DEFAULT_ARMS = ("stock", "tiers", "lend", "profile", "latency", "boost")
CANNOT = 3

Point = tuple[int, tuple[str, int]]
"""A seed, and a load with its level."""


def rotated(arms: Sequence[str], turn: int) -> list[str]:
    """Return the arms, from another one on at each turn."""
    first = turn % len(arms)
    return [*arms[first:], *arms[:first]]


def machine() -> Json:
    """Return what the records say of the machine."""
    return {
        "format": FORMAT,
        "kernel": os.uname().release,
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip()[:8],
        "cpus": os.cpu_count(),
    }


def climb(node: Node, options: argparse.Namespace) -> Iterator[Json]:
    """Measure all points. Yield their records."""
    server = Server(options.seconds, options.period_us, options.turns, options.servers)
    clock = "virtual" if options.virtual_time else "real"
    arms = with_trained(options.trained.read_text() if options.trained else "")
    site = Site(node.places, options.installed)
    for turn in range(options.rounds):
        points = list(product(options.seeds[turn :: options.rounds], options.points))
        for name in rotated(options.arms, turn + options.first):
            if name not in arms or not (of_arm := measured_under(arms[name], points)):
                tell(f"{name}: nothing to measure")
                continue
            with node.under(arms[name]) as agent:
                if options.train and (turn, name) == (0, TIERS):
                    arms = with_trained(_trained(site, node, options, server))
                for limit, own in by_limit(of_arm).items():
                    node.limit(arms[name], limit)
                    time.sleep(options.settle_s)  # pods are read, and layers sized
                    told = {"arm": name, **node.told(agent, arms[name])}
                    tell(f"{name}: plan {told['plan'] or 'none'}, {agent.layers()}")
                    made = {**machine(), "clock": clock, "server": asdict(server), **told}
                    for (seed, (load, level)), kind in product(own, options.captures):
                        place = {"load": load, "level": level, "seed": seed}
                        pod = node.places.server
                        with captured(agent, node.files.settings, kind, pod) as capture:
                            if load in SERVERS:
                                record = measure_server(site, agent, server, SERVERS[load], place)
                            else:
                                record = measure(node.places, agent, server, LOADS[load], place)
                        yield {**made, **capture, **record}


def _trained(site: Site, node: Node, options: argparse.Namespace, server: Server) -> str:
    """Train under the agent that runs. Return the profile, empty if none is better."""
    (name, level), *_ = options.train
    words = shlex.split(options.training_options)
    training = Training(name, SERVERS[name], level, options.artifacts, tuple(words))
    size = evolve(server, seconds=options.training_seconds)
    profile = train(training, site, node, size)
    tell(f"{name}: {'a profile was trained' if profile else 'no improvement found'}")
    return profile


def measured_under(arm: Arm, points: Iterable[Point]) -> list[Point]:
    """Return the points of an arm. One with a builtin profile has those of its server alone."""
    return [
        (seed, (load, level))
        for seed, (load, level) in points
        if not arm.pack or (load in SERVERS and SERVERS[load].pack == arm.pack)
    ]


def by_limit(points: Iterable[Point]) -> dict[int, list[Point]]:
    """Return the points by the limit of the server's pod, of one limit together."""
    limits: dict[int, list[Point]] = {}
    for seed, (load, level) in points:
        limit = LOADS[load].limit if load in LOADS else 0
        limits.setdefault(limit, []).append((seed, (load, level)))
    return limits


def tell(line: str) -> None:
    """Print a line of progress."""
    print(f"# {time.monotonic():.0f} {line}", file=sys.stderr, flush=True)


def main() -> int:
    """Climb the ladder. Return the exit code: 0, or 3 where the machine cannot."""
    options = parser().parse_args()
    options.installed = Installed(
        **{each.name: getattr(options, each.name) for each in fields(Installed)}
    )
    needs_engine = bool(options.train) or any(name != "stock" for name in options.arms)
    missing = list(lacks(options.cgroup_root, engine=needs_engine))
    for line in missing:
        print(f"ladder: this machine lacks {line}", file=sys.stderr)
    if missing:
        return CANNOT
    cgroups = Cgroups(options.cgroup_root)
    try:
        programs = Programs(options.load, options.engine, options.temper)
        node = Node.made(cgroups, programs, options.directory, options.request)
        with options.records.open("a") as records:
            for record in climb(node, options):
                records.write(json.dumps(record) + "\n")
                records.flush()
                tell(outline(record))
    except (NotInTime, LoadFailed, WrongPlan, TrainingFailed) as problem:
        print(f"ladder: {problem}", file=sys.stderr)
        return 1
    finally:
        cgroups.remove()
    return 0


def outline(record: Json) -> str:
    """Return a record in one line."""
    total, server = record["total_ms"], record["threads"]["server"]
    return (
        f"{record['load']} {record['level']} {record['arm']} seed {record['seed']}: "
        f"p50 {total.get('p50')}, p99 {total.get('p99')}, max {total.get('max')} ms, "
        f"delay/run {server['delay_ratio']:.4f}, outside {server['outside']}, "
        f"idle {record['idle']['cpu']:.2f}, {record['scheduler']}"
    )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m bench.ladder", description=__doc__)
    made.add_argument("--load", type=Path, required=True, help="the program of load.c")
    made.add_argument("--engine", type=Path, required=True, help="the scx_layered to run")
    made.add_argument("--records", type=Path, required=True, help="file to append records to")
    made.add_argument("--temper", type=Path, default=Path(sys.executable).parent / "temper")
    made.add_argument("--cgroup-root", type=Path, default=Path("/sys/fs/cgroup"))
    made.add_argument("--directory", type=Path, default=Path("/run/ladder"), help="for its files")
    made.add_argument("--arms", type=_arms, default=list(DEFAULT_ARMS))
    made.add_argument(
        "--points",
        type=_points,
        default=_points("weight:0,4,8 noise:8"),
        help="loads and their levels, such as 'weight:0,4,8 noise:4,8'",
    )
    made.add_argument(
        "--captures",
        type=_captures,
        default=[UNCAPTURED],
        help="at each point, such as none,node,pod",
    )
    made.add_argument("--trained", type=Path, help=f"the profile of the arm {TRAINED}")
    made.add_argument(
        "--train",
        type=_points,
        default=[],
        metavar="SERVER:LEVEL",
        help=f"train the profile of the arm {TRAINED} from nothing, before {TIERS} is measured",
    )
    made.add_argument(
        "--training-seconds", type=float, default=2.0, help="of requests per run of its benchmark"
    )
    made.add_argument("--artifacts", type=Path, default=Path("training-artifacts"))
    made.add_argument(
        "--training-options", default="", help="of temper train auto, such as '--trials 4'"
    )
    made.add_argument("--seeds", type=_numbers, default=[1, 2, 3])
    made.add_argument("--seconds", type=float, default=4.0, help="of requests per point")
    made.add_argument("--period-us", type=int, default=8000, help="mean time between requests")
    made.add_argument("--turns", type=int, default=125_000, help="the work of a request")
    made.add_argument("--servers", type=int, default=1, help="server threads")
    made.add_argument("--request", type=int, default=1500, help="of the server's pod, millicores")
    made.add_argument("--settle-s", type=float, default=10.0, help="after the agent enforces")
    made.add_argument("--rounds", type=int, default=1, help="visits of each arm")
    made.add_argument(
        "--first", type=int, default=0, help="the arm that the first round begins with"
    )
    made.add_argument("--redis", type=Path, default=Installed().redis, help="redis-server")
    made.add_argument("--pool", type=Path, default=Installed().pool, help="the program of pool.c")
    made.add_argument("--mysql", type=Path, default=Installed().mysql, help="MySQL's folder")
    made.add_argument(
        "--mysql-data", type=Path, default=Installed().mysql_data, help="with sysbench's tables"
    )
    made.add_argument(
        "--postgresql", type=Path, default=Installed().postgresql, help="folder of its programs"
    )
    made.add_argument(
        "--postgresql-data",
        type=Path,
        default=Installed().postgresql_data,
        help="with sysbench's tables",
    )
    made.add_argument("--virtual-time", action="store_true", help="the clock counts instructions")
    return made


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def _arms(text: str) -> list[str]:
    return [_known(name, [*ARMS, TRAINED]) for name in text.split(",")]


def _captures(text: str) -> list[str]:
    return [_known(name, CAPTURES) for name in text.split(",")]


def _points(text: str) -> list[tuple[str, int]]:
    points = []
    for part in text.split():
        name, _, levels = part.partition(":")
        points += [(_known(name, [*LOADS, *SERVERS]), level) for level in _numbers(levels)]
    return points


def _known(name: str, names: Collection[str]) -> str:
    if name not in names:
        raise argparse.ArgumentTypeError(f"{name}: none of {', '.join(names)}")
    return name


if __name__ == "__main__":
    sys.exit(main())
