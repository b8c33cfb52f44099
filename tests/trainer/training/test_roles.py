"""Real programs with known thread roles are observed and classified."""

import json
import re
import time
from collections import defaultdict

import pytest
from click.testing import CliRunner

from temper_core.cli.profiles import command as profiles
from temper_plugin_trainer.commands.train import command
from temper_plugin_trainer.training.classes import ThreadClass
from tests.trainer.training.roles import all_running, build, needs_gcc

pytestmark = needs_gcc

COMPUTE, LATENCY = ThreadClass.SYNC_COMPUTE, ThreadClass.LATENCY_CRITICAL
CHAIN, SPORADIC = ThreadClass.WAKE_CHAIN, ThreadClass.SPORADIC
SECONDS = 8
BATCH = 10
"""The niceness of programs that compute, so that the others keep their rates."""

PROGRAMS = {
    "pool": (["worker-0=compute", "worker-1=compute"], BATCH),
    "rpcchain": (["origin=origin", "stage-1=stage", "stage-2=stage"], 0),
    "logd": (["req-0=produce", "req-1=produce", "logger=consume"], 0),
    "gcburst": (["mutator=poll", "gc-0=burst"], 0),
    "ticker": (["tick=timer", "scan=poll"], 0),
    "spinner": (["spin=spin"], BATCH),
    "poller": (["poll-0=poll"], 0),
    "tcpserve": (["conn-0=server"], 0),
    "callpair": (["ask=ask", "answer=stage"], BATCH),
    "busyidle": (["idle-monitor=spin"], BATCH),
    "falsegc": (["main-loop=origin", "gc-thread=stage"], 0),
    "falselog": (["logger-0=compute"], BATCH),
    "falsecalc": (["compute-0=poll", "render=timer"], 0),
    "mixed": (["gc=burst", "worker=compute"], BATCH),
}
CLASSES = {
    "spin": COMPUTE,
    "compute": COMPUTE,
    "burst": SPORADIC,
    "timer": SPORADIC,
    "poll": LATENCY,
    "origin": LATENCY,
    "produce": LATENCY,
    "server": LATENCY,
    "stage": CHAIN,
    "ask": CHAIN,
    "consume": CHAIN,
}
"""The class of each role of ``roles.c``."""
ROLES = {
    (program, thread.partition("=")[0]): CLASSES[thread.partition("=")[2]]
    for program, (threads, _) in PROGRAMS.items()
    for thread in threads
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A bundle of all programs, which run side by side and are observed at once."""
    folder = tmp_path_factory.mktemp("roles")
    bundle = str(folder / "bundle.gz")
    with all_running(build(folder), PROGRAMS, clients=["tcpserve"]) as pids:
        time.sleep(1)
        observed = [word for pid in pids for word in ("--pid", str(pid))]
        words = ["observe", *observed, "--seconds", str(SECONDS), "--no-agent", "-o", bundle]
        assert CliRunner().invoke(command, words).exit_code in (0, 1)
    return bundle


@pytest.fixture(scope="module")
def analysis(bundle):
    return json.loads(CliRunner().invoke(command, ["analyze", bundle, "-o", "json"]).stdout)


def times(analysis):
    """Yield program, share of the group's threads, CPUs and whether the class is right."""
    for group in analysis["groups"]:
        kinds = [ROLES.get((group["process"], name), SPORADIC) for name in group["names"]]
        for kind in kinds:
            yield group["process"], group["cpus"] / len(kinds), kind == group["class"]


def test_nearly_all_cpu_time_is_classified_right(analysis):
    right, total = 0.0, 0.0
    for _, cpus, is_right in times(analysis):
        total += cpus
        right += cpus if is_right else 0.0

    assert right / total >= 0.95, analysis["groups"]


def test_nearly_all_cpu_time_of_the_programs_counts_alike_and_is_classified_right(analysis):
    right, total = defaultdict(float), defaultdict(float)
    for program, cpus, is_right in times(analysis):
        total[program] += cpus
        right[program] += cpus if is_right else 0.0
    shares = {program: right[program] / total[program] for program in PROGRAMS}

    assert sum(shares.values()) / len(shares) >= 0.95, shares


@pytest.mark.parametrize(
    ("label", "word"),
    [
        ("busyidle/idle-monitor", "'idle'"),
        ("falselog/logger-#", "'logger'"),
        ("falsegc/gc-thread", "'gc'"),
        ("falsecalc/compute-#", "'compute'"),
    ],
)
def test_a_name_that_the_behaviour_contradicts_is_told(label, word, analysis):
    (remark,) = [line for line in analysis["remarks"] if f" {label} " in line]

    assert remark.startswith("misleading name:")
    assert word in remark


def test_names_that_fit_the_behaviour_are_not_told(analysis):
    misleading = [line for line in analysis["remarks"] if line.startswith("misleading name")]

    assert len(misleading) == 4


def test_a_profile_of_the_programs_covers_nearly_all_cpu_time_and_has_no_mistake(bundle, tmp_path):
    path = tmp_path / "roles.toml"

    made = CliRunner().invoke(command, ["synthesize", bundle, "-o", str(path)])
    lint = CliRunner().invoke(profiles, ["lint", str(path)])

    covered = float(made.stderr.split()[1])
    assert covered >= 90, made.stderr
    assert "error" not in lint.output
    assert re.findall(r"\[([a-z_]+)\]", lint.output) == ["no_evidence"]
