"""The chart as a release in a real cluster, and what a cluster holds."""

import subprocess

import yaml
from attrs import frozen

from tests.control_plane.cluster import wait_until
from tests.kubernetes.chart.charts import CHART, Helm

NAME = "temper"
NAMESPACE = "temper"
OVERCOMMITTED = "overcommitted"
"""A namespace that the webhook serves."""


@frozen
class Release:
    """One release, made and changed by the real helm."""

    helm: Helm

    def install(self, *options, namespace=NAMESPACE):
        return self.helm.run("install", NAME, CHART, "--namespace", namespace, *options)

    def installed(self, *options):
        return _succeeded(self.install(*options))

    def upgraded(self, *options):
        asked = ("upgrade", NAME, CHART, "--namespace", NAMESPACE, *options)
        return _succeeded(self.helm.run(*asked))

    def rolled_back(self, revision):
        return _succeeded(self.helm.run("rollback", NAME, str(revision), "--namespace", NAMESPACE))

    def uninstalled(self, *options):
        asked = ("uninstall", NAME, "--namespace", NAMESPACE, "--ignore-not-found", *options)
        return _succeeded(self.helm.run(*asked))


def _succeeded(done):
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def everything_in(cluster):
    """Return resource, namespace and name of all that the cluster holds but events, which pass."""
    found = set()
    for path, resource in _resources(cluster):
        if resource["name"] == "events" or "list" not in resource["verbs"]:
            continue
        for item in _found(cluster, f"{path}/{resource['name']}", "items"):
            metadata = item["metadata"]
            found.add((resource["name"], metadata.get("namespace", ""), metadata["name"]))
    return found


def _resources(cluster):
    paths = ["/api/v1"]
    for group in cluster.call("GET", "/apis")["groups"]:
        paths += [f"/apis/{version['groupVersion']}" for version in group["versions"]]
    for path in paths:
        for resource in _found(cluster, path, "resources"):
            if "/" not in resource["name"]:
                yield path, resource


def _found(cluster, path, key):
    """Return a list of the server, nothing of a kind that goes meanwhile."""
    answer = cluster.client.get(path)
    assert answer.is_success or answer.status_code == 404, answer.text
    return answer.json()[key] if answer.is_success else []


def await_nothing_new(cluster, before):
    """Wait until nothing is there that was not; what the server itself cleans up takes a moment."""
    left = lambda: everything_in(cluster) - before  # noqa: E731 - for the message
    try:
        wait_until(lambda: not left(), "nothing new is left", 15)
    except AssertionError as error:
        raise AssertionError(f"left behind: {sorted(left())}") from error


def apply_dry(cluster, objects, *options):
    """Have the API server judge the objects as strictly as it can, without making them."""
    asked = ["kubectl", "apply", "--server-side", "--dry-run=server", "--validate=strict"]
    return subprocess.run(
        [*asked, *options, "-f", "-"],
        input=yaml.safe_dump_all(objects),
        capture_output=True,
        text=True,
        check=False,
        env=cluster.environment,
    )


def monitoring_definitions():
    """Return just enough of the Prometheus operator's definitions for the server to take them."""
    for kind in ("ServiceMonitor", "PrometheusRule"):
        plural = f"{kind.lower()}s"
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        yield {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.monitoring.coreos.com"},
            "spec": {
                "group": "monitoring.coreos.com",
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": schema},
                    }
                ],
            },
        }
