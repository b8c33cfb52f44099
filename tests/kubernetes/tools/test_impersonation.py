"""A kubeconfig that acts as another user, against the real API server."""

import pytest
import yaml

from temper_kube.connection import Connection
from temper_kube.kubeconfig import find_access
from tests.kubernetes.tools.conftest import here

REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
READER = {
    "as": "reader-\u00e9",
    "as-uid": "7",
    "as-groups": ["viewers", "night shift"],
    "as-user-extra": {"Scopes/A%B": ["one", "two"], "team": ["x"]},
}


@pytest.fixture
def acting_as(cluster, tmp_path):
    """Write the administrator's kubeconfig with those keys of its user, and return its path."""

    def write(**keys):
        kubeconfig = yaml.safe_load((cluster.directory / "kubeconfig").read_text())
        kubeconfig["users"][0]["user"] |= keys
        path = tmp_path / "acting.kubeconfig"
        path.write_text(yaml.safe_dump(kubeconfig))
        return str(path)

    return write


def test_the_api_server_sees_the_user_that_the_kubeconfig_acts_as(acting_as):
    with Connection(find_access(acting_as(**READER))) as connection:
        seen = connection.ask("POST", REVIEWS, REVIEW)["status"]["userInfo"]

    assert (seen["username"], seen["uid"]) == ("reader-\u00e9", "7")
    assert set(seen["groups"]) == {"viewers", "night shift", "system:authenticated"}
    assert seen["extra"] == {"scopes/a%b": ["one", "two"], "team": ["x"]}


def test_a_command_has_no_more_rights_than_that_user(cluster, node, acting_as):
    cluster.annotate(node, agent_status="enforcing")
    path = acting_as(**{"as": "reader", "as-groups": ["viewers"]})

    done = [here("k8s", *words, "--kubeconfig", path) for words in (["status"], ["restore", node])]

    assert [each.returncode for each in done] == [3, 3]
    assert all("forbidden: reader lacks the right" in each.stderr for each in done)
    assert cluster.annotations(node) == {"temper.codes/agent-status": "enforcing"}
