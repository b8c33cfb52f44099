"""Which API server an agent asks."""

import base64

import pytest
import yaml

from temper_core import MachineError
from temper_kube.list_watch import ListWatch, Query
from temper_kube.watch_status import WatchStatus
from temper_plugin_kubernetes.access import find_access
from temper_plugin_kubernetes.node import NODES, NodeWatch
from tests.control_plane.cluster import wait_until


def test_outside_of_a_cluster_it_is_said_what_is_missing():
    with pytest.raises(MachineError, match="KUBERNETES_SERVICE_HOST is not set"):
        find_access("", {})


def test_credentials_inside_a_kubeconfig_that_is_replaced_are_used(cluster, node, tmp_path):
    """Without the authority the handshake fails. With another token the server refuses."""

    def write(token, authority=b""):
        data = {"certificate-authority-data": base64.b64encode(authority).decode()}
        context = {"name": "x", "context": {"cluster": "x", "user": "x"}}
        document = {
            "current-context": "x",
            "contexts": [context],
            "clusters": [{"name": "x", "cluster": {"server": cluster.url, **data}}],
            "users": [{"name": "x", "user": {"token": token}}],
        }
        path.write_text(yaml.safe_dump(document))

    path, status = tmp_path / "kubeconfig", WatchStatus("node")
    write("expired")
    query = Query(NODES, f"metadata.name={node}", metadata_only=True)
    follower = NodeWatch(node, lambda _: None)
    watch = ListWatch(find_access(str(path), {}), query, follower, status)
    watch.start()
    try:
        wait_until(lambda: "CERTIFICATE_VERIFY_FAILED" in status.reason, "a failed handshake")
        write("expired", cluster.ca.read_bytes())
        wait_until(lambda: "401" in status.reason, "a refusal")
        write(cluster.token(), cluster.ca.read_bytes())
        wait_until(lambda: status.is_up, "the watch")
    finally:
        watch.close()
