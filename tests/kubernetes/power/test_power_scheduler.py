"""A real kube-scheduler asks a running power extender."""

import ssl
from base64 import b64encode
from collections import Counter
from contextlib import suppress

import httpx2
import pytest

from temper_core import Tier
from tests.control_plane.cluster import pod, unique, wait_for_value, wait_until
from tests.density.placement.made import PRIORITIES
from tests.density.placement.yard import TEMPER, free_port
from tests.kubernetes.power.yard import PowerYard, documented_extender, put_twin
from tests.power.extender.certificate_pair import certificate_pair
from tests.power.extender.serving import CLASS
from tests.power.made import naming

BY_TLS = "temper-by-tls"
BY_OBJECTS = "temper-by-objects"
CAPPED = {"effectiveCapState": {"cpuPct": 50, "gpuPct": 100}}


@pytest.fixture(scope="module")
def scheduled(cluster, tmp_path_factory):
    yard = PowerYard(cluster, tmp_path_factory.mktemp("yard"))
    try:
        yard.start_scheduler("temper-scheduler")
        yard.start_extender()
        yield yard
    finally:
        yard.close()


@pytest.fixture
def power_yard(scheduled):
    yield scheduled
    scheduled.clear()


def known(yard):
    """Return what the extender knows of the nodes of the yard."""
    shown = httpx2.get(f"{yard.url}/debug/scoring", trust_env=False).json()["nodes"]
    return {each["nodeName"]: each for each in shown if each["nodeName"].startswith(yard.label)}


def made(yard, classes):
    """Make nodes with twins, and wait until the extender knows them. Return the full names."""
    names = yard.nodes(classes)
    wanted = {names[name]: node_class or "unknown" for name, node_class in classes.items()}

    def heard():
        return {name: each["schedulableClass"] for name, each in known(yard).items()}

    wait_until(lambda: heard() == wanted, "the extender knows the nodes", 60)
    return names


def placed(yard, pods):
    """Wait until all pods have a node. Return the number of pods of each node."""
    wait_for_value(lambda: len(yard.placed()), len(pods), "every pod has a node", 120)
    return Counter(yard.placed().values())


def test_a_thousand_performance_pods_never_land_on_eco_or_draining_nodes(power_yard):
    kinds = ("performance", "performance", "eco", "draining", None)
    classes = {f"n{number}": kinds[number % 5] for number in range(200)}
    names = made(power_yard, classes)

    pods = placed(power_yard, power_yard.submit_many(1000))

    taking = {names[name] for name, kind in classes.items() if kind in ("performance", None)}
    assert sum(pods.values()) == 1000
    assert set(pods) <= taking
    assert len(pods) > 40


def test_sensitive_pods_avoid_capped_nodes_and_others_do_not(power_yard):
    names = made(power_yard, dict.fromkeys(("free1", "free2", "capped1", "capped2"), "eco"))
    free, capped = ({names[f"{kind}{number}"] for number in (1, 2)} for kind in ("free", "capped"))
    for name in capped:
        put_twin(power_yard.cluster, name, "eco", **CAPPED)
    httpx2.get(f"{power_yard.url}/metrics", trust_env=False)

    def scores(**annotations):
        body = {
            "Pod": {"metadata": {"annotations": annotations}},
            "NodeNames": sorted(names.values()),
        }
        answer = httpx2.post(f"{power_yard.url}/prioritize", json=body, trust_env=False)
        return {each["host"]: each["score"] for each in answer.json()}

    def caps_are_known():
        sensitive = scores(**{"joulie.io/cpu-sensitivity": "high"})
        return max(map(sensitive.get, capped)) < min(map(sensitive.get, free))

    wait_until(caps_are_known, "the caps", 60)

    wanted = power_yard.submit_many(8, workload_class="standard", cpu_sensitivity="high")
    pods = placed(power_yard, wanted)

    assert sum(pods.values()) == 8
    assert not set(pods) & capped
    # The extender has no preference for others, so the scheduler's own plugins place them.
    assert len(set(scores().values())) == 1


def test_pods_are_placed_although_the_extender_does_not_answer(power_yard):
    made(power_yard, {"one": "performance", "other": "performance"})
    power_yard.extender.pause()
    try:
        pods = placed(power_yard, [power_yard.submit_one()])
    finally:
        power_yard.extender.go_on()

    assert sum(pods.values()) == 1


def test_pods_are_placed_although_the_extender_is_gone(power_yard):
    names = made(power_yard, {"one": "performance", "other": "eco"})

    code = power_yard.extender.stop()
    alone = placed(power_yard, [power_yard.submit_one()])
    power_yard.start_extender()
    wait_until(lambda: len(known(power_yard)) == 2, "the nodes", 60)
    together = power_yard.submit_one()
    placed(power_yard, range(2))

    assert code == 0
    assert sum(alone.values()) == 1
    assert power_yard.placed()[together] == names["one"]


def test_a_scheduler_asks_by_tls(power_yard, tmp_path):
    options, authority = certificate_pair(tmp_path)
    plain, power_yard.url = power_yard.url, f"https://127.0.0.1:{free_port()}"
    address = power_yard.url.removeprefix("https://")
    account = ["--kubeconfig", str(power_yard.account)]
    command = [TEMPER, *power_yard.command, "--listen", address, *account, *options]
    try:
        power_yard._start(command, "tls-extender.log")
        tls = {"caData": b64encode(authority).decode()}
        power_yard.start_scheduler(BY_TLS, enableHTTPS=True, tlsConfig=tls)
    finally:
        tls_url, power_yard.url = power_yard.url, plain
    names = made(power_yard, {"one": "performance", "two": "eco", "three": "draining"})
    trusting = ssl.create_default_context(cadata=authority.decode())

    def heard_by_tls(path, text):
        with suppress(httpx2.TransportError):
            return text in httpx2.get(f"{tls_url}{path}", verify=trusting, trust_env=False).text
        return False

    shown = f'"{names["three"]}", "schedulableClass": "draining"'
    wait_until(lambda: heard_by_tls("/debug/scoring", shown), "the extender by TLS", 60)
    pods = [power_yard.submit_one(scheduler=BY_TLS) for _ in range(5)]

    assert set(placed(power_yard, pods)) == {names["one"]}
    assert not heard_by_tls("/metrics", 'filter_requests_total{workload_class="performance"} 0.0')


def filled(yard, names, tier):
    """Fill each node with a pod of that tier. Return the pods."""
    priority = PRIORITIES[tier][0]
    pods = (pod(unique("full"), name, "shop", cpu="60", priority_class=priority) for name in names)
    return [yard.submit_pod(each) for each in pods]


def critical_pod(yard, workload_class, scheduler, **spec):
    """Make a critical pod that no filled node has room for. Return it."""
    wanted = pod(unique("critical"), None, "shop", cpu="10", annotations={CLASS: workload_class})
    wanted["spec"] |= {
        "priorityClassName": PRIORITIES[Tier.CRITICAL][0],
        "schedulerName": scheduler,
        "nodeSelector": {"yard": yard.label},
        **spec,
    }
    return yard.submit_pod(wanted)


def unplaced(yard, made):
    """Wait until the scheduler has found no node for a pod. Return the pod's status."""

    def status():
        status = yard.cluster.get("Pod", made["metadata"]["name"], "shop")["status"]
        reasons = [each.get("reason") for each in status.get("conditions") or ()]
        return status if "Unschedulable" in reasons else None

    return wait_until(status, "the scheduler finds no node", 60)


@pytest.mark.parametrize("sends_names", [True, False])
def test_no_pod_is_evicted_for_a_performance_pod_on_nodes_that_reject_it(power_yard, sends_names):
    """The full nodes fail before the extender is asked, so that preemption asks it."""
    scheduler = "temper-scheduler"
    if not sends_names:
        scheduler = BY_OBJECTS
        power_yard.start_scheduler(BY_OBJECTS, nodeCacheCapable=False)
    names = made(power_yard, {"one": "performance", "two": "eco", "three": "draining"})
    filled(power_yard, [names["one"]], Tier.CRITICAL)
    batch = filled(power_yard, [names["two"], names["three"]], Tier.NORMAL)

    def left():
        uids = (each["metadata"]["uid"] for each in power_yard.pods())
        return {each["metadata"]["uid"] for each in batch}.intersection(uids)

    performance = critical_pod(power_yard, "performance", scheduler)
    status, before = unplaced(power_yard, performance), left()
    standard = critical_pod(power_yard, "standard", scheduler)["metadata"]["name"]
    wait_until(lambda: standard in power_yard.placed(), "an eviction for any other pod", 60)

    assert "nominatedNodeName" not in status
    assert len(before) == len(batch)
    assert len(left()) == len(batch) - 1
    assert "nominatedNodeName" not in unplaced(power_yard, performance)


@pytest.mark.parametrize("node_class", ["eco", "draining"])
def test_a_performance_pod_that_can_be_nowhere_else_runs_on_its_full_node(power_yard, node_class):
    """The lower pod is evicted for it, and the filter takes it afterwards."""
    names = made(power_yard, {"one": "performance", "two": node_class})
    (batch,) = filled(power_yard, [names["two"]], Tier.NORMAL)

    bound = critical_pod(power_yard, "performance", "temper-scheduler", **naming(names["two"]))

    placed_on = wait_until(
        lambda: power_yard.placed().get(bound["metadata"]["name"]), "the pod has its node", 60
    )
    left = {each["metadata"]["uid"] for each in power_yard.pods()}
    assert placed_on == names["two"]
    assert batch["metadata"]["uid"] not in left


def test_the_documented_configuration_lets_the_scheduler_go_on_alone():
    extender = documented_extender()

    assert extender["ignorable"] is True
    assert extender["nodeCacheCapable"] is True
    verbs = [extender[f"{name}Verb"] for name in ("filter", "preempt", "prioritize")]
    assert verbs == ["filter", "preempt", "prioritize"]
