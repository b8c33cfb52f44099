"""What holds for every steered plan, whatever the pods, the machine and the settings."""

import json

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.engine.capabilities import capabilities_of
from temper_core.engine.configuration_check import check
from temper_core.engine.matching import holds
from temper_core.plan import decide, explain, membership, render_engine
from temper_core.profiles.matching import matches
from temper_core.records.engine_matchers import Matcher
from temper_core.records.pods import Container, Origin, Pod
from temper_core.records.steering import LARGEST_HINT, ScopeKind, Steering
from temper_core.records.threads import ThreadBehaviour, ThreadIdentity
from temper_core.records.tiers import LayerKind, Tier
from tests.core.plan.nodes import a_thread, by_sight
from tests.core.plan.nodes import matches as by_name
from tests.core.plan.nodes import nodes as any_nodes

HINT_MAP = "--task-hint-map=/sys/fs/bpf/temper/hints"
HOST_CGROUPS = [
    "/",
    "init.scope/",
    "system.slice/",
    "system.slice/kubelet.service/",
    "system.slice/app.service/",
    "user.slice/user-0.slice/",
    "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podnew.slice/a/",
    "kubepods/burstable/",
    "web.slice/",
]
PROCESSES = ["kubelet", "temper", "scx_layered", "io", "ffmpeg", "kubectl", "main"]
LESS = settings(max_examples=60, deadline=None)

hosts = st.lists(
    st.builds(
        lambda name, cgroups, process, tier, origin: Pod(
            uid=f"host-{name}",
            namespace="",
            name=name,
            cgroups=cgroups if origin is Origin.UNIT else (),
            containers=(Container("main", processes=(process,)),),
            tier=tier,
            origin=origin,
        ),
        st.sampled_from(["a", "b", "c"]),
        st.lists(st.sampled_from(HOST_CGROUPS), min_size=1, max_size=2).map(tuple),
        st.sampled_from(["kube", "ffmpeg", "kubelet", "ff", "t"]),
        st.sampled_from([None, Tier.CRITICAL, Tier.HIGH, Tier.BACKGROUND]),
        st.sampled_from([Origin.UNIT, Origin.WORKLOAD]),
    ),
    max_size=3,
    unique_by=lambda pod: pod.name,
)
threads = st.builds(
    ThreadIdentity,
    st.sampled_from(HOST_CGROUPS),
    st.sampled_from(["io", "main", "kworker"]),
    st.sampled_from(PROCESSES),
    st.sampled_from([0, 1000]),
    is_kthread=st.booleans(),
)


def nodes():
    return any_nodes(by_name | by_sight, counts=(0, 1, 2, 5, 20, 60))


def steered(node, steering=None, pods=None):
    given_pods, catalogue, machine, given_settings = node
    pods = given_pods if pods is None else pods
    return decide(pods, catalogue, machine, given_settings, steering=steering or Steering())


def threads_of(plan):
    """Some threads of some pods, with what only user space can see of them."""
    for assignment in plan.assignments[:30]:
        for comm in ("io_a1", "io", "gc7", "main"):
            thread = a_thread(assignment.pod, comm)
            yield thread
            seen = ThreadBehaviour(cpu_share=0.7)
            sighted = attrs.evolve(thread, title="serve", behaviour=seen, is_leader=True)
            yield sighted
            yield attrs.evolve(sighted, exe="main", is_child=True, age_s=61.0)


def layer_by_the_engine(plan, thread):
    """Where the engine puts a thread that has the hint of the layer it belongs into."""
    hint = None if thread.is_kthread else plan.hints[membership.layer_of(plan, thread).name]
    for layer in json.loads(render_engine(plan)):
        for block in layer["matches"]:
            conditions = [next(iter(each.items())) for each in block]
            if all(
                value == hint if kind == "HintEquals" else holds(Matcher(kind, value), thread)
                for kind, value in conditions
            ):
                return layer["name"]
    return None


def layer_by_the_rules(plan, thread):
    """Where the places put a thread of a pod, each scope asked for itself."""
    path = thread.cgroup.strip("/")
    around = [path[: len(path) - len(end)] for end in _ends(path)]
    for cgroup in around:
        for place in plan.steering:
            if place.scope.kind is not ScopeKind.PROCESS and place.scope.is_at(cgroup):
                for rule in place.rules:
                    if rule.match is None or matches(rule.match, thread):
                        return rule.layer
                return "open"
    return "open"


def _ends(path):
    yield ""
    yield from (path[n:] for n in range(len(path) - 1, -1, -1) if path[n] == "/" or n == 0)


@LESS
@given(nodes())
def test_the_engine_takes_every_steered_plan_as_it_is_written(node):
    text = render_engine(steered(node))

    cpus = len(node[2].cpus)
    assert check(text, capabilities_of(None), arguments=[HINT_MAP], cpus=cpus) == ()


@LESS
@given(nodes())
def test_a_steered_plan_starves_nobody_and_loads(node):
    plan = steered(node)
    _, _, machine, given_settings = node
    unit = len(machine.siblings[0])
    owning = [layer for layer in plan.layers if layer.kind is not LayerKind.OPEN]

    loops = {
        (layer.kind, layer.preempt) for layer in plan.layers if layer.kind is not LayerKind.CONFINED
    }
    grouped = [layer for layer in plan.layers if layer.kind is LayerKind.GROUPED]
    assert len(loops) <= 3
    assert plan.layer_named("system") in grouped or len(grouped) <= 1
    assert len(plan.layers) <= 15
    assert all(layer.cpus_max >= unit for layer in owning)
    assert all(layer.cpus_min == 0 for layer in owning if "no pods yet" in layer.reason)
    reserved = given_settings.plan.reserve_cores
    owned = sum(layer.cpus_max for layer in owning)
    assert owned <= max(0, len(machine.cpus) - reserved * unit)
    rest = {layer.name for layer in plan.layers} - {layer.name for layer in owning}
    assert rest <= {"system", "open"}


@LESS
@given(nodes())
def test_a_steered_plan_gives_every_tier_with_pods_what_the_static_one_does(node):
    pods, catalogue, machine, given_settings = node
    static = decide(pods, catalogue, machine, given_settings)
    blind = {note.subject for note in static.notes if note.code == "group_needs_steering"}
    plan = steered(node)

    if blind or any(note.code == "folded" for note in (*static.notes, *plan.notes)):
        return
    for layer in static.layers:
        same = plan.layer_named(layer.name)
        assert (same.kind, same.cpus_min) == (layer.kind, layer.cpus_min)


@LESS
@given(nodes())
def test_every_thread_of_a_pod_is_where_its_rules_say(node):
    plan = steered(node)

    for thread in threads_of(plan):
        layer = membership.layer_of(plan, thread)
        assert layer.name == layer_by_the_rules(plan, thread)


@LESS
@given(nodes(), hosts, st.lists(threads, max_size=20))
def test_the_engine_puts_every_thread_where_its_hint_says(node, pods, others):
    pods = [*node[0][:20], *pods]
    plan = steered(node, pods=pods)

    for thread in [*list(threads_of(plan))[:40], *others]:
        assert layer_by_the_engine(plan, thread) == membership.layer_of(plan, thread).name


@LESS
@given(nodes(), st.randoms())
def test_the_configuration_knows_the_pods_by_their_sizes_only(node, chance):
    pods = node[0]
    others = [
        attrs.evolve(pod, uid=f"other-{n}", namespace=f"x{n}", name=f"y{n}", cgroups=())
        for n, pod in enumerate(chance.sample(pods, len(pods)))
    ]
    same = [attrs.evolve(pod, cgroups=()) for pod in pods]

    assert render_engine(steered(node, pods=same)) == render_engine(steered(node, pods=others))


@LESS
@given(nodes(), st.integers(0, 60))
def test_hints_are_one_per_layer_and_keep_their_meaning(node, left):
    first = steered(node)
    second = steered(node, Steering(first.hints), pods=node[0][:left])
    third = steered(node, Steering({**first.hints, **second.hints}))

    for plan in (first, second, third):
        assert plan.hints.keys() == {layer.name for layer in plan.layers}
        assert len(set(plan.hints.values())) == len(plan.hints)
        assert all(0 < hint <= LARGEST_HINT for hint in plan.hints.values())
        assert {layer.name: layer.hint for layer in plan.layers} == plan.hints
    assert third.hints == first.hints
    common = first.hints.keys() & second.hints.keys()
    assert {first.hints[name] for name in common} == {second.hints[name] for name in common}


@LESS
@given(nodes(), st.integers(0, 60))
def test_a_held_plan_is_the_configuration_in_force_whatever_the_pods(node, left):
    first = steered(node, pods=node[0][:left])

    held = steered(node, Steering(first.hints, first.layers, hold=True))

    assert render_engine(held) == render_engine(first)
    placement = [key for layer in held.layers for key in layer.members]
    assert sorted(placement) == sorted(pod.key for pod in node[0])
    for thread in threads_of(held):
        assert membership.layer_of(held, thread) is not None


@LESS
@given(nodes())
def test_every_pod_of_a_steered_plan_lives_in_one_layer_and_can_be_explained(node):
    plan = steered(node)

    placement = [key for layer in plan.layers for key in layer.members]
    assert sorted(placement) == sorted(pod.key for pod in node[0])
    for pod in node[0][:5]:
        places = explain(plan, node[3], pod.key).places
        assert {place.hint for place in places} <= set(plan.hints.values())
        assert all(place.threads and place.reason for place in places)
