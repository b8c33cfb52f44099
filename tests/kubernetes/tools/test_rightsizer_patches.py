"""The rightsizer's patches, applied to real objects by the real kubectl."""

import json
import os
import subprocess

import pytest
from attrs import asdict

from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.commands.patches import as_patches

MIB = 1024 * 1024
KINDS = ("Deployment", "StatefulSet", "DaemonSet", "CronJob")
WANTED = Resources(1010, 1500, 300 * MIB, 512 * MIB)
APPLIED = {"requests": {"cpu": "1010m", "memory": "300Mi"}, "limits": {"cpu": "1500m"}}


@pytest.fixture
def kubectl(cluster):
    def run(*arguments, **given):
        done = subprocess.run(
            ["kubectl", "-n", "shop", *arguments],
            env={**os.environ, **cluster.environment},
            check=False,
            capture_output=True,
            text=True,
            **given,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def workload(kind):
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [
                {
                    "name": "app",
                    "image": "registry.example/app:1",
                    "resources": {
                        "requests": {"cpu": "500m", "memory": "256Mi"},
                        "limits": {"cpu": "1", "memory": "512Mi"},
                    },
                },
                {"name": "side", "image": "registry.example/side:1"},
            ],
            "initContainers": [
                {"name": "proxy", "image": "registry.example/proxy:1", "restartPolicy": "Always"}
            ],
        },
    }
    head = {"kind": kind, "metadata": {"name": "web", "namespace": "shop"}}
    if kind == "CronJob":
        template["spec"]["restartPolicy"] = "Never"
        spec = {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": template}}}
        return {"apiVersion": "batch/v1", **head, "spec": spec}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", **head, "spec": spec}


def containers_of(document, key="containers"):
    spec = document["spec"]
    if document["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    return spec["template"]["spec"][key]


@pytest.fixture
def patches():
    """The patches of a report on each kind of workload."""
    now = Resources(500, 1000, 256 * MIB, 512 * MIB)
    rows = [
        {
            "namespace": "shop",
            "owner": f"{kind}/web",
            "container": container,
            "container_kind": "app" if container == "app" else "sidecar",
            "current": asdict(now),
            "recommended": asdict(WANTED),
            "keeps": False,
            "reasons": ["1 hot thread uses 1.01 CPUs at P95"],
        }
        for kind in KINDS
        for container in ("app", "proxy")
    ]
    return as_patches({"containers": rows})


def test_patches_are_applied_to_each_kind_and_again_with_the_same_result(kubectl, patches):
    for kind in KINDS:
        kubectl("create", "-f", "-", input=json.dumps(workload(kind)))
    names = [f"{kind}/web" for kind in KINDS]
    apply = ("apply", "--server-side", "--force-conflicts", "--field-manager=temper", "-f", "-")

    kubectl(*apply, input=patches)
    once = json.loads(kubectl("get", *names, "-o", "json"))["items"]
    kubectl(*apply, input=patches)
    twice = json.loads(kubectl("get", *names, "-o", "json"))["items"]

    kubectl("delete", *names)
    for item in once:
        app, side = containers_of(item)
        assert app["image"] == "registry.example/app:1"
        assert app["resources"]["requests"] == APPLIED["requests"]
        assert app["resources"]["limits"] == {**APPLIED["limits"], "memory": "512Mi"}
        assert side["name"] == "side"
        (proxy,) = containers_of(item, "initContainers")
        assert proxy["image"] == "registry.example/proxy:1"
        assert proxy["resources"]["requests"] == APPLIED["requests"]
    generations = [[item["metadata"]["generation"] for item in items] for items in (once, twice)]
    assert generations == [[2] * len(KINDS)] * 2


def test_kustomize_takes_the_patches(kubectl, patches, tmp_path):
    (tmp_path / "all.json").write_text(
        json.dumps(
            {"apiVersion": "v1", "kind": "List", "items": [workload(kind) for kind in KINDS]}
        )
    )
    (tmp_path / "patches.yaml").write_text(patches)
    (tmp_path / "kustomization.yaml").write_text(
        "namespace: shop\nresources: [all.json]\npatches:\n- path: patches.yaml\n"
    )

    built = kubectl("kustomize", str(tmp_path))

    assert built.count("cpu: 1010m") == 2 * len(KINDS)
    assert built.count("memory: 512Mi") == len(KINDS)
