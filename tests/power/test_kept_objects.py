"""What the operator keeps of objects that any tenant may make as large as etcd allows."""

import pickle

from temper_plugin_power.controller.pods import MOST_CONTAINERS, pod_reader
from temper_plugin_power.controller.stored_profiles import stored_profile
from temper_plugin_power.resources.reading import CUT

LARGE = "a" * 260_000
READ = pod_reader(("joulie.io", "temper.codes"))
GIB = 2**30


def pod(containers, owner="web", **annotations):
    controller = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "1"}
    return {
        "metadata": {
            "namespace": "shop",
            "name": "web-1",
            "uid": "2",
            "annotations": annotations,
            "ownerReferences": [{**controller, "controller": True}],
        },
        "spec": {"containers": containers},
        "status": {"phase": "Pending"},
    }


def test_a_large_pod_takes_little():
    containers = [
        {"name": f"c{number}", "image": "x" * 512, "resources": {"limits": {"memory": "1Gi"}}}
        for number in range(200)
    ]
    hints = {
        f"{prefix}/{key}": LARGE
        for prefix, key in (
            ("temper.codes", "workload-profile"),
            ("joulie.io", "workload-class"),
            ("temper.codes", "cpu-sensitivity"),
        )
    }

    known = READ(pod(containers, owner=LARGE, **hints))

    assert len(pickle.dumps(known)) < 16_000
    assert known.owner.name == "a" * CUT
    assert known.hints.ignored_class.startswith("aaa")
    assert known.measured.memory_limit_bytes == 200 * GIB
    assert len(known.measured.pod.containers) == MOST_CONTAINERS + 1


def test_a_usual_pod_is_kept_as_it_is():
    known = READ(
        pod([{"name": "app", "image": "shop:1"}], **{"joulie.io/workload-class": "standard"})
    )

    assert known.hints.workload_class == "standard"
    assert [each.image for each in known.measured.pod.containers] == ["shop:1"]
    assert known.owner.name == "web"


def test_the_node_of_a_profile_has_the_length_of_a_name():
    item = {"metadata": {"namespace": "shop", "name": "web"}, "spec": {"nodeName": LARGE}}

    assert stored_profile(item).node == "a" * CUT
