"""The operator with a real API server and a real Prometheus."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

from attrs import evolve

from temper_plugin_power.settings.classifier import ClassifierSettings
from temper_plugin_power.settings.operator import FacilitySettings
from tests.control_plane.cluster import pod, wait_until
from tests.kubernetes.power.conftest import GROUP, SETTINGS
from tests.patience import PATIENCE_S
from tests.power.power_series import Exported
from tests.rightsizer.fleet_series import make_blocks, serving

GIB = 2**30


def by(address):
    return evolve(SETTINGS, classifier=ClassifierSettings(prometheus_url=address, interval="1s"))


def measured(yard, name):
    """Wait for a profile by metrics."""

    def found():
        profile = yard.profile(name)
        confidence = ((profile or {}).get("status") or {}).get("confidence", 0)
        return profile if confidence > 0.3 else None

    return wait_until(found, f"a measured profile {name}")


def test_metrics_follow_hints(yard, tmp_path):
    series = Exported(int(time.time()))
    series.usage(yard.namespace, "busy", 0.9, GIB / 100)
    make_blocks(tmp_path, [*series.lines, "# EOF"])
    with serving(tmp_path) as address:
        operator = yard.operator(by(address))
        yard.run("busy")
        yard.run("silent")
        profile = measured(yard, "pod-busy")
        silent = yard.classified("pod-silent")
        page = operator.page().decode()

    assert profile["status"]["cpu"]["bound"] == "compute"
    assert profile["status"]["evidence"]["windowSeconds"] == 600
    assert silent["status"]["confidence"] == 0.3
    assert 'temper_power_query_seconds_count{signal="cpu_rate"}' in page
    assert 'temper_power_classifications_total{result="classified"}' in page


def test_without_its_prometheus_hints_remain_and_the_failure_is_counted(yard):
    operator = yard.operator(by("http://127.0.0.1:1"))
    yard.run("solver")

    profile = yard.classified("pod-solver")

    assert profile["status"]["confidence"] == 0.3
    failures = 'temper_power_query_failures_total{signal="families"}'
    wait_until(lambda: failures in operator.page().decode(), "the failure is counted")


def test_the_twins_of_nodes_follow_the_facility(yard, tmp_path):
    series = Exported(int(time.time()))
    series.gauge("datacenter_ambient_temperature_celsius", 60)
    series.gauge("datacenter_total_it_power_watts", 4000)
    series.gauge("datacenter_cooling_power_watts", 1000)
    make_blocks(tmp_path, [*series.lines, "# EOF"])
    facility = FacilitySettings(enabled=True, poll="1s", psu_capacity_watts=10_000.0)
    with serving(tmp_path) as address:
        given = by(address)
        yard.operator(evolve(given, operator=evolve(given.operator, facility=facility)))

        def status():
            answer = yard.cluster.client.get(f"{GROUP}/nodetwins/{yard.node}")
            found = answer.json().get("status", {}) if answer.status_code == 200 else {}
            return found if found.get("measuredPUE") else None

        told = wait_until(status, "the twin follows the facility")

    assert told["measuredPUE"] == 1.25
    assert told["predictedCoolingStressScore"] == 20
    assert told["predictedPsuStressScore"] == 40


PODS, WORKLOADS = 5000, 50
ON_GPUS = 7
"""The workload whose pods use GPUs."""
ALL_SOURCES = {
    *("cpu_rate", "mem_working_set", "dcgm_gpu_util", "psi_io", "psi_memory"),
    *("run_wait", "threads", "busiest_thread"),
    *("kepler_package_rate", "kepler_dram_rate", "kepler_gpu_rate"),
}
"""Signals of cAdvisor, DCGM, Temper's agents and Kepler. Requests come from the pods."""


def owned(yard, number):
    """Make a pod of one of the workloads on the node of the yard."""
    name = f"app-{number % WORKLOADS}"
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": name}
    made = pod(f"{name}-{number}", yard.node, yard.namespace, cpu="1", limit="2")
    made["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    yard.cluster.make(made)


def measured_workloads(yard):
    path = f"{GROUP}/namespaces/{yard.namespace}/workloadprofiles"
    items = yard.cluster.client.get(path).json().get("items", [])
    return sum((each.get("status") or {}).get("confidence", 0) > 0.3 for each in items)


def asked(page):
    """Return how often each signal was asked for."""
    found = re.findall(r'temper_power_query_seconds_count\{signal="(\w+)"\} ([0-9.]+)', page)
    return {signal: float(count) for signal, count in found}


def test_five_thousand_pods_are_classified_in_one_cycle_with_twenty_queries_at_most(yard, tmp_path):
    series = Exported(int(time.time()), samples=3)
    for number in range(PODS):
        name = f"app-{number % WORKLOADS}-{number}"
        series.usage(yard.namespace, name, 0.9, GIB / 100)
        series.requested(yard.namespace, name, 1, 2 * GIB)
        series.pressure(yard.namespace, name, io=0, memory=0)
        series.temper(yard.namespace, name, waits=0, threads=8, busiest=0.5)
        series.new_kepler(yard.namespace, name, package=9, dram=1)
        series.old_kepler(yard.namespace, name, package=9, dram=1, gpu=5)
        if number % WORKLOADS == ON_GPUS:
            series.gpu(yard.namespace, name, 80)
    make_blocks(tmp_path, [*series.lines, "# EOF"])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: owned(yard, number), range(PODS)))
    with serving(tmp_path) as address:
        given = evolve(SETTINGS.classifier, prometheus_url=address, interval="10s")
        operator = yard.operator(evolve(SETTINGS, classifier=given))
        wait_until(lambda: measured_workloads(yard) == WORKLOADS, "all are measured", 120.0)
        counts = asked(operator.page().decode())
    on_gpus = yard.profile(f"statefulset-app-{ON_GPUS}")["status"]
    path = f"/api/v1/namespaces/{yard.namespace}/pods"
    yard.cluster.client.request(
        "DELETE", path, json={"gracePeriodSeconds": 0}, timeout=PATIENCE_S
    ).raise_for_status()

    assert on_gpus["gpu"]["avgUtilizationPct"] == 80
    assert on_gpus["evidence"]["pods"] == PODS / WORKLOADS
    assert counts["families"] == 1
    assert set(counts) >= ALL_SOURCES
    assert sum(counts.values()) <= 20
