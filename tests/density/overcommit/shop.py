"""A namespace of a real cluster that asks for lowered requests, and webhooks that serve it."""

import base64
import copy
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

import httpx2
import yaml

from temper_kube.api_server import ApiServer
from temper_plugin_density.cluster_access import find_access
from temper_plugin_density.overcommit.cluster import ClusterObjects
from temper_plugin_density.overcommit.installing import WebhookNames, manifests
from temper_plugin_density.overcommit.keeping import CertificateKeeper
from temper_plugin_density.overcommit.material import Terms
from temper_serving.validity import now
from tests.control_plane.cluster import ROOT, unique, wait_until

TEMPER = str(Path(sys.executable).with_name("temper"))
RIGHTS = list(yaml.safe_load_all((ROOT / "plugins/density/overcommit-rbac.yaml").read_text()))
LABEL = "temper.codes/overcommit"
ORIGINALS = "temper.codes/original-cpu-requests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Role": RBAC + "/namespaces/{}/roles",
    "RoleBinding": RBAC + "/namespaces/{}/rolebindings",
    "ClusterRole": RBAC + "/clusterroles",
    "ClusterRoleBinding": RBAC + "/clusterrolebindings",
}
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
NAMES = frozenset(
    [
        "127.0.0.1",
        "temper-webhook.temper",
        "temper-webhook.temper.svc",
        "temper-webhook.temper.svc.cluster.local",
    ]
)
"""What a replica of these tests may be called."""
SECRETS = "/api/v1/namespaces/temper/secrets"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def pod(name=None, requests=None, limits=None, **spec):
    """Make a pod of one container, without its namespace."""
    resources = {"requests": requests or {}, "limits": limits or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name or unique("pod")},
        "spec": {
            "containers": [
                {"name": "app", "image": "registry.example/app:1", "resources": resources}
            ],
            **spec,
        },
    }


def request_of(made, container=0, kind="containers"):
    return made["spec"][kind][container]["resources"].get("requests", {}).get("cpu")


def originals_of(made):
    return json.loads((made["metadata"].get("annotations") or {}).get(ORIGINALS, "null"))


class Shop:
    """One labelled namespace with a webhook configuration and a Secret of its own."""

    def __init__(self, cluster, directory):
        self.cluster, self.directory = cluster, directory
        self.namespace, self.configuration = unique("shop"), unique("overcommit")
        self.secret, self.port = unique("tls"), free_port()
        self.account = self.grant(RIGHTS)
        self.url = f"https://127.0.0.1:{self.port}/mutate"
        self.label("enabled")
        data, authority = self.make_authority()
        secret = {"kind": "Secret", "metadata": {"name": self.secret}, "type": "Opaque"}
        cluster.call("POST", SECRETS, {**secret, "data": data})
        cluster.call("POST", CONFIGURATIONS, self._configuration())
        self.trust(authority)

    def close(self):
        with suppress(AssertionError):
            self.cluster.call("DELETE", f"{CONFIGURATIONS}/{self.configuration}")

    def label(self, value):
        self.cluster.make(
            {
                "kind": "Namespace",
                "metadata": {"name": self.namespace, "labels": {LABEL: value}},
            }
        )

    def grant(self, rights):
        """Make an account with those rights on this shop's objects."""
        text = json.dumps(rights).replace("temper-webhook-tls", self.secret)
        text = text.replace("temper-overcommit", self.configuration)
        account = unique("webhook")
        for document in json.loads(text.replace("temper-webhook", account)):
            path = PATHS[document["kind"]].format("temper")
            self.cluster.call("POST", path, document)
        return account

    def kubeconfig(self, account=None):
        """Write a kubeconfig with a token of that account."""
        account = account or self.account
        path = self.directory / f"{account}.kubeconfig"
        known = yaml.safe_load((self.cluster.directory / "kubeconfig").read_text())
        known["users"][0]["user"] = {"token": self.cluster.token(account)}
        path.write_text(yaml.safe_dump(known))
        return path

    def keeper(self, account=None):
        """Return what reads this shop's objects, in the test's own process."""
        connect = partial(ApiServer, find_access(self.kubeconfig(account)))
        objects = ClusterObjects(connect, "temper", self.secret, self.configuration)
        return CertificateKeeper(objects, Terms(NAMES))

    def make_authority(self):
        """Make another authority and return it: the Secret's data, and PEM to trust."""
        names = WebhookNames("temper", "temper-webhook", self.secret, self.configuration)
        text = manifests(names, timedelta(days=3650), now(), None)
        secret, _ = yaml.safe_load_all(text)
        return secret["data"], base64.b64decode(secret["data"]["ca.crt"])

    def replace_authority(self):
        """Replace the Secret's authority, and trust the one before beside it."""
        data, authority = self.make_authority()
        self.trust(authority, self.trusted())
        self.set_secret(data)

    def trusted(self):
        """Return the CA bundle of the configuration."""
        (webhook,) = self.configured()["webhooks"]
        return base64.b64decode(webhook["clientConfig"].get("caBundle", ""))

    def trust(self, *authorities):
        """Let the API server trust exactly these."""
        bundle = base64.b64encode(b"".join(authorities)).decode() or None
        self.set_webhook(clientConfig={"url": self.url, "caBundle": bundle})

    def set_secret(self, data):
        """Change entries of the Secret; None removes one."""
        headers = {"Content-Type": "application/merge-patch+json"}
        self.cluster.call("PATCH", f"{SECRETS}/{self.secret}", {"data": data}, **headers)

    def configured(self):
        return self.cluster.call("GET", f"{CONFIGURATIONS}/{self.configuration}")

    def set_webhook(self, **changes):
        """Change fields of the configuration's one webhook."""
        change = {"webhooks": [{"name": "overcommit.temper.codes", **changes}]}
        headers = {"Content-Type": "application/strategic-merge-patch+json"}
        self.cluster.call("PATCH", f"{CONFIGURATIONS}/{self.configuration}", change, **headers)

    def create(self, document, *, dry_run=False, namespace=None):
        path = f"/api/v1/namespaces/{namespace or self.namespace}/pods"
        return self.cluster.call("POST", f"{path}{'?dryRun=All' if dry_run else ''}", document)

    def lowers(self):
        """Whether a pod that is only tried would be lowered."""
        made = self.create(pod(requests={"cpu": "1"}), dry_run=True)
        return request_of(made) == "700m"

    def until_it_lowers(self, seconds=30.0):
        wait_until(self.lowers, "a pod is lowered", seconds)

    def _configuration(self):
        return {
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": self.configuration},
            "webhooks": [
                {
                    "name": "overcommit.temper.codes",
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": {"url": self.url},
                    "failurePolicy": "Ignore",
                    "timeoutSeconds": 2,
                    "sideEffects": "None",
                    "reinvocationPolicy": "Never",
                    "namespaceSelector": {
                        "matchLabels": {LABEL: "enabled"},
                        "matchExpressions": [
                            {
                                "key": "kubernetes.io/metadata.name",
                                "operator": "In",
                                "values": [self.namespace],
                            }
                        ],
                    },
                    "rules": [
                        {
                            "operations": ["CREATE"],
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "resources": ["pods"],
                        }
                    ],
                }
            ],
        }


class Replica:
    """One process of ``temper overcommit serve``."""

    def __init__(self, shop, *options, account=None, port=None):
        self.observed = free_port()
        self.log = shop.directory / f"{unique('webhook')}.log"
        given = {
            "listen": f"127.0.0.1:{port or shop.port}",
            "observe": f"127.0.0.1:{self.observed}",
            "secret": shop.secret,
            "configuration": shop.configuration,
            "name": "127.0.0.1",
            "kubeconfig": str(shop.kubeconfig(account)),
            "check-every": "0.2s",
            "drain": "0s",
        }
        named = [text for key, value in given.items() for text in (f"--{key}", value)]
        environment = dict(os.environ)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [TEMPER, "overcommit", "serve", *named, *options], stderr=log, env=environment
            )

    def answers(self, path):
        """Return what the port that is observed answers; None where nothing does."""
        with suppress(httpx2.HTTPError):
            return httpx2.get(f"http://127.0.0.1:{self.observed}{path}", trust_env=False)
        return None

    def is_ready(self):
        answer = self.answers("/readyz")
        return answer is not None and answer.status_code == 200

    def until_ready(self):
        wait_until(self.is_ready, f"it is ready, which {self.log} tells of", 60.0)
        return self

    def metric(self, name):
        """Return the sum of a metric over all its labels."""
        lines = self.answers("/metrics").text.splitlines()
        return sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith((f"{name} ", f"{name}{{"))
        )

    def events(self):
        return [json.loads(line)["event"] for line in self.log.read_text().splitlines()]

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(30)


def without(rights, resource, verb):
    """Return the rights but one verb on a resource."""
    left = copy.deepcopy(rights)
    for document in left:
        for rule in document.get("rules", ()):
            if rule["resources"] == [resource]:
                rule["verbs"] = [each for each in rule["verbs"] if each != verb]
        if "rules" in document:
            document["rules"] = [rule for rule in document["rules"] if rule["verbs"]]
    return left
