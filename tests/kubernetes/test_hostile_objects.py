"""Objects of one tenant that the API server takes and keeps, beside the pods of others."""

import json

import pytest

from temper_kube.api_server import ApiServer
from tests.control_plane.cluster import pod

DEPTH = 5_000
ESCAPED = 1_400_000
"""Characters that the API server writes as six each: 8.4 MB of JSON, and 1.4 MB in etcd."""
MANAGED = '{"f:metadata":{"f:annotations":%s}}'
FIELDS = {
    "deep": MANAGED % ('{"f:a":' * DEPTH + "{}" + "}" * DEPTH),
    "odd-bytes": MANAGED % '{"f:@@":{}}',
}


def managed_by(fields):
    entry = {
        "manager": "m",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-26T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": "@fields",
    }
    return json.dumps([entry]).replace('"@fields"', fields)


def with_fields(document, fields):
    document["metadata"]["managedFields"] = "@managed"
    text = json.dumps(document).replace('"@managed"', managed_by(fields))
    return text.encode().replace(b"@@", b"\xff")


@pytest.fixture
def make(cluster):
    """Create an object from bytes, and delete it in the end."""
    made = []

    def create(document, content):
        namespace = document["metadata"].get("namespace", "default")
        answer = cluster.client.post(
            f"/api/v1/namespaces/{namespace}/pods",
            content=content,
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code in (200, 201), answer.text[:300]
        made.append(document)

    yield create
    for document in made:
        cluster.delete(document, grace_period=0)


@pytest.mark.parametrize("kind", FIELDS)
def test_managed_fields_of_a_pod_keep_no_other_from_the_agent(
    cluster, node, access, watch, make, kind
):
    hostile = pod(f"hostile-{kind}", node)
    make(hostile, with_fields(hostile, FIELDS[kind]))
    watched = watch(access, node)
    cluster.run(pod("victim", node, cpu="100m"))

    watched.until(lambda pods: "victim" in {each.name for each in pods}, "the pod of another")
    late = pod(f"late-{kind}", node)
    make(late, with_fields(late, FIELDS[kind]))
    cluster.run(pod("later", node, cpu="100m"))

    watched.until(lambda pods: "later" in {each.name for each in pods}, "a pod by the watch")
    with ApiServer(access) as api:
        names = {item["metadata"]["name"] for item in api.each("/api/v1/pods")}
    assert {"victim", "later", f"hostile-{kind}"} <= names


def test_a_pod_whose_text_grows_sixfold_keeps_no_other_from_the_agent(
    cluster, node, access, watch, make
):
    watched = watch(access, node)
    large = pod("large", node)
    large["spec"]["containers"][0]["env"] = [{"name": "X", "value": "<" * ESCAPED}]
    make(large, json.dumps(large).encode())
    cluster.run(pod("victim", node, cpu="100m"))

    watched.until(lambda pods: "victim" in {each.name for each in pods}, "the pod of another")


@pytest.fixture
def deep_node(cluster, node):
    """A node with deep managed fields, on which safe mode is requested."""
    path = f"/api/v1/nodes/{node}"

    def write(fields):
        answer = cluster.client.patch(
            path,
            content=f'{{"metadata": {{"managedFields": {fields}}}}}',
            headers={"Content-Type": "application/merge-patch+json"},
        )
        assert answer.status_code == 200, answer.text[:300]

    cluster.annotate(node, **{"safe-mode-requested": "incident"})
    write(managed_by(FIELDS["deep"]))
    yield node
    write("[{}]")


def test_the_kill_switch_is_heard_of_a_node_with_deep_managed_fields(deep_node, access):
    with ApiServer(access) as api:
        named = {item["metadata"]["name"]: item for item in api.each("/api/v1/nodes")}

    annotations = named[deep_node]["metadata"]["annotations"]
    assert annotations["temper.codes/safe-mode-requested"] == "incident"
