"""What Kepler itself exports, in a real Prometheus: its dialect, and the energy of its pods."""

import json
import re
import time
from pathlib import Path

import pytest

from temper_core.console import EXIT_FINDINGS
from temper_plugin_power.measuring.measuring import measure
from temper_plugin_power.measuring.questions import NEW_CPU
from temper_plugin_power.workloads.energy import Dialect
from temper_prometheus.access import access
from temper_prometheus.client import Prometheus
from tests.power.power_series import a_pod, write_pods
from tests.power.test_measuring import classified, power
from tests.rightsizer.fleet_series import make_blocks, serving

SCRAPES = sorted((Path(__file__).parent / "kepler").glob("scrape-*.txt"))
EVERY_S = 60
"""Of the scrapes in the Prometheus. Kepler was asked every 5 seconds."""
SAMPLE = re.compile(r"^(\w+)\{(.*)\} (\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')


def samples(scrape):
    """Yield family, labels and value of each line of a scrape."""
    for line in scrape.read_text().splitlines():
        if found := SAMPLE.match(line):
            yield found[1], dict(LABEL.findall(found[2])), float(found[3])


def joules(scrape, pod, zone):
    """Return the energy of a running pod in a zone, None where it has none."""
    for family, labels, value in samples(scrape):
        if family == NEW_CPU and labels["pod_name"] == pod and labels["zone"] == zone:
            return value if labels["state"] == "running" else None
    return None


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """A real Prometheus that has scraped Kepler."""
    now = int(time.time())
    times = [now - EVERY_S * back for back in reversed(range(len(SCRAPES)))]
    lines = [
        f"{line} {at}"
        for at, scrape in zip(times, SCRAPES, strict=True)
        for line in scrape.read_text().splitlines()
        if not line.startswith("#")
    ]
    folder = tmp_path_factory.mktemp("kepler")
    make_blocks(folder, [*lines, "# EOF"])
    with serving(folder) as address:
        yield address, now


@pytest.fixture
def pods(tmp_path):
    made = [a_pod(name) for name in ("web", "cache")]
    for pod in made:
        pod["metadata"]["name"] = pod["metadata"]["name"].removesuffix("-0")
    return write_pods(tmp_path, made)


@pytest.mark.parametrize("pod", ["web", "cache"])
@pytest.mark.parametrize("zone", ["package", "dram"])
def test_the_power_of_a_pod_is_the_growth_of_its_zone(prometheus, pod, zone):
    address, now = prometheus
    first, last = (joules(scrape, pod, zone) for scrape in (SCRAPES[0], SCRAPES[-1]))

    with Prometheus(access(address)) as server:
        measured = measure(server, now, window_s=EVERY_S * len(SCRAPES))
    watts = getattr(measured.measures[f"shop/{pod}"], f"kepler_{zone}_rate")

    assert measured.dialect is Dialect.NEW
    assert watts == pytest.approx((last - first) / (EVERY_S * 3), rel=0.3)


def test_a_pod_that_ended_is_exported_as_terminated_and_has_no_power_later(prometheus):
    ended = {
        labels["pod_name"]
        for family, labels, _ in samples(SCRAPES[-1])
        if family == NEW_CPU and labels["state"] == "terminated"
    }
    address, now = prometheus

    with Prometheus(access(address)) as server:
        before = measure(server, now, window_s=EVERY_S * len(SCRAPES))
        after = measure(server, now + EVERY_S, window_s=EVERY_S * 3 - 1)

    assert ended == {"batch"}
    assert "shop/batch" in before.measures
    assert "shop/web" in after.measures
    assert "shop/batch" not in after.measures


def test_its_energy_says_of_no_pod_what_it_is_bound_by(prometheus, pods):
    address, _ = prometheus

    done = power("dialect", "--prometheus", address, "--pods", pods, "-o", "json")
    told = json.loads(done.stdout)
    evidence = {name: each["evidence"] for name, each in classified(address, pods).items()}

    assert (told["dialect"], told["podsWithEnergy"], done.return_value) == (
        "kepler-0.10",
        2,
        EXIT_FINDINGS,
    )
    assert told["unknownPods"] == ["shop/batch"]
    assert {each["dialect"] for each in evidence.values()} == {"kepler-0.10"}
    assert {each["energyBound"] for each in evidence.values()} == {"unknown"}
