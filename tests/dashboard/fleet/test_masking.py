"""What the page of a cluster hides of a pod."""

import json
import time

import pytest

from temper_plugin_dashboard.fleet.masking import HIDDEN, masked

SECRET = "hunter2"


def pod(**container):
    return {"spec": {"containers": [{"name": "app", **container}]}}


@pytest.mark.parametrize(
    "document",
    [
        pod(env=[{"name": "ANY", "value": SECRET}]),
        {"spec": {"initContainers": [{"env": [{"name": "ANY", "value": SECRET}]}]}},
        {"spec": {"ephemeralContainers": [{"env": [{"name": "ANY", "value": SECRET}]}]}},
        pod(livenessProbe={"httpGet": {"httpHeaders": [{"name": "x", "value": SECRET}]}}),
        pod(lifecycle={"preStop": {"httpGet": {"httpHeaders": [{"name": "x", "value": SECRET}]}}}),
        pod(startupProbe={"httpGet": {"path": f"/health?key={SECRET}", "port": 80}}),
        pod(args=[f"--db-password={SECRET}"]),
        pod(args=["--db-password", SECRET]),
        pod(command=["sh", "-c", f"export API_KEY='{SECRET} x'; run"]),
        pod(command=["sh", "-c", f"curl -H 'Authorization: Bearer {SECRET}' http://a"]),
        pod(command=["run", f'{{"token": "{SECRET}"}}']),
        pod(livenessProbe={"exec": {"command": ["redis-cli", "--password", SECRET]}}),
        pod(args=[f"postgres://user:{SECRET}@db/shop"]),
        pod(args=[f"postgres://user:p@{SECRET}@db/shop"]),
        pod(args=[f"postgres://user:a/{SECRET}@db/shop"]),
        pod(args=[f'PASSWORD="one {SECRET}']),
        pod(args=[f'password=$(echo "a {SECRET}")']),
        {"metadata": {"annotations": {"example.com/token": SECRET}}},
        {"metadata": {"annotations": {"note": f"password={SECRET}"}}},
        {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET}}},
        {"metadata": {"managedFields": [{"manager": SECRET}]}},
        {"spec": {"volumes": [{"csi": {"volumeAttributes": {"any": SECRET}}}]}},
        {"spec": {"volumes": [{"flexVolume": {"options": {"any": SECRET}}}]}},
    ],
)
def test_a_value_that_may_be_a_secret_is_hidden(document):
    assert SECRET in json.dumps(document)
    assert SECRET not in json.dumps(masked(document))


def test_all_else_stays_as_it_is():
    document = {
        "metadata": {"labels": {"app": "token-server"}, "annotations": {"author": "a team"}},
        **pod(
            image="registry.example/app@sha256:12",
            readinessProbe={"httpGet": {"path": "/health", "port": 80}},
            args=["--listen=0.0.0.0:80", "-v", "http://proxy:3128/a", "docker://a/b@sha256:1"],
            env=[{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            envFrom=[{"secretRef": {"name": "shop"}}],
            resources={"limits": {"cpu": "1"}},
        ),
    }

    assert masked(document) == document


def test_the_name_of_a_variable_stays():
    shown = masked(pod(env=[{"name": "PASSWORD", "value": SECRET}]))

    assert shown == pod(env=[{"name": "PASSWORD", "value": HIDDEN}])


@pytest.mark.parametrize("piece", ["token", "a", "-", "token-", "token='", 'token="', "://", " "])
def test_a_long_word_is_read_in_a_moment(piece):
    word = piece * (1_500_000 // len(piece))
    began = time.monotonic()

    masked(pod(args=[word, f"-{word}"]))

    assert time.monotonic() - began < 5
