import json

import pytest
import yaml

from temper_core.errors import DocumentError
from temper_core.node.pod_reading import MOST_CONTAINERS, MOST_LABELS
from temper_core.node.podlist import read_pod_object, read_pods
from temper_core.node.podlist_file import read_pod_file
from temper_core.records.pods import Container, Origin, QosClass
from tests.podlists import NODE, make_podlist

CONTAINER_ID = "0123456789abcdef" * 4
STATIC_UID = "5b1f2a7c9d3e4f60718293a4b5c6d7e8"


def pod_document(name="web", **changes):
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-of-{name}"},
        "spec": {"containers": [{"name": "app", "image": "nginx:1.29"}]},
    }
    for key, value in changes.items():
        document[key] = document.get(key, {}) | value
    return document


def size(cpu):
    return {"requests": {"cpu": cpu}}


def list_of(*pods, kind="List"):
    return {"apiVersion": "v1", "kind": kind, "items": list(pods)}


def read(document, **options):
    return read_pods(json.dumps(document), source="pods.json", **options)


def problems_of(text, **options):
    with pytest.raises(DocumentError) as caught:
        read_pods(text if isinstance(text, str) else json.dumps(text), source="x", **options)
    return caught.value.problems


def test_a_pod_as_kubectl_prints_it_becomes_a_record():
    document = pod_document(
        metadata={
            "labels": {"app": "web"},
            "annotations": {"temper.codes/workload-profile": "nginx"},
            "ownerReferences": [
                {"kind": "Foo", "name": "watches"},
                {"kind": "ReplicaSet", "name": "web-7d", "controller": True},
            ],
        },
        spec={
            "priority": 100_000,
            "priorityClassName": "web-high",
            "containers": [
                {
                    "name": "app",
                    "image": "nginx:1.29",
                    "resources": {"requests": {"cpu": "250m"}, "limits": {"cpu": "1"}},
                }
            ],
        },
        status={
            "phase": "Running",
            "qosClass": "Burstable",
            "containerStatuses": [{"name": "app", "containerID": f"containerd://{CONTAINER_ID}"}],
        },
    )

    (pod,) = read(document)

    assert (pod.key, pod.uid, pod.owner) == ("shop/web", "uid-of-web", "ReplicaSet/web-7d")
    assert (pod.priority, pod.priority_class) == (100_000, "web-high")
    assert (pod.cpu_request_millis, pod.cpu_limit_millis) == (250, 1000)
    assert (pod.qos_class, pod.origin, pod.cgroups) == (QosClass.BURSTABLE, Origin.KUBERNETES, ())
    assert pod.wanted_profile == ("temper.codes/workload-profile", "nginx")
    assert pod.labels == {"app": "web"}
    assert pod.containers == (Container("app", "nginx:1.29", 250, 1000, CONTAINER_ID),)


@pytest.mark.parametrize("kind", ["List", "PodList"])
def test_a_list_may_be_of_either_kind(kind):
    pods = read(list_of(pod_document("a"), pod_document("b"), kind=kind))

    assert [pod.name for pod in pods] == ["a", "b"]


def test_items_without_a_kind_are_pods_and_other_kinds_are_passed_over():
    nameless = pod_document("a")
    del nameless["kind"]

    pods = read(list_of({"kind": "Service", "spec": 5}, nameless))

    assert [pod.name for pod in pods] == ["a"]


def test_an_empty_list_has_no_pods():
    assert read(list_of()) == ()


def test_a_manifest_needs_neither_uid_nor_namespace():
    document = {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}

    (pod,) = read(document)

    assert (pod.uid, pod.namespace, pod.qos_class) == ("default/a", "default", QosClass.BEST_EFFORT)


def test_several_yaml_documents_are_read_as_one():
    first = yaml.safe_dump(pod_document("a"))
    second = yaml.safe_dump(list_of(pod_document("b")))
    other = yaml.safe_dump({"kind": "ConfigMap", "data": {}})

    pods = read_pods(f"---\n{first}---\n{other}---\n{second}---\n", source="x")

    assert [pod.name for pod in pods] == ["a", "b"]


def test_json_and_yaml_of_one_list_give_the_same_pods():
    document = make_podlist(40, seed=3)

    assert read_pods(yaml.safe_dump(document), source="x") == read(document)


def test_yaml_numbers_and_dates_are_taken_as_kubernetes_takes_them():
    text = """
kind: Pod
metadata: {name: a, creationTimestamp: 2026-03-02T08:15:04Z}
spec:
  containers:
  - name: c
    resources: {requests: {cpu: 0.5}, limits: {cpu: 2}}
"""

    (pod,) = read_pods(text, source="x")

    assert (pod.cpu_request_millis, pod.cpu_limit_millis) == (500, 2000)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": {"phase": "Succeeded"}},
        {"status": {"phase": "Failed"}},
        {"metadata": {"deletionTimestamp": "2026-03-02T08:15:04Z"}},
    ],
)
def test_finished_and_terminating_pods_are_out(changes):
    pods = read(list_of(pod_document("gone", **changes), pod_document("here")))

    assert [pod.name for pod in pods] == ["here"]


def test_a_mirror_pod_is_known_by_its_cgroup_and_counts_once_with_its_static_pod():
    annotations = {"kubernetes.io/config.hash": STATIC_UID, "kubernetes.io/config.source": "file"}
    static = pod_document("etcd", metadata={"uid": STATIC_UID, "annotations": annotations})
    mirror = pod_document(
        "etcd", metadata={"annotations": annotations | {"kubernetes.io/config.mirror": STATIC_UID}}
    )

    both = read(list_of(mirror, static))
    alone = read(list_of(mirror))

    assert [(pod.uid, pod.key) for pod in both] == [(STATIC_UID, "shop/etcd")]
    assert [(pod.uid, pod.key) for pod in alone] == [(STATIC_UID, "shop/etcd")]


def a_mirror(name, uid, made="2026-03-02T08:15:04Z", **changes):
    marks = {"kubernetes.io/config.hash": uid, "kubernetes.io/config.mirror": uid}
    metadata = {"annotations": marks, "creationTimestamp": made, **changes}
    return pod_document(name, metadata=metadata)


OF_A_NODE = {"ownerReferences": [{"kind": "Node", "name": "worker-1", "controller": True}]}
VICTIM = "0a1b2c3d-0000-4000-8000-00000000000f"
REAL = pod_document("victim", metadata={"uid": VICTIM})
OLD = "2025-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("holder", "impostor"),
    [
        (REAL, a_mirror("impostor", VICTIM, OLD, **OF_A_NODE)),
        (REAL, a_mirror("impostor", VICTIM.replace("-", "_"), OLD, **OF_A_NODE)),
        (REAL, a_mirror("impostor", VICTIM.replace("-", "_", 1), OLD)),
        (a_mirror("etcd", STATIC_UID, **OF_A_NODE), a_mirror("impostor", STATIC_UID, OLD)),
        (a_mirror("etcd", STATIC_UID, OLD), a_mirror("impostor", STATIC_UID)),
        (
            a_mirror("etcd", STATIC_UID, OLD, **OF_A_NODE),
            a_mirror("impostor", STATIC_UID, **OF_A_NODE),
        ),
    ],
)
def test_no_pod_takes_the_cgroup_of_another_by_claiming_to_be_its_mirror(
    holder, impostor, tmp_path
):
    file = tmp_path / "pods.json"
    for order in ([holder, impostor], [impostor, holder]):
        told, told_of_file = [], []
        file.write_text(json.dumps(list_of(*order)))

        pods = read(list_of(*order), report=told.append)
        of_file = read_pod_file(file, report=told_of_file.append)

        assert [pod.name for pod in pods] == [holder["metadata"]["name"]]
        assert of_file == pods
        assert told == told_of_file
        (line,) = told
        assert line.startswith(f"pod shop/impostor claims the cgroup of pod {pods[0].key} ")


@pytest.mark.parametrize(
    "container_id",
    ["containerd://o", "containerd://", "o", CONTAINER_ID, f"containerd://{CONTAINER_ID}/../x"],
)
def test_what_is_no_id_of_a_container_is_none(container_id):
    running = {"containerStatuses": [{"name": "app", "containerID": container_id}]}

    (pod,) = read(pod_document(status=running))

    assert pod.containers[0].runtime_id == ""


def test_a_pod_that_is_listed_twice_counts_once():
    assert len(read(list_of(pod_document("a"), pod_document("a")))) == 1


def test_pods_of_other_nodes_and_of_none_yet_are_left_out_on_request():
    here = pod_document("here", spec={"nodeName": "worker-1"}, status={"phase": "Running"})
    elsewhere = pod_document("elsewhere", spec={"nodeName": "worker-2"})
    waiting = pod_document("waiting", status={"phase": "Pending"})
    manifest = pod_document("manifest")
    everything = list_of(here, elsewhere, waiting, manifest)

    assert [pod.name for pod in read(everything, node="worker-1")] == ["here", "manifest"]
    assert len(read(everything)) == 4


def test_a_resize_that_the_kubelet_has_not_granted_does_not_count():
    asked = {"name": "app", "resources": {"requests": {"cpu": "1000"}, "limits": {"cpu": "1000"}}}
    granted = {"name": "app", "allocatedResources": {"cpu": "500m"}}
    resized = pod_document(
        spec={"containers": [asked]}, status={"phase": "Running", "containerStatuses": [granted]}
    )

    (pod,) = read(resized)

    assert pod.cpu_request_millis == pod.containers[0].cpu_request_millis == 500


@pytest.mark.parametrize(
    ("reported", "millis"),
    [
        ({"allocatedResources": {"memory": "16Mi"}}, 0),
        ({"allocatedResources": {"cpu": "0"}, "resources": size("7")}, 0),
        ({"resources": {}}, 0),
        ({"resources": size("250m")}, 250),
        ({"allocatedResources": None}, 7000),
        ({}, 7000),
    ],
)
def test_a_container_that_is_given_a_request_has_what_the_kubelet_reports(reported, millis):
    asked = {"name": "app", "resources": size("7")}
    status = {"containerStatuses": [{"name": "app", **reported}]}

    (pod,) = read(pod_document(spec={"containers": [asked]}, status=status))

    assert pod.cpu_request_millis == pod.containers[0].cpu_request_millis == millis


@pytest.mark.parametrize(
    ("reported", "millis"),
    [
        ({"allocatedResources": {"cpu": "100m"}}, 150),
        ({"allocatedResources": {"memory": "16Mi"}}, 50),
        ({"resources": size("100m")}, 150),
        ({}, 1950),
    ],
)
def test_a_resize_of_a_pods_own_request_counts_once_it_is_granted(reported, millis):
    spec = {"resources": size("1900m"), "overhead": {"cpu": "50m"}}

    (pod,) = read(pod_document(spec=spec, status=reported))

    assert pod.cpu_request_millis == millis


@pytest.mark.parametrize("reported", [{"allocatedResources": {"cpu": "7"}}, {}])
def test_a_grant_of_a_whole_pod_is_no_request_of_the_pods_own(reported):
    containers = [{"name": "app", "resources": size("2")}]
    spec = {"containers": containers, "resources": {"limits": {"cpu": "9"}}}

    (pod,) = read(pod_document(spec=spec, status=reported))

    assert pod.cpu_request_millis == 2000


def test_a_real_sized_list_reads_whole():
    document = make_podlist(250, seed=1)
    gone = [
        item
        for item in document["items"]
        if item["status"]["phase"] == "Succeeded" or "deletionTimestamp" in item["metadata"]
    ]

    pods = read(document, node=NODE)

    assert len(gone) > 5
    assert len(pods) == 250 - len(gone)
    assert {pod.qos_class for pod in pods} == set(QosClass)
    assert all(container.runtime_id for pod in pods for container in pod.containers)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"metadata": {"name": None}}, "metadata.name: must be a name of letters"),
        ({"metadata": {"name": "a/b"}}, "metadata.name: must be a name of letters"),
        ({"metadata": {"name": "\ud800"}}, "metadata.name: must be a name of letters"),
        ({"metadata": {"name": 3}}, "metadata.name: must be a string, not 3"),
        ({"metadata": {"namespace": "x" * 300}}, "metadata.namespace: must be a name"),
        ({"metadata": {"uid": "../../etc"}}, "metadata.uid: must be a name of letters"),
        ({"metadata": {"labels": ["a"]}}, "metadata.labels: must be an object, not ['a']"),
        ({"metadata": {"labels": {"a": 1}}}, "metadata.labels.a: must be a string, not 1"),
        ({"metadata": {"ownerReferences": {}}}, "metadata.ownerReferences: must be a list"),
        (
            {"metadata": {"ownerReferences": [{"controller": "yes"}]}},
            "metadata.ownerReferences[0].controller: must be true or false, not 'yes'",
        ),
        (
            {"metadata": {"annotations": {"kubernetes.io/config.mirror": "a b"}}},
            "metadata.annotations.kubernetes.io/config.mirror: must be the uid that a kubelet",
        ),
        (
            # Of a uid's end, the address would be that of all pods, "kubepods.slice" too.
            {"metadata": {"annotations": {"kubernetes.io/config.mirror": "s"}}},
            "metadata.annotations.kubernetes.io/config.mirror: must be the uid that a kubelet",
        ),
        ({"spec": {"priority": "high"}}, "spec.priority: must be a whole number, not 'high'"),
        ({"spec": {"priority": True}}, "spec.priority: must be a whole number, not True"),
        ({"spec": {"priority": 1.0}}, "spec.priority: must be a whole number, not 1.0"),
        ({"spec": {"containers": []}}, "spec.containers: must name at least one container"),
        ({"spec": {"containers": "app"}}, "spec.containers: must be a list, not 'app'"),
        ({"spec": {"containers": [5]}}, "spec.containers[0]: must be an object, not 5"),
        ({"spec": {"nodeName": 5}}, "spec.nodeName: must be a string, not 5"),
        ({"spec": {"overhead": {"cpu": "x"}}}, "spec.overhead.cpu: 'x' is no CPU quantity"),
        ({"spec": {"resources": {"limits": 1}}}, "spec.resources.limits: must be an object, not 1"),
        ({"status": {"phase": 1}}, "status.phase: must be a string, not 1"),
        ({"status": {"qosClass": "Gold"}}, "status.qosClass: must be one of Guaranteed, Burstable"),
        ({"status": {"conditions": 1}}, "status.conditions: must be a list, not 1"),
        (
            {"status": {"containerStatuses": [{"containerID": 5}]}},
            "status.containerStatuses[0].containerID: must be a string, not 5",
        ),
    ],
)
def test_a_misfit_is_named_by_its_path(changes, problem):
    found = problems_of(pod_document(**changes), node="worker-1")

    assert any(each.startswith(problem) for each in found), found


def test_a_misfit_deep_in_a_list_is_named_by_its_index():
    bad = pod_document("bad")
    bad["spec"]["initContainers"] = [
        {"name": "x"},
        {"name": "y", "resources": {"requests": {"cpu": "1 core"}}},
    ]

    assert problems_of(list_of(pod_document("good"), bad)) == (
        (
            "items[1].spec.initContainers[1].resources.requests.cpu: "
            "'1 core' is no CPU quantity such as '500m', '2' or '0.5'"
        ),
    )


def test_every_misfit_is_reported_at_once_and_only_once():
    first = pod_document("a", spec={"priority": "x"}, status={"phase": 7})
    second = pod_document("b", metadata={"name": 1}) | {"spec": []}

    found = problems_of(list_of(first, 3, second), node="worker-1")

    assert found == (
        "items[0].status.phase: must be a string, not 7",
        "items[0].spec.priority: must be a whole number, not 'x'",
        "items[1]: must be an object, not 3",
        "items[2].spec: must be an object, not []",
        "items[2].spec.containers: must name at least one container",
        "items[2].metadata.name: must be a string, not 1",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "document: is empty"),
        ("--- \n---\n", "document: is empty"),
        ("just words", "document: must be a PodList, a List or a Pod"),
        ("[1, 2]", "document: must be a PodList, a List or a Pod"),
        ('{"kind": "Deployment"}', "kind: must be one of Pod, PodList, List, not 'Deployment'"),
        ('{"kind": "List", "items": {}}', "items: must be a list"),
        ('{"kind": "List"}', "items: must be a list"),
        ('{"kind": "List", "items": [', "is not JSON: Expecting value: line 1 column 28"),
        ("{" * 100_000, "is not JSON"),
        ('{"a":' * 100_000, "is not JSON"),
        ("kind: [", "is neither JSON nor YAML"),
        ("kind: Pod\n\tmetadata: x", "is neither JSON nor YAML"),
        ("kind: \x00", "is neither JSON nor YAML"),
        ("a: &a [*a]\nkind: 3", "kind: must be a string, not 3"),
        ("kind: !!int ''", "is neither JSON nor YAML"),
        ("kind: !!bool maybe", "is neither JSON nor YAML"),
        ("kind: !!timestamp now", "is neither JSON nor YAML"),
        ("kind: !!python/object:os.system {}", "is neither JSON nor YAML"),
        ("kind: " + "[" * 1_000_000, "is nested more than 500 levels deep"),
        ("kind: " + "{a: " * 1_000_000, "is nested more than 500 levels deep"),
        ("- " * 100_000, "is nested more than 500 levels deep"),
        ("? {a: b}\n: c", "is neither JSON nor YAML"),
        ("kind: Pod\n---\n7", "documents[1]: must be a PodList, a List or a Pod"),
    ],
)
def test_what_is_no_pod_list_says_what_is_wrong(text, problem):
    assert any(each.startswith(problem) for each in problems_of(text))


def test_yaml_that_explodes_when_it_is_written_out_is_refused_quickly():
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 40)]
    text = "\n".join([*lines, "kind: Pod", "metadata: {name: *l39}"])

    found = problems_of(text)

    assert all(len(each) < 300 for each in found)


def test_one_object_is_read_as_it_would_be_in_a_list():
    document = make_podlist(40, seed=3)
    listed = read(document, node=NODE)

    alone = [read_pod_object(item, source="pod", node=NODE) for item in document["items"]]

    found = {pod.uid: pod for pod in reversed(alone) if pod is not None}
    assert len(listed) < 40
    assert {pod.uid: pod for pod in listed} == found


def test_an_object_that_does_not_fit_is_refused_with_its_path():
    misfit = pod_document(spec={"containers": [{"name": "app", "image": 7}]})

    with pytest.raises(DocumentError, match=r"pod x: spec.containers\[0\].image: must be a string"):
        read_pod_object(misfit, source="pod x")


def test_a_reference_that_no_registry_takes_is_no_image():
    """Comparing it with all profiles takes seconds, and the API server takes any length."""
    longest = f"{'n' * 255}:{'t' * 128}@sha256:{'0' * 64}"
    containers = [{"name": "a", "image": longest}, {"name": "b", "image": "x" * 1_400_000}]

    (pod,) = read(pod_document(spec={"containers": containers}))

    assert [container.image for container in pod.containers] == [longest, ""]


def test_a_reference_with_control_characters_is_no_image():
    """JSON takes six characters for each of them, and reports quote images."""
    containers = [{"name": "a", "image": "r.example/" + "\x01" * 490}]

    (pod,) = read(pod_document(spec={"containers": containers}))

    assert [container.image for container in pod.containers] == [""]


def test_the_first_labels_of_very_many_are_kept():
    labels = {f"label-{number:05}": "x" for number in range(88_000)}

    (pod,) = read(pod_document(metadata={"labels": labels}))

    assert dict(pod.labels) == dict(list(labels.items())[:MOST_LABELS])


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_of_a_pod_with_too_many_containers_the_first_count_and_it_keeps_its_tier(kind):
    containers = [{"name": f"c{number}", "restartPolicy": "Always"} for number in range(5_000)]
    least = {"containers": [{"name": "one"}], "priority": -1_000}

    (pod,) = read(list_of(pod_document(spec={**least, kind: containers})))

    assert pod.priority == -1_000
    assert MOST_CONTAINERS <= len(pod.containers) <= MOST_CONTAINERS + 1


SERVED = {"uid": "6a1e0000-0000-4000-8000-000000000001", "creationTimestamp": OLD}


@pytest.mark.parametrize(
    "odd",
    [
        {"annotations": {"kubernetes.io/config.mirror": "!"}},
        {"annotations": {"kubernetes.io/config.mirror": "x", "kubernetes.io/config.hash": "a/b"}},
    ],
)
def test_a_pod_of_an_api_server_that_does_not_fit_keeps_no_other_out(odd, tmp_path):
    document = list_of(pod_document("odd", metadata={**SERVED, **odd}), pod_document("db"))
    file, told, told_of_file = tmp_path / "pods.json", [], []
    file.write_text(json.dumps(document))

    pods = read(document, report=told.append)
    pods_of_file = read_pod_file(file, report=told_of_file.append)

    assert [pod.name for pod in pods] == [pod.name for pod in pods_of_file] == ["db"]
    assert told == told_of_file
    assert told[0].startswith("pod shop/odd is left out: ")


def odd_request(limit="2"):
    resources = {"requests": {"cpu": "1 core"}, "limits": {"cpu": limit}}
    containers = [{"name": "odd", "resources": resources}, {"name": "b", "resources": size("1")}]
    spec = {"priority": 7, "containers": containers}
    return pod_document("odd", metadata=SERVED, spec=spec)


def test_a_quantity_of_an_api_server_that_cannot_be_read_counts_as_0_and_the_pod_stays(tmp_path):
    document = list_of(odd_request(), pod_document("db"))
    file, told, told_of_file = tmp_path / "pods.json", [], []
    file.write_text(json.dumps(document))

    odd, _ = read(document, report=told.append)
    odd_of_file, _ = read_pod_file(file, report=told_of_file.append)

    assert odd == odd_of_file
    assert (odd.name, odd.priority, odd.cpu_request_millis) == ("odd", 7, 1000)
    (line,) = told
    assert told_of_file == told
    assert line.startswith("pod shop/odd has a quantity that counts as 0: spec.containers[0].")


def test_a_quantity_is_a_misfit_for_readers_that_take_no_doubt():
    doubts = []

    with pytest.raises(DocumentError, match="'1 core' is no CPU quantity"):
        read_pod_object(odd_request(), source="pod")
    found = read_pod_object(odd_request(), source="pod", doubted=doubts.append)

    assert found.cpu_request_millis == 1000
    assert len(doubts) == 1


def test_a_list_of_more_than_a_document_may_have_is_read_pod_by_pod(tmp_path, monkeypatch):
    monkeypatch.setattr("temper_core.documents.LARGEST_DOCUMENT_BYTES", 4_000)
    file = tmp_path / "pods.json"
    file.write_text(json.dumps(list_of(*(pod_document(f"p{number}") for number in range(100)))))

    assert len(read_pod_file(file)) == 100


def test_an_owner_of_any_length_is_cut():
    owner = {"kind": "K", "name": "n" * 1_000_000, "controller": True}

    (pod,) = read(pod_document(metadata={"ownerReferences": [owner]}))

    assert len(pod.owner) < 400


def test_only_an_init_container_that_runs_on_is_a_sidecar():
    """An ordinary container may have a restart policy, too."""
    always = {"image": "nginx:1.29", "restartPolicy": "Always"}
    spec = {
        "containers": [{"name": "app", **always}],
        "initContainers": [{"name": "setup", "image": "nginx:1.29"}, {"name": "proxy", **always}],
    }

    (pod,) = read(list_of(pod_document(spec=spec)))

    kinds = {container.name: container.is_sidecar for container in pod.containers}
    assert kinds == {"app": False, "proxy": True}
