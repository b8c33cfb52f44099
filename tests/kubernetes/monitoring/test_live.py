"""Every query of every dashboard and alert, put to a real Prometheus that scrapes a real agent."""

import os
import time
from collections import defaultdict

import httpx2
import pytest

from temper_core.metrics.families import FAMILIES
from temper_plugin_dashboard.fleet.families import FAMILIES as PAGE
from tests.kubernetes.monitoring.boards import asked
from tests.kubernetes.monitoring.everything import Eventful
from tests.kubernetes.monitoring.live import NODE, Scene
from tests.prometheus import program, promtool

LONG_ENOUGH_S = 20
EVENTFUL = "worker-4"
NEEDS = {
    "a running engine": {
        "fleet / Starts of the engine by cause",
        "fleet / Most changed nodes",
        "node / Starts by cause",
        "node / CPUs owned",
        "node / CPUs used",
        "node / Use of a layer's own CPUs",
        "node / Threads",
        "node / Scheduled outside the fence",
        "node / Demoted",
        "node / Layers now",
        "node / By layer: 1 % wait longer",
    },
    "something that goes wrong": {
        "fleet / Broken promises by invariant",
        "fleet / Longest broken",
        "fleet / Ejections, and changes that failed",
        "fleet / Profiles that cannot be loaded, or whose evidence expired",
        "node / Reason for safe mode",
        "node / Broken promises",
        "node / Promises are broken for",
        "node / Ejections, and changes that failed",
    },
    "an instrument with helpers and state": {
        "node / Memory of helper processes",
        "node / CPU time of helper processes",
        "node / State directories",
    },
    "packages with RAPL, or GPUs": {
        "node / Power",
        "node / Package power by share of CPU time",
        "node / Power limits",
        "node / Power actions",
    },
    "a thread that uses a quarter of a CPU": {"pod / Use of the busiest thread"},
    "an API server": {
        "fleet / API server watched",
        "fleet / Writes to the API server",
        "fleet / Lists, watches that ended, unreadable objects",
        "node / API server watched",
        "node / Requests to the API server",
    },
    "the overcommit webhook": {
        "fleet / Admissions by outcome",
        "fleet / CPU requests lowered in an hour by",
        "fleet / Time of an admission",
        "fleet / Certificates are valid for",
        "fleet / New certificates, and failed checks",
    },
    "the placement service": {
        "fleet / Requests of the scheduler",
        "fleet / Time of an answer",
        "fleet / Nodes scored, by rule",
        "fleet / Known",
        "fleet / Watches that are up, and lists",
    },
    "the page of a cluster": {
        f"fleet / {panel.title}" for family in PAGE for panel in family.panels
    },
    "cgroup v2 with the CPU and memory controllers": {"pod / Memory", "pod / Quota"},
}
"""Panels that may be empty where an agent only observes, and what they need to have data."""


def critical(scene):
    """Ask for the critical workload."""
    return f'temper_pod_info{{pod="{scene.pods["critical"]}"}}'


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    program("prometheus")
    if os.geteuid():
        pytest.skip("needs root: workloads get cgroups of their own")
    scene = Scene(tmp_path_factory.mktemp("live"))
    yield scene
    scene.stop()


@pytest.fixture(scope="module")
def eventful():
    """What a node would tell of whose engine runs, and on which things go wrong."""
    eventful = Eventful()
    yield eventful
    eventful.stop()


@pytest.fixture(scope="module")
def prometheus(scene, eventful, helm, rules):
    """A Prometheus that has watched for long enough, by the chart's own ServiceMonitor."""
    monitor = helm.render("--set", "serviceMonitor.enabled=true").get(
        "ServiceMonitor", "temper-agent"
    )
    scene.agent()
    others = {EVENTFUL: eventful.port}
    scene.workload("low")
    scene.workload("critical")
    prometheus = scene.prometheus(monitor["spec"]["endpoints"][0], rules.groups, others)
    scene.until(prometheus.is_ready, "Prometheus")
    scene.until(lambda: prometheus.ask(critical(scene)), "pods")
    scene.until(lambda: prometheus.ask("temper_node_wait_seconds_count"), "waits")
    time.sleep(LONG_ENOUGH_S)
    return prometheus


@pytest.fixture(scope="module")
def eventful_values(scene, prometheus):
    scene.until(
        lambda: prometheus.ask(f'temper_pod_info{{instance="{EVENTFUL}"}}'), "the made-up node"
    )
    chosen = {"instance": EVENTFUL, "namespace": "shop", "pod": "web"}
    return {"cluster": ".*", "tier": ".*", **chosen}


@pytest.fixture(scope="module")
def values(scene, prometheus):
    """What is chosen above the dashboards."""
    info = prometheus.ask(critical(scene))[0]["metric"]
    return {
        "cluster": ".*",
        "tier": ".*",
        "instance": info["instance"],
        "namespace": info["namespace"],
        "pod": info["pod"],
    }


def test_series_are_of_the_node_and_of_its_pods(scene, prometheus):
    (mode,) = prometheus.ask(f'temper_mode{{mode="safe_mode", instance="{NODE}"}}')
    (pod,) = prometheus.ask(critical(scene))

    assert mode["metric"] == {
        "__name__": "temper_mode",
        "mode": "safe_mode",
        "instance": NODE,
        "node": NODE,
        "job": "temper-agent",
        "track": "main",
    }
    assert pod["metric"]["instance"] == NODE
    assert pod["metric"]["namespace"] != "temper"


def test_every_panel_has_data_where_everything_happens(prometheus, eventful_values):
    empty = {each.name for each in asked() if not prometheus.ask(each.with_values(eventful_values))}

    assert empty == set()


def test_every_panel_has_data_or_says_what_it_needs(prometheus, values):
    found = defaultdict(bool)
    for each in asked():
        found[each.name, each.number] |= bool(prometheus.ask(each.with_values(values)))

    empty = {name for (name, _), has_data in found.items() if not has_data}

    may_be_empty = set().union(*NEEDS.values())
    assert sorted(empty - may_be_empty) == []
    assert sorted(may_be_empty - {name for name, _ in found}) == []


def test_every_alert_is_evaluated_and_none_is_broken(prometheus, rules):
    told = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]

    assert {rule["name"] for rule in told} == set(rules.names)
    for rule in told:
        assert (rule["health"], rule.get("lastError", "")) == ("ok", "")
        assert rule["lastEvaluation"] > "2"


def test_alerts_are_raised_from_what_the_agent_tells(prometheus):
    raised = defaultdict(set)
    for alert in prometheus.get("alerts")["alerts"]:
        raised[alert["labels"].get("instance")].add(alert["labels"]["alertname"])

    assert raised[NODE] <= {"TemperLintPersistent", "TemperOverBudget"}
    assert raised[EVENTFUL] >= {"TemperLintPersistent", "TemperUnexpectedSafeMode"}


def test_families_that_are_never_absent_are_there(prometheus):
    for family in FAMILIES:
        if family.absent == "never" and family.kind != "histogram":
            assert prometheus.ask(family.name), family.name


@pytest.mark.usefixtures("prometheus")
def test_promtool_finds_nothing_to_complain_about(scene):
    text = httpx2.get(f"http://127.0.0.1:{scene.port}/metrics", trust_env=False).content

    judged = promtool("check", "metrics", input=text)

    assert (judged.returncode, judged.stdout, judged.stderr) == (0, b"", b"")
