"""Plans whose pods have more and longer cgroups than the engine's regular expressions hold."""

import json
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.engine.binary import verify_offline
from temper_core.engine.capabilities import capabilities_of
from temper_core.engine.configuration_check import check
from temper_core.engine.regex_syntax import regex_fault
from temper_core.plan import ProfileCatalogue, decide, render_engine
from temper_core.plan.addresses import Address, AddressForm
from temper_core.plan.expressions import expressions
from temper_core.records.machine import MachineShape
from temper_core.records.pods import Container, Origin, Pod
from temper_core.records.thread_groups import ThreadMatch
from temper_core.settings import Settings
from tests.core.plan.nodes import profiles

HIGH = 100_000


def problems_of(made, cpus=16):
    return check(render_engine(made), capabilities_of(None), cpus=cpus)


def folded(made):
    return {note.subject: note.message for note in made.notes if note.code == "folded"}


@pytest.fixture
def yielding(profile, group):
    return profile("redis", group("save", "bio_", treatment="yield"))


@pytest.fixture
def containers_of(pod, with_image):
    """Make a pod of *count* containers, of which a profile takes the first ones."""

    def make(name, count, matching=1, **changes):
        images = ["redis:7"] * matching + ["sidecar:1"] * (count - matching)
        path = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{name}.slice/"
        ids = tuple(f"{name}{number:03}".rjust(64, "0") for number in range(count))
        given = {"cgroups": (path,), **changes}
        return with_image(pod(name, request=100, **given), *images, runtime_ids=ids)

    return make


@pytest.fixture
def service(pod):
    """Make a service whose own cgroups are *count*, with names of *length* letters."""

    def make(name, count, length, priority=HIGH):
        paths = tuple(f"{name}.slice/{number:0{length}}/" for number in range(count))
        return pod(name, priority, 100, cgroups=paths, origin=Origin.WORKLOAD)

    return make


def path_in(pod, container):
    return f"{pod.cgroups[0]}cri-{pod.containers[container].runtime_id}.scope/"


def test_pods_of_many_containers_have_several_expressions(plan, containers_of, yielding, layer_at):
    pods = [containers_of(f"p{number:02}", 28) for number in range(60)]

    made = plan(*pods, profiles=[yielding])

    assert problems_of(made) == ()
    assert folded(made) == {}
    for pod in (pods[0], pods[-1]):
        assert layer_at(made, path_in(pod, 0), "bio_1") == "open"
        assert layer_at(made, path_in(pod, 27), "bio_1") == "normal"


def test_a_service_of_two_thousand_cgroups_has_several_expressions(plan, service, layer_at):
    app = service("app", 2000, 200)

    made = plan(app)

    assert problems_of(made) == ()
    assert folded(made) == {}
    assert {layer_at(made, path) for path in app.cgroups} == {"high"}


@pytest.mark.parametrize("length", [4, 64, 480])
@pytest.mark.parametrize("form", [AddressForm.PATH, AddressForm.CONTAINER])
@pytest.mark.parametrize("letter", ["x", "é"])
def test_the_real_engine_compiles_the_largest_expressions(offline_engine, form, length, letter):
    many = [Address(form, f"{number:04}".rjust(length, letter)) for number in range(10_000)]

    largest = max(expressions(many), key=lambda matcher: len(matcher.value))

    # The engine compiles that of a template before it looks at the kernel.
    rest = {"name": "rest", "matches": [[]], "kind": {"Open": {}}}
    layer = {**rest, "matches": [[{"UIDEquals": 1}]], "template": {"CgroupRegex": largest.value}}
    _, said = verify_offline(offline_engine, json.dumps([layer, rest]))
    assert "Syntax(" not in said
    assert "CompiledTooBig" not in said


def test_the_containers_of_pods_with_most_of_them_become_one(plan, containers_of, yielding):
    large = [containers_of(f"large{number:03}", 256) for number in range(110)]
    small = [containers_of(f"small{number:03}", 2) for number in range(40)]

    made = plan(*large, *small, profiles=[yielding])

    assert problems_of(made) == ()
    assert set(folded(made)) < {pod.key for pod in large}
    assert all("applies to all its containers" in why for why in folded(made).values())
    assert all(pod.containers[1].runtime_id in render_engine(made) for pod in small[::10])


def test_hardly_more_pods_are_relieved_than_have_to_be(plan, containers_of, yielding):
    """Some 95 such pods fit into the expressions."""
    made = plan(
        *[containers_of(f"{n:03}", 256, priority=HIGH) for n in range(160)], profiles=[yielding]
    )

    assert not problems_of(made)
    assert 160 - 95 - 5 <= len(folded(made)) <= 80


def test_containers_become_one_before_a_pod_shares_open(plan, containers_of, profile, group):
    """With an exclusive group only the containers that match have addresses of their own."""
    owning = profile("redis", group("main", "redis", treatment="exclusive", cpu_fraction=0.5))
    crowd = [containers_of(f"{n:03}", 256, priority=HIGH, matching=255) for n in range(150)]

    made = plan(*crowd, profiles=[owning])

    assert not problems_of(made)
    assert folded(made)
    assert not [message for message in folded(made).values() if "Open" in message]


def test_a_pod_whose_cgroups_no_expressions_hold_shares_open(plan, service, layer_at):
    others = [service(f"other{number:02}", 2, 40, priority=None) for number in range(40)]
    app = service("app", 8000, 400)

    made = plan(app, *others)

    assert problems_of(made) == ()
    assert list(folded(made)) == [app.key]
    assert "share the Open layer" in folded(made)[app.key]
    assert made.layer_by_pod[app.key] == "open"
    assert {layer_at(made, other.cgroups[0]) for other in others} == {"normal"}


def test_a_layer_full_of_process_names_displaces_no_pod_of_another_layer(
    plan, pod, service, layer_at
):
    names = tuple(Container(f"c{n}", "", processes=(f"worker{n:02}",)) for n in range(31))
    named = pod("named", request=100, containers=names, origin=Origin.WORKLOAD, cgroups=())
    many = [service(f"many{number}", 400, 200, priority=None) for number in range(2)]
    app = service("app", 2000, 200)

    made = plan(named, *many, app)

    assert problems_of(made) == ()
    assert len(folded(made)) == 1
    assert set(folded(made)) < {pod.key for pod in many}
    assert layer_at(made, app.cgroups[-1]) == "high"


matches = st.builds(ThreadMatch, comm_prefix=st.sampled_from(["io", "gc", "main"]))


@st.composite
def crowds(draw):
    """Pods of many containers, long paths and many cgroups, and profiles that take the pods."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    count = draw(st.sampled_from([1, 10, 40]))
    catalogue = [draw(profiles(f"app{n}", matches)) for n in range(2)]
    return [a_large_pod(chance, number) for number in range(count)], catalogue


def a_large_pod(chance, number):
    images = [f"app{chance.randrange(3)}:1", *["sidecar:1"] * chance.choice([0, 1, 30, 255])]
    name = chance.choice(["a", "a.b", "é"]) * chance.choice([4, 60, 200])
    paths = chance.choice([0, 1, 1, 1, 20, 1000])
    return Pod(
        uid=f"{number:04x}-0000",
        namespace="tenant",
        name=f"pod-{number}",
        priority=chance.choice([None, HIGH, 1_000_000, 2_000_000_000]),
        cpu_request_millis=100,
        cgroups=tuple(f"kubepods.slice/{number}/{name}{path}/" for path in range(paths)),
        containers=tuple(
            Container(f"c{n}", image, runtime_id=f"{number:032x}{n:032x}")
            for n, image in enumerate(images)
        ),
    )


@settings(max_examples=10, deadline=None)
@given(crowds())
def test_the_engine_takes_the_plan_of_every_crowd(crowd):
    pods, catalogue = crowd

    made = decide(pods, ProfileCatalogue(tuple(catalogue)), MachineShape.uniform(64, 2), Settings())

    assert problems_of(made, 128) == ()


addresses = st.one_of(
    st.builds(
        Address,
        st.just(AddressForm.PATH),
        st.text("ab/.é", min_size=1, max_size=500).map(lambda text: f"x{text}y"),
    ),
    st.builds(Address, st.just(AddressForm.CONTAINER), st.text("0f", min_size=8, max_size=64)),
    st.builds(
        Address,
        st.just(AddressForm.CONTAINER),
        st.text("0f", min_size=8, max_size=64),
        st.text("ab/.é", min_size=1, max_size=500),
    ),
)


@settings(deadline=None)
@given(st.lists(addresses, min_size=1, unique=True), st.integers(1, 40))
def test_every_expression_is_within_the_bound_and_every_address_in_one(some, times):
    many = [
        Address(address.form, f"{address.text}{number}", address.within)
        for address in some
        for number in range(times)
    ]

    found = expressions(many)

    assert [regex_fault(matcher.value) for matcher in found] == [None] * len(found)
    for address in many[:: max(1, len(many) // 8)]:
        path = f"{address.within}/{address.text}" if address.within else address.text
        assert any(re.search(each.value, f"/sys/fs/cgroup/{path}") for each in found)
