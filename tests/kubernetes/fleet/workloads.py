"""A Deployment's pod with two revisions, and a kubelet that has a log of it."""

import http.server
import ssl
import subprocess
import threading
from contextlib import contextmanager

from tests.control_plane.cluster import pod, unique

SECRET = "hunter2-of-the-shop"
HOSTILE = "<img src=x onerror=alert(1)>"
HASHES = ("aaa", "bbb")


def template(image, **env):
    variables = [{"name": name, "value": value} for name, value in env.items()]
    container = {"name": "app", "image": f"registry.example/{image}", "env": variables}
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}


def owned_by(kind, name, uid):
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


def replica_set(name, number, deployment, made):
    labels = {"pod-template-hash": HASHES[number - 1]}
    made["metadata"]["labels"] = {**made["metadata"]["labels"], **labels}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "annotations": {"deployment.kubernetes.io/revision": str(number)},
            "ownerReferences": [deployment],
        },
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": made},
    }


def web_pod(cluster, node):
    """Make a pod of the second of two revisions, with an event. Return its name."""
    name = unique("web")
    deployment = owned_by("Deployment", name, unique("uid"))
    first = template("web:1", KEY="old", GONE="x")
    second = template("web:2", KEY=SECRET)
    cluster.make(replica_set(f"{name}-aaa", 1, deployment, first))
    own = cluster.make(replica_set(f"{name}-bbb", 2, deployment, second))
    owner = owned_by("ReplicaSet", own["metadata"]["name"], own["metadata"]["uid"])
    made = pod(f"{name}-bbb-1", node, ownerReferences=[owner])
    made["spec"] = {**made["spec"], **second["spec"]}
    event_of(cluster, cluster.run(made))
    return f"{name}-bbb-1"


def event_of(cluster, made):
    about = made["metadata"]
    where = {"kind": "Pod", "name": about["name"], "namespace": "default", "uid": about["uid"]}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": unique("event"), "namespace": "default"},
        "involvedObject": where,
        "type": "Warning",
        "reason": "BackOff",
        "message": f"Back-off pulling image {HOSTILE}",
        "count": 3,
        "lastTimestamp": "2026-11-28T04:18:22Z",
        "source": {"component": "kubelet"},
    }
    cluster.make(event)


def set_pod(cluster, node):
    """Make a pod of a DaemonSet's second revision. Return its name."""
    name = unique("set")
    owner = owned_by("DaemonSet", name, unique("uid"))
    for number, made in enumerate((template("set:1"), template("set:2")), start=1):
        revision = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {"name": f"{name}-{HASHES[number - 1]}", "ownerReferences": [owner]},
            "revision": number,
            "data": {"spec": {"template": {**made, "$patch": "replace"}}},
        }
        cluster.make(revision)
    labels = {"controller-revision-hash": HASHES[1]}
    cluster.run(pod(f"{name}-1", node, ownerReferences=[owner], labels=labels))
    return f"{name}-1"


@contextmanager
def kubelet(cluster, node, folder, lines):
    """Answer requests for logs of pods on *node*, as the kubelet does, with *lines*.

    Yield the paths that it was asked for.
    """
    asked = []

    class Kubelet(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write("".join(f"{line}\n" for line in lines).encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Kubelet)
    server.socket = _tls(folder).wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": server.server_port}},
    }
    named = {"kind": "Node", "metadata": {"name": node}}
    cluster.patch(named, {"status": status}, "/status")
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _tls(folder):
    key, certificate = folder / "kubelet.key", folder / "kubelet.crt"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    files = ["-subj", "/CN=kubelet", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
