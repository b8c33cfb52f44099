"""``temper k8s doctor`` has nothing to say against what the chart itself installs."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.control_plane.cluster import RBAC

ROOT = Path(__file__).parents[3]


@pytest.fixture
def kubectl(cluster):
    def run(*arguments, **given):
        return subprocess.run(
            ["kubectl", *arguments],
            env={**os.environ, **cluster.environment},
            check=True,
            capture_output=True,
            text=True,
            **given,
        )

    return run


@pytest.fixture
def install(cluster, kubectl, tmp_path):
    """Render the chart with values and make all of it but hooks; it is gone afterwards."""
    found = subprocess.run(
        [str(ROOT / "kube/build"), "--where", "helm"], check=True, capture_output=True, text=True
    )
    made = []

    def render(*options):
        command = [f"{found.stdout.strip()}/helm", "template", "temper", "deploy/helm/temper"]
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        done = subprocess.run(
            [*command, "-n", "temper", "--no-hooks", *options],
            cwd=ROOT,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        made.append(done.stdout)
        for text in made:
            kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", input=text)
        kubectl("create", "-f", "-", input=done.stdout)

    yield render
    for text in made:
        kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", input=text)
    for document in RBAC:
        cluster.make(document)


def test_the_default_installation_is_clean(k8s, install):
    install()

    told = json.loads(k8s("doctor", "-o", "json").stdout)

    assert told["findings"] == []
    assert told["unknown"] == []


def test_an_account_of_another_name_is_the_one_that_is_asked_about(k8s, install):
    install("--set", "serviceAccount.name=theirs")

    clean = json.loads(k8s("doctor", "-o", "json").stdout)
    install("--set", "serviceAccount.name=theirs,rbac.create=false")
    told = json.loads(k8s("doctor", "-o", "json").stdout)

    assert clean["findings"] == []
    assert [each["check"] for each in told["findings"]] == ["rights"]
    assert "system:serviceaccount:temper:theirs may not" in told["findings"][0]["detail"]


def test_a_webhook_that_has_not_begun_is_told(k8s, install):
    install("--set", "webhook.enabled=true")

    told = json.loads(k8s("doctor", "-o", "json").stdout)

    assert {(each["check"], each["severity"]) for each in told["findings"]} == {
        ("webhook", "warning")
    }
    assert "no pod answers" in json.dumps(told)
