"""A simulated surface of gains over variants of a profile, with noise that was measured."""

import json
import math
import random
import tomllib
from functools import cache
from pathlib import Path

from temper_plugin_trainer.refining.climb import Plan, Reading, climb
from temper_plugin_trainer.refining.variants import started, tiers_only, treatment_of

PROFILE = """
schema_version = 1
id = "shop"
[[thread_groups]]
name = "compute"
match = [{ comm_prefix = "worker-" }]
treatment = "boost"
[[thread_groups]]
name = "io"
match = [{ comm_prefix = "io-" }]
[[thread_groups]]
name = "rest"
"""
TABLE = tomllib.loads(PROFILE)
GAINS = {
    ("compute", "boost"): 0.04,
    ("compute", "latency"): 0.10,
    ("compute", "exclusive"): 0.02,
    ("compute", "yield"): -0.20,
    ("io", "boost"): 0.05,
    ("io", "latency"): 0.01,
    ("io", "yield"): -0.05,
    ("rest", "yield"): 0.06,
    ("rest", "boost"): -0.04,
    ("rest", "latency"): -0.06,
}
"""Logarithms of ratios. The optimum is latency, boost and yield."""
OPTIMUM = 0.21
REGRESSIONS = {key: -abs(gain) for key, gain in GAINS.items()}
NONE = dict.fromkeys(GAINS, 0.0)


@cache
def measured_noise(name):
    """Return logarithms of real results, in the order of their measurement, around 0."""
    document = json.loads(Path(__file__).with_name("measured_noise.json").read_text())
    values = document[name]["values"]
    logs = [math.log(value) for value in values]
    middle = sorted(logs)[len(logs) // 2]
    return [log - middle for log in logs]


def gain_of(variant, gains):
    return sum(gains.get((group["name"], treatment_of(group)), 0.0) for group in variant.groups)


def plan_of(seed, **more):
    return Plan(tiers_only(TABLE), started(TABLE), seed=seed, **more)


def simulated(seed, gains, noise_of="digest", **more):
    """Climb on a surface. The noise is a stretch of what was measured, from a random place on."""
    noise, at = measured_noise(noise_of), random.Random(seed).randrange(10_000)
    steps = climb(plan_of(seed, **more))
    known = {}
    try:
        visit = next(steps)
        while True:
            key = visit.variant.key
            if key not in known:
                known[key] = gain_of(visit.variant, gains)
            error = sum(noise[(at + k) % len(noise)] for k in range(visit.runs)) / visit.runs
            at += visit.runs
            visit = steps.send(Reading(math.exp(error - known[key])))
    except StopIteration as end:
        return end.value
