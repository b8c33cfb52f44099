"""A real control plane for the tests, by the scripts in ``kube/``, and what tests do with it."""

import base64
import copy
import json
import ssl
import subprocess
import time
import uuid
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import yaml

from temper_kube.access import Access, Credentials

ROOT = Path(__file__).parents[2]
KUBE = ROOT / "kube"
RBAC = list(yaml.safe_load_all((ROOT / "plugins/kubernetes/rbac.yaml").read_text()))
RIGHTS_GROUP = "rbac.authorization.k8s.io"
PATCHES = {"Content-Type": "application/merge-patch+json"}
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{}/pods",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "Event": "/api/v1/namespaces/{}/events",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "ControllerRevision": "/apis/apps/v1/namespaces/{}/controllerrevisions",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
}


class Cluster:
    """The control plane, seen by its administrator."""

    def __init__(self, directory, *options):
        self.directory = directory
        subprocess.run(
            [str(KUBE / "up"), *options, str(directory)], check=True, capture_output=True
        )
        self.environment = _environment(directory / "env")
        self.url = self.environment["TEMPER_KUBE_URL"]
        self.ca = directory / "ca.crt"
        user = yaml.safe_load((directory / "kubeconfig").read_text())["users"][0]["user"]
        self.client = httpx2.Client(
            base_url=self.url,
            verify=ssl.create_default_context(cafile=str(self.ca)),
            headers={"Authorization": f"Bearer {user['token']}"},
            timeout=30,
            trust_env=False,
        )

    def down(self):
        self.client.close()
        subprocess.run([str(KUBE / "down"), str(self.directory)], check=True, capture_output=True)

    def restart(self, *options):
        asked = [str(KUBE / "restart"), str(self.directory), *options]
        subprocess.run(asked, check=True, capture_output=True)

    def backup(self, *options):
        """Copy etcd's data, or put the copy back with ``--restore``."""
        asked = [str(KUBE / "backup"), str(self.directory), *options]
        subprocess.run(asked, check=True, capture_output=True)

    def call(self, method, path, body=None, **headers):
        return _answered(self.client.request(method, path, json=body, headers=headers))

    def make(self, document):
        """Create an object, or replace the one of that name."""
        path = _path(document)
        answer = self.client.post(path, json=document)
        if answer.status_code == 409:
            answer = self.client.put(f"{path}/{document['metadata']['name']}", json=document)
        return _answered(answer)

    def run(self, pod):
        """Create a pod and call it Running, as the kubelet does that has accepted it."""
        self.make(pod)
        return self.patch(pod, {"status": {"phase": "Running"}}, "/status")

    def account_with_all_but(self, role, resource="", verb=""):
        """Make a service account with all rights of a role but one; return its name.

        The role is a ClusterRole, or a Role of the namespace ``temper``.
        """
        name = unique(role["metadata"]["name"])
        place = {"namespace": "temper"} if role["kind"] == "Role" else {}
        rules = copy.deepcopy(role["rules"])
        for rule in rules:
            if rule["resources"] == [resource]:
                rule["verbs"].remove(verb)
        named = {"metadata": {"name": name, **place}}
        account = {"kind": "ServiceAccount", "metadata": {"name": name, "namespace": "temper"}}
        binding = {
            **named,
            "kind": f"{role['kind']}Binding",
            "roleRef": {"apiGroup": RIGHTS_GROUP, "kind": role["kind"], "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "temper"}],
        }
        left = [rule for rule in rules if rule["verbs"]]
        for document in (account, {**role, **named, "rules": left}, binding):
            self.make(document)
        return name

    def may(self, account, verb, resource, group="", namespace="temper"):
        """Return whether the API server lets a service account of ``temper`` do something."""
        asked = {"verb": verb, "resource": resource, "group": group, "namespace": namespace}
        spec = {"user": f"system:serviceaccount:temper:{account}", "resourceAttributes": asked}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return self.call("POST", path, {"spec": spec})["status"]["allowed"]

    def patch(self, document, change, subresource=""):
        path = f"{_path(document)}/{document['metadata']['name']}{subresource}"
        return self.call("PATCH", path, change, **PATCHES)

    def delete(self, document, **options):
        path = f"{_path(document)}/{document['metadata']['name']}"
        body = {"gracePeriodSeconds": 0, **options}
        answer = self.client.request("DELETE", path, json=body)
        assert answer.status_code in (200, 202, 404), answer.text

    def get(self, kind, name, namespace=""):
        return self.call("GET", f"{PATHS[kind].format(namespace)}/{name}")

    def node(self, name):
        """Make a node of 64 CPUs."""
        made = self.make({"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}})
        size = {"cpu": "64", "memory": "64Gi", "pods": "500"}
        self.patch(made, {"status": {"capacity": size, "allocatable": size}}, "/status")

    def without_node(self, name):
        """Delete the node and every pod on it."""
        selected = f"/api/v1/pods?fieldSelector=spec.nodeName={name}"
        for item in self.call("GET", selected)["items"]:
            self.delete({**item, "kind": "Pod"})
        self.delete({"kind": "Node", "metadata": {"name": name}})

    def annotate(self, node, **values):
        wanted = {f"temper.codes/{key.replace('_', '-')}": value for key, value in values.items()}
        return self.patch(
            {"kind": "Node", "metadata": {"name": node}}, {"metadata": {"annotations": wanted}}
        )

    def annotations(self, node):
        return self.get("Node", node)["metadata"].get("annotations") or {}

    def events(self, name, namespace="default"):
        selected = f"fieldSelector=involvedObject.name={name}"
        return self.call("GET", f"/api/v1/namespaces/{namespace}/events?{selected}")["items"]

    def token(self, account="temper-agent", namespace="temper"):
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        return self.call("POST", path, {"spec": {}})["status"]["token"]

    def compact(self):
        """Make etcd forget every version but the newest, for good."""
        etcd = self.environment["TEMPER_KUBE_ETCD"]
        ask = {"key": base64.b64encode(b"/").decode()}
        with httpx2.Client(base_url=etcd, trust_env=False, timeout=30) as client:
            found = client.post("/v3/kv/range", json=ask).raise_for_status().json()
            newest = found["header"]["revision"]
            done = client.post("/v3/kv/compaction", json={"revision": newest, "physical": True})
            done.raise_for_status()


def pod(name, node, namespace="default", *, cpu=None, limit=None, priority_class=None, **metadata):
    """Make a pod that is bound to *node*."""
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    if limit:
        resources["limits"] = {"cpu": limit, "memory": "64Mi"}
        resources["requests"] = {"cpu": cpu or limit, "memory": "64Mi"}
    spec = {
        "nodeName": node,
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "app", "image": "registry.example/app:1", "resources": resources}],
    }
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": spec,
    }


def unique(prefix):
    """Return a name that no other test has."""
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


def wait_until(condition, what, seconds=20.0):
    """Return what *condition* gives as soon as it is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


def wait_for_value(read, wanted, what, seconds=60.0):
    """Wait until *read* gives *wanted*, for as long as it gives something else every so often."""
    last, deadline = None, time.monotonic() + seconds
    while (now := read()) != wanted:
        if now != last:
            last, deadline = now, time.monotonic() + seconds
        assert time.monotonic() < deadline, f"no progress for {seconds} s: {what}: {now}"
        time.sleep(0.05)


def access_by(url, token_file, ca):
    """Return the way to *url* in the name of who the token is of."""
    parts = urlsplit(url)
    return Access(
        parts.hostname, parts.port, credentials=Credentials(str(token_file), ca_file=str(ca))
    )


def _answered(answer):
    assert answer.is_success, f"{answer.request.url.path}: {answer.text}"
    return answer.json()


def _path(document):
    metadata = document["metadata"]
    return PATHS[document["kind"]].format(metadata.get("namespace", "default"))


def _environment(path):
    said = subprocess.run(
        [
            "bash",
            "-c",
            f"source {path}; python3 -c 'import json, os; print(json.dumps(dict(os.environ)))'",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(said.stdout)
