"""The nodes of a cluster, and what nobody requests of them."""

from temper_plugin_rightsizer.cluster.machines import Amount, ClusterMachines, request_of
from temper_plugin_rightsizer.prices.settings import Prices


def a_node(name="n1", kind="m5.xlarge", cpu="4", memory="16Gi"):
    amounts = {"capacity": {"cpu": "4", "memory": "16Gi"}}
    labels = {"node.kubernetes.io/instance-type": kind} if kind else {}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {**amounts, "allocatable": {"cpu": cpu, "memory": memory}},
    }


def a_container(cpu="0", memory="0", **more):
    return {"resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}


def a_pod(*containers, node="n1", phase="Running"):
    return {"spec": {"nodeName": node, "containers": list(containers)}, "status": {"phase": phase}}


def rows_of(*pods, nodes=None):
    machines = ClusterMachines()
    for node in nodes or [a_node()]:
        machines.add_node(node)
    for pod in pods:
        machines.add_pod(pod)
    return list(machines.rows(Prices()))


def test_headroom_is_what_pods_could_request_and_do_not():
    pod = a_pod(a_container("1500m", "4Gi"), a_container("500m", "2Gi"))

    (row,) = rows_of(pod, nodes=[a_node(cpu="3900m", memory="14Gi")])

    assert (row["idle_cores"], row["idle_gib"]) == (1.9, 8.0)
    assert (row["type"], row["hour"]) == ("m5.xlarge", 0.192)


def test_pods_that_have_ended_or_wait_request_nothing():
    large = a_container("4", "16Gi")

    (row,) = rows_of(a_pod(large, phase="Succeeded"), a_pod(large, node=""))

    assert (row["idle_cores"], row["idle_gib"]) == (4.0, 16.0)


def test_a_node_with_more_requests_than_it_has_does_not_lower_the_headroom_of_others():
    full = a_pod(a_container("6", "1Gi"))

    (row,) = rows_of(full, nodes=[a_node("n1"), a_node("n2")])

    assert (row["nodes"], row["idle_cores"]) == (2, 4.0)


def test_a_node_without_a_type_is_a_row_of_its_own():
    rows = rows_of(nodes=[a_node("n1"), a_node("n2", kind="")])

    assert [row["type"] for row in rows] == ["m5.xlarge", ""]


def test_headroom_is_not_known_without_the_pods():
    machines = ClusterMachines(knows_pods=False)
    machines.add_node(a_node())

    (row,) = machines.rows(Prices())

    assert (row["idle_cores"], row["idle_gib"]) == (None, None)


def test_a_malformed_quantity_counts_as_none():
    (row,) = rows_of(a_pod(a_container("lots", "4Gi")), nodes=[a_node(memory="x")])

    assert (row["idle_cores"], row["idle_gib"]) == (4.0, 0.0)


def test_init_containers_sidecars_and_overhead_count_as_the_scheduler_counts_them():
    sidecar = a_container("1", restartPolicy="Always")
    spec = {
        "initContainers": [sidecar, a_container("3"), a_container("1")],
        "containers": [a_container("2")],
        "overhead": {"cpu": "250m"},
    }

    assert request_of(spec) == Amount(4.25, 0.0)
    assert request_of({**spec, "resources": {"requests": {"cpu": "5"}}}) == Amount(5.25, 0.0)
