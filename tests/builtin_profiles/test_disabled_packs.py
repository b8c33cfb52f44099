"""Packs that nobody has measured and that are therefore disabled."""

import pytest

from temper_core import Container
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.profiles.enabling import disabled_reason
from temper_core.profiles.matching import matches
from temper_core.records.profiles import LoadedProfile
from temper_core.records.threads import ThreadIdentity
from temper_core.testing import make_machine, make_pod
from tests.builtin_profiles.recorded import PACKS

DISABLED = ("envoy", "haproxy", "kafka", "node", "rabbitmq", "valkey")
IMAGES = {
    "envoyproxy/envoy:v1.32.0": "envoy",
    "docker.io/envoyproxy/envoy:distroless-v1.32.0": "envoy",
    "haproxy:3.0-alpine": "haproxy",
    "docker.io/haproxytech/haproxy-alpine:3.0": "haproxy",
    "haproxytech/kubernetes-ingress:3.0": "haproxy",
    "quay.io/jcmoraisjr/haproxy-ingress:v0.14": "haproxy",
    "apache/kafka:4.3.1": "kafka",
    "confluentinc/cp-kafka:7.8.0": "kafka",
    "quay.io/strimzi/kafka:0.45.0-kafka-3.9.0": "kafka",
    "rabbitmq:4-management": "rabbitmq",
    "docker.io/bitnami/rabbitmq:4.0": "rabbitmq",
    "valkey/valkey:8.1": "valkey",
    "docker.io/bitnami/valkey-cluster:8.1": "valkey",
}
OTHERS_IMAGES = (
    "docker.io/istio/proxyv2:1.24.0",
    "docker.io/envoyproxy/gateway:v1.2.0",
    "node:24-alpine",
    "quay.io/prometheus/haproxy-exporter:v0.15",
    "apache/kafka-native:4.3.1",
    "bitnami/kafka-exporter:1.9",
    "provectuslabs/kafka-ui:v0.7",
    "rabbitmqoperator/cluster-operator:2.12",
    "kbudde/rabbitmq-exporter:1.0",
    "bitnami/valkey-sentinel:8.1",
)
PROCESSES = {
    "envoy": "envoy",
    "haproxy": "haproxy",
    "rabbitmq-server": "rabbitmq",
    "valkey-server": "valkey",
}
# What no recording has: (pack, name, process, leads it, title) -> group
UNRECORDED = {
    ("envoy", "wrk:worker_31", "envoy", False, ""): "workers",
    ("envoy", *["envoy-gateway"] * 2, True, "envoy-gateway server"): "rest",
    ("haproxy", *["haproxy-ingress"] * 2, True, ""): "around",
    ("haproxy", *["haproxy_exporte"] * 2, True, ""): "around",
    ("kafka", "data-pl..hread-0", "java", False, ""): "requests",
    ("kafka", "ReplicaFetcherT", "java", False, ""): "requests",
    ("kafka", "kafka-l..hread-0", "java", False, ""): "cleaning",
    ("kafka", "kafka-scheduler", "java", False, ""): "rest",
    ("node", *["npm start"] * 2, True, "npm start"): "rest",
    ("node", "node", "node", False, "node shop.mjs"): "rest",
    ("rabbitmq", *["epmd"] * 2, True, "epmd -daemon"): "rest",
    ("valkey", *["valkey-server"] * 2, True, "valkey-rdb-to-replicas *:6379"): "copies",
    ("valkey", *["valkey-server"] * 2, True, "valkey-server *:6379 [cluster]"): "requests",
    ("valkey", "module-worker", "valkey-server", False, "valkey-server *:6379"): "rest",
}
each_disabled = pytest.mark.parametrize("pack", DISABLED)


def choose(image, *processes, enable=DISABLED):
    """Return the id of the profile for a container, the packs of *enable* enabled."""
    loaded = (
        LoadedProfile(pack, "builtin", disabled=disabled_reason(pack, enable))
        for pack in PACKS.values()
    )
    container = Container("main", image=image, processes=processes)
    pod = make_pod(containers=(container,))
    choice = ProfileCatalogue(tuple(loaded)).choose(pod, make_machine(8))
    return choice.loaded.profile.id if choice.loaded else None


def test_these_are_the_packs_that_are_disabled():
    assert {pack.id for pack in PACKS.values() if not pack.enabled} >= set(DISABLED)


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_gets_no_disabled_pack_by_itself(image):
    assert choose(image, enable=()) is None


@pytest.mark.parametrize(("image", "pack"), IMAGES.items())
def test_an_image_is_recognised_once_the_node_enables_the_pack(image, pack):
    assert choose(image) == pack


@pytest.mark.parametrize("image", OTHERS_IMAGES)
def test_what_only_stands_beside_a_server_is_not_taken_for_it(image):
    assert choose(image) is None


@pytest.mark.parametrize(("process", "pack"), PROCESSES.items())
def test_a_main_process_is_recognised_once_the_node_enables_the_pack(process, pack):
    assert choose("registry.example/own:1", process) == pack


@pytest.mark.parametrize(
    "process", ["haproxy-ingress", "beam.smp", "valkey-sentinel", "java", "node"]
)
def test_a_process_that_is_only_called_alike_is_not_recognised(process):
    assert choose("registry.example/own:1", process) is None


@each_disabled
def test_no_pack_goes_by_what_only_a_privileged_agent_can_read(pack):
    assert not any(match.exe for group in PACKS[pack].thread_groups for match in group.match)


@pytest.mark.parametrize(("thread", "group"), UNRECORDED.items(), ids=lambda each: str(each)[:60])
def test_threads_that_no_recording_has_fall_into_their_groups(thread, group):
    pack, comm, process, leader, title = thread
    identity = ThreadIdentity("pod/", comm[:15], process, is_leader=leader, title=title)

    taken = next(
        each.name
        for each in PACKS[pack].thread_groups
        if not each.match or any(matches(match, identity) for match in each.match)
    )

    assert taken == group
