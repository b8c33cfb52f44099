"""The pods of a training in a cluster, as an API server tells them."""

import pytest

from temper_core import MachineError
from temper_kube.kubectl import AgentPod
from temper_kube.placing import PlacedPod
from temper_plugin_trainer.remote.canary import canary_of
from temper_plugin_trainer.remote.pod_watch import PodWatch

OWNERS = [{"uid": "u-owner", "controller": True}]


def pod(name, node="n1"):
    return {
        "metadata": {"name": name, "uid": f"u-{name}", "ownerReferences": OWNERS},
        "spec": {"nodeName": node},
        "status": {"phase": "Running"},
    }


class MadeKubectl:
    """Answers with made objects, and keeps what it was asked."""

    def __init__(self):
        self.asked = []
        self.pods = []

    def read(self, *words):
        self.asked.append(words)
        return {"items": self.pods}


@pytest.fixture
def kubectl():
    return MadeKubectl()


def placed(kubectl):
    return PlacedPod("shop/web-0", "n1", AgentPod(kubectl, "temper", "agent"), pod("web-0"))


@pytest.mark.parametrize("name", ["--profile=heap", "-v=9", "../x", "a b", ""])
def test_a_name_that_could_be_an_option_of_kubectl_is_refused(kubectl, name):
    kubectl.pods.extend([pod("web-0"), pod(name)])

    with pytest.raises(MachineError, match="kubectl answers with a pod whose name is"):
        canary_of(kubectl, placed(kubectl), 1.0)


def test_names_follow_the_end_of_the_options(kubectl):
    kubectl.pods.extend([pod("web-0"), pod("web-1"), pod("web-2", "n2")])
    canary = canary_of(kubectl, placed(kubectl), 1.0)
    kubectl.pods.pop()

    assert PodWatch(kubectl, canary).look() == ""

    words = kubectl.asked[-1]
    assert words[words.index("--") :] == ("--", "pods", "web-0", "web-1")
