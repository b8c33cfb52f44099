"""From pods to hints: real plans, compiled as for a node, for real threads in real cgroups."""

import pytest
from attrs import evolve

from temper_core.decide.decider import Decider
from temper_core.plan import ProfileCatalogue
from temper_core.records.pods import Container
from temper_core.records.profiles import LoadedProfile, WorkloadProfile
from temper_core.records.thread_groups import ThreadGroup, ThreadMatch, Treatment
from temper_core.settings.models import Settings
from temper_core.testing import make_machine, make_pod

CRITICAL, NORMAL, BACKGROUND = 1_000_000, 1, -1000
GROUPS = (
    ThreadGroup("flush", (ThreadMatch(comm_prefix="io-"),), Treatment.YIELD),
    ThreadGroup("log", (ThreadMatch(title_pattern="walwriter"),), Treatment.YIELD),
    ThreadGroup("rest"),
)
CATALOGUE = ProfileCatalogue((LoadedProfile(WorkloadProfile("db", GROUPS), "test"),))


@pytest.fixture
def decider(host):
    return Decider(Settings(), make_machine(cores=16), host, CATALOGUE)


@pytest.fixture
def pod(cgroups, workload):
    """Make a pod with its cgroups as the kubelet and containerd name them, and a process in it."""

    def make(number, priority, *words, **changes):
        uid = f"5c0ffee5-0000-4000-8000-{number:012d}"
        runtime_id = f"{number:064x}"
        slice_name = f"kubepods-burstable-pod{uid.replace('-', '_')}.slice"
        home = cgroups.make(f"{slice_name}/cri-containerd-{runtime_id}.scope")
        process = workload(*words)
        process.move_to(home)
        found = make_pod(
            name=f"p{number}",
            uid=uid,
            priority=priority,
            cpu_request_millis=1000,
            containers=(Container("main", runtime_id=f"containerd://{runtime_id}"),),
            **changes,
        )
        return found, process

    return make


def hinted(steerer, tid):
    return steerer.truth()[tid].hinted


def test_every_pods_threads_are_hinted_into_their_tiers_layer(steerer, decider, pod):
    (vip, one), (web, two), (batch, three) = (
        pod(number, priority) for number, priority in enumerate((CRITICAL, NORMAL, BACKGROUND))
    )

    steerer.ready(decider.decide([vip, web, batch], steered=True).wanted)

    found = {each.pid: hinted(steerer, each.pid) for each in (one, two, three)}
    assert found == {one.pid: "critical", two.pid: "normal", three.pid: "open"}
    assert steerer.state.unresolved == ()


def test_a_pod_that_changes_its_tier_is_hinted_anew_with_the_same_layers_in_force(
    steerer, decider, pod
):
    (vip, one), (web, two) = pod(1, CRITICAL), pod(2, NORMAL)
    in_force = decider.decide([vip, web], steered=True).wanted
    steerer.ready(in_force)

    risen = evolve(web, priority=CRITICAL)
    steerer.apply(decider.decide([vip, risen], in_force, steered=True, now=1.0).by_now)
    steerer.turn(1.0)

    assert (hinted(steerer, one.pid), hinted(steerer, two.pid)) == ("critical", "critical")


def test_thread_groups_are_told_apart_by_name_and_by_title(steerer, decider, pod):
    annotations = {"temper.codes/workload-profile": "db"}
    (server, one) = pod(1, CRITICAL, annotations=annotations)
    (writer, two) = pod(2, CRITICAL, "walwriter", annotations=annotations)
    steerer.ready(decider.decide([server, writer], steered=True).wanted)

    flushing, working = one.thread("io-1"), one.thread("worker")

    assert hinted(steerer, flushing) == "open"
    assert hinted(steerer, working) == "critical"
    assert hinted(steerer, two.pid) == "open"


def test_a_pod_that_has_gone_leaves_its_threads_to_the_nodes_defaults(steerer, decider, pod):
    (vip, one), (web, _) = pod(1, CRITICAL), pod(2, NORMAL)
    in_force = decider.decide([vip, web], steered=True).wanted
    steerer.ready(in_force)

    steerer.apply(decider.decide([web], in_force, steered=True, now=1.0).by_now)
    steerer.turn(1.0)

    assert hinted(steerer, one.pid) == "open"
