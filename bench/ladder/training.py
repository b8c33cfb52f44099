"""Trains a profile for a real server from nothing, on the node of the ladder, by one command."""

import shlex
import subprocess
import time
from pathlib import Path

from attrs import frozen

from bench.ladder.loads import Server
from bench.ladder.node import SERVER, Node
from bench.ladder.pods import NAMESPACE
from bench.ladder.servers import RealServer
from bench.ladder.serving import Site, background, caller, serving

FOUND, NOTHING = 0, 1
"""Exit codes of ``temper train auto``."""
SEED = 1
"""Of every run of the benchmark. The points that judge the profile have other seeds."""
SETTLE_S = 10.0
"""The agent reads the pods, and the layers get their CPUs."""


class TrainingFailed(Exception):  # noqa: N818 - reads as the fact it reports
    """Raised when the command ended without a verdict, or the server cannot be trained."""


@frozen
class Training:
    """What is trained: a server of the ladder beside *level* busy threads of another pod.

    *options* are further ones of the command.
    """

    name: str
    server: RealServer
    level: int
    artifacts: Path
    options: tuple[str, ...] = ()


def train(training: Training, site: Site, node: Node, size: Server) -> str:
    """Train under the agent that runs. Return the profile, empty if no improvement was found."""
    if not training.server.measures:
        raise TrainingFailed(f"{training.name}: its client prints no metric")
    directory = site.places.directory / "server"
    time.sleep(SETTLE_S)
    with serving(site, training.server, directory), background(site.places, training.level):
        command = training_command(training, directory, node, size)
        code = subprocess.run(command, check=False).returncode
    if code not in (FOUND, NOTHING):
        raise TrainingFailed(f"temper train auto ended with {code}")
    profile = training.artifacts / training.name / "profile.toml"
    return profile.read_text() if code == FOUND else ""


def training_command(training: Training, directory: Path, node: Node, size: Server) -> list[str]:
    """Return the command of a training."""
    call = [*map(str, training.server.call(directory, size, SEED)), training.server.measures]
    options = {
        "--pod": f"{NAMESPACE}/{SERVER}",
        "--benchmark": shlex.join(caller(call)),
        "--metric": training.server.measures,
        "--artifacts": training.artifacts,
        "--workload": training.name,
        "--settings": node.files.settings,
    }
    words = [str(part) for pair in options.items() for part in pair]
    return [str(node.programs.temper), "train", "auto", *words, *training.options]
