import json
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core import InputError, QosClass, read_pod_object
from temper_plugin_density.overcommit.outcomes import Outcome
from temper_plugin_density.overcommit.pod_objects import read
from temper_plugin_density.overcommit.policy import Policy
from tests.density.overcommit.objects import (
    ORIGINALS,
    TIERS,
    container,
    decided,
    patched,
    pod,
    policy,
)

SUFFIXES = {
    "": 1, "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "k": 1000,
    "Ki": 1024,
}  # fmt: skip


@st.composite
def spelled(draw):
    """A quantity as Kubernetes lets it be written, and its exact value in CPUs."""
    whole = draw(st.sampled_from(["", "0", "00", "1", "7", "12", "64", "250", "100000"]))
    fraction = draw(st.sampled_from([None, "", "0", "1", "5", "25", "0015", "000000001"]))
    if not whole and not fraction:
        whole = "3"
    number = whole + ("" if fraction is None else f".{fraction}")
    sign = draw(st.sampled_from(["", "+"]))
    value = Fraction(Decimal(f"{whole or '0'}.{fraction or '0'}"))
    exponent = draw(st.none() | st.integers(-9, 4))
    if exponent is not None:
        letter, plus = draw(st.sampled_from("eE")), draw(st.sampled_from(["", "+"]))
        written = f"{letter}{plus if exponent >= 0 else ''}{exponent}"
        return f"{sign}{number}{written}", value * Fraction(10) ** exponent
    suffix = draw(st.sampled_from(sorted(SUFFIXES)))
    return f"{sign}{number}{suffix}", value * SUFFIXES[suffix]


@settings(deadline=None)
@given(spelled(), st.integers(1, 1000))
def test_every_spelling_is_lowered_exactly_and_rounded_up(spelling, thousandths):
    text, cpus = spelling
    factor = Fraction(thousandths, 1000)

    decision = decided(pod(container(cpu=text)), policy(factor))

    before = math.ceil(cpus * 1000)
    expected = before if before <= 10 else max(10, math.ceil(before * factor))
    assert [change.after_millis for change in decision.changes] == [expected]
    assert bool(decision.patch) == (expected != before)
    assert decision.freed_millis == before - expected


@pytest.mark.parametrize(
    ("before", "after"),
    [("1", 700), ("1001m", 701), ("10m", 10), ("11m", 10), ("14m", 10), ("15m", 11), ("9m", 9)],
)
def test_a_request_is_rounded_up_and_never_below_ten(before, after):
    assert decided(pod(container(cpu=before))).changes[0].after_millis == after


@pytest.mark.parametrize("factor", ["0", "-1/2", "11/10"])
def test_a_factor_that_would_raise_or_take_all_is_refused(factor):
    with pytest.raises(ValueError, match="must be above 0 and at most 1"):
        Policy(TIERS, Fraction(factor))


cpus = st.sampled_from(["5m", "10m", "11m", "100m", "0.3", "1", "1500m", "2", "7e-1"])
sizes = st.fixed_dictionaries({}, optional={"cpu": cpus, "memory": st.sampled_from(["1Gi", "2Gi"])})
containers = st.builds(
    lambda requests, limits, more: {"resources": {"requests": requests, "limits": limits}, **more},
    sizes,
    sizes,
    st.sampled_from([{}, {"restartPolicy": "Always"}]),
)
claims = st.dictionaries(
    st.sampled_from(["c0", "c1", "i0", "ghost"]), cpus | st.sampled_from(["64", "x", "-1"])
)
annotations = st.none() | st.fixed_dictionaries(
    {},
    optional={
        ORIGINALS: claims.map(json.dumps) | st.sampled_from(["[]", "{", "1"]),
        "a/~b": st.just("c"),
    },
)


@st.composite
def pods(draw):
    def named(letter, found):
        return [{"name": f"{letter}{index}", **each} for index, each in enumerate(found)]

    regular = named("c", draw(st.lists(containers, min_size=1, max_size=3)))
    initial = named("i", draw(st.lists(containers, max_size=2)))
    return pod(
        *regular,
        initContainers=initial,
        priority=draw(st.sampled_from([None, 0, -1000, 999_999, 1_000_000, 2_000_001_000])),
        annotations=draw(annotations),
    )


def qos_class(document):
    named = {**document, "metadata": {"name": "pod"}}
    return read_pod_object(named, source="test").qos_class


def sizes_of(document, which):
    return [
        each["resources"].get(which, {})
        for kind in ("containers", "initContainers")
        for each in document["spec"][kind]
    ]


@settings(max_examples=150, deadline=None)
@given(pods(), st.sampled_from(["7/10", "1/2", "1/1000", "1"]))
def test_no_pod_is_raised_limited_or_given_another_qos_class(document, factor):
    changed = patched(document, decided(document, policy(factor)).patch)

    before, after = (
        [request.millis for request in read(each).requests] for each in (document, changed)
    )
    assert all(now <= was for was, now in zip(before, after, strict=True))
    assert all(now >= min(was, 10) for was, now in zip(before, after, strict=True))
    assert sizes_of(changed, "limits") == sizes_of(document, "limits")
    memory = [[each.get("memory") for each in sizes_of(d, "requests")] for d in (changed, document)]
    assert memory[0] == memory[1]
    assert qos_class(changed) is qos_class(document)
    if (document["spec"]["priority"] or 0) >= 1_000_000:
        assert changed == document


@settings(max_examples=150, deadline=None)
@given(pods(), st.sampled_from(["7/10", "1/2", "1/1000", "1"]))
def test_what_was_decided_once_is_not_decided_again(document, factor):
    changed = patched(document, decided(document, policy(factor)).patch)

    again = decided(changed, policy(factor))

    assert not again.patch
    assert again.outcome is not Outcome.LOWERED


@settings(deadline=None)
@given(pods())
def test_every_original_can_be_put_back_from_the_annotation(document):
    document["metadata"].pop("annotations", None)

    decision = decided(document)

    if decision.patch:
        changed = patched(document, decision.patch)
        kept = json.loads(changed["metadata"]["annotations"][ORIGINALS])
        for kind in ("containers", "initContainers"):
            for each in changed["spec"][kind]:
                if each["name"] in kept:
                    each["resources"]["requests"]["cpu"] = kept[each["name"]]
        assert changed["spec"] == document["spec"]


@pytest.mark.parametrize(
    ("document", "outcome", "reason"),
    [
        (pod(), Outcome.LOWERED, "1 of 1 CPU requests lowered to 0.7: 300m freed"),
        (pod(container()), Outcome.NOTHING_TO_LOWER, "none is more than 10m"),
        (pod(container(cpu="10m")), Outcome.NOTHING_TO_LOWER, "more than 10m"),
        (
            pod(annotations={"temper.codes/overcommit": "disabled"}),
            Outcome.OPTED_OUT,
            "temper.codes/overcommit: disabled",
        ),
        (pod(annotations={"temper.codes/overcommit": "enabled"}), Outcome.LOWERED, "300m freed"),
        (
            pod(annotations={"kubernetes.io/config.mirror": "5b1f" * 8}),
            Outcome.STATIC,
            "mirrors a static pod",
        ),
        (pod(priority=1_000_000), Outcome.CRITICAL, "critical threshold 1000000"),
        (pod(priority=2_000_000_000), Outcome.CRITICAL, "its tier is critical"),
        (pod(priority=999_999), Outcome.LOWERED, "300m freed"),
        (pod(priorityClassName="gold"), Outcome.PRIORITY_UNKNOWN, "'gold' is not known"),
        (pod(resources={"requests": {"cpu": "2"}}), Outcome.POD_LEVEL, "resources of its own"),
        (pod(resources={}), Outcome.POD_LEVEL, "resources of its own"),
        (
            pod(container(cpu="1", cpu_limit="700m")),
            Outcome.INVALID,
            "container 'app' asks for more CPU than its limit",
        ),
    ],
)
def test_every_decision_says_why(document, outcome, reason):
    decision = decided(document)

    assert decision.outcome is outcome
    assert reason in decision.reason
    assert bool(decision.patch) == (outcome is Outcome.LOWERED)


def guaranteed():
    size = {"cpu": "1", "memory": "1Gi"}
    return pod({"name": "app", "resources": {"requests": size, "limits": size}})


def test_a_guaranteed_pod_is_spared_whatever_its_status_claims():
    document = {**guaranteed(), "status": {"qosClass": "Burstable", "phase": "Failed"}}

    assert decided(document).outcome is Outcome.GUARANTEED


def test_a_request_that_stands_for_the_limit_alone_makes_a_pod_guaranteed_as_well():
    size = {"cpu": "1", "memory": "1Gi"}

    decision = decided(pod({"name": "app", "resources": {"limits": size}}))

    assert decision.outcome is Outcome.GUARANTEED


def test_an_init_container_larger_than_the_rest_decides_how_much_is_freed():
    document = pod(container(cpu="1"), initContainers=[container("first", cpu="4")])

    assert decided(document).freed_millis == 1200


def test_a_pod_without_annotations_gets_a_place_for_them():
    assert decided(pod()).patch[-1]["path"] == "/metadata/annotations"
    assert decided(pod(annotations={})).patch[-1]["path"] == (
        "/metadata/annotations/temper.codes~1original-cpu-requests"
    )


def test_annotations_of_others_stay():
    document = pod(annotations={"a/b": "c"})

    changed = patched(document, decided(document).patch)

    assert changed["metadata"]["annotations"] == {"a/b": "c", ORIGINALS: '{"app":"1"}'}


@pytest.mark.parametrize(
    "forged",
    ['{"app":"64"}', '{"app":"1"}', '{"app":1}', '{"app":"-1"}', "[]", "{", "[" * 100_000, "null"],
)
def test_a_forged_original_raises_nothing_and_is_corrected(forged):
    document = pod(annotations={ORIGINALS: forged})

    changed = patched(document, decided(document).patch)

    assert changed["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "700m"
    assert changed["metadata"]["annotations"][ORIGINALS] == '{"app":"1"}'


def test_a_claim_about_a_container_that_is_not_there_is_taken_away():
    first = pod()
    lowered = patched(first, decided(first).patch)
    lowered["metadata"]["annotations"][ORIGINALS] = '{"app":"1","ghost":"64"}'

    decision = decided(lowered)

    assert (decision.outcome, decision.freed_millis) == (Outcome.ALREADY_LOWERED, 0)
    assert patched(lowered, decision.patch) == patched(first, decided(first).patch)


def test_a_claim_that_says_the_same_otherwise_is_no_sign_of_lowering():
    document = pod(container(cpu="0.01"), annotations={ORIGINALS: '{"app":"10m"}'})

    assert decided(document).outcome is Outcome.NOTHING_TO_LOWER


def test_a_factor_of_one_lowers_nothing_and_says_so():
    decision = decided(pod(), policy(1))

    assert decision.outcome is Outcome.NOTHING_TO_LOWER
    assert decision.reason.endswith("the factor is 1")


def test_a_container_that_another_webhook_adds_is_lowered_beside_those_that_are():
    first = pod(container(cpu="1"))
    lowered = patched(first, decided(first).patch)
    lowered["spec"]["containers"].append(container("mesh", cpu="100m"))

    decision = decided(lowered)

    changed = patched(lowered, decision.patch)
    requests = [each["resources"]["requests"]["cpu"] for each in changed["spec"]["containers"]]
    assert requests == ["700m", "70m"]
    kept = json.loads(changed["metadata"]["annotations"][ORIGINALS])
    assert kept == {"app": "1", "mesh": "100m"}


def test_a_pod_whose_annotations_are_full_stays_as_it_is():
    document = pod(annotations={"a": "x" * (256 * 1024 - 20)})

    decision = decided(document)

    assert (decision.outcome, decision.patch) == (Outcome.NO_ROOM, ())


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ([], "pod"),
        ({"metadata": {}}, "spec"),
        ({"spec": {}}, "metadata"),
        (pod(container(cpu="one")), "cpu"),
        (pod(container(cpu="-1")), "cpu"),
        (pod(container(cpu=True)), "cpu"),
        (pod(priority="high"), "priority"),
        (pod(annotations={"a": 1}), "annotations"),
        ({"metadata": {}, "spec": {"containers": "app"}}, "containers"),
    ],
)
def test_what_is_no_pod_is_named(document, named):
    with pytest.raises(InputError, match=named):
        read(document)


def test_a_burstable_pod_has_the_class_that_kubernetes_gives_it():
    assert read(pod()).pod.qos_class is QosClass.BURSTABLE


def test_an_annotation_larger_than_any_that_is_kept_is_not_looked_at():
    claims = json.dumps({"app": "2", **{str(number): "1" for number in range(30_000)}})

    decision = decided(pod(container(cpu="1400m"), annotations={ORIGINALS: claims}))

    assert [change.after_millis for change in decision.changes] == [980]


def test_what_an_annotation_claims_is_read_once_however_many_containers_there_are(monkeypatch):
    many = [container(f"c{number}", cpu="1") for number in range(50)]
    read = []
    loads = json.loads
    monkeypatch.setattr(json, "loads", lambda text: read.append(text) or loads(text))

    decision = decided(pod(*many, annotations={ORIGINALS: '{"c1":"2"}'}))

    assert len(decision.changes) == 50
    assert len(read) == 1


def test_half_a_surrogate_pair_is_as_good_as_any_text():
    document = pod(container("\ud800", cpu="1"), annotations={"mine": "\udfff"})

    decision = decided(document)

    assert decision.outcome == "lowered"
    assert decision.freed_millis == 300
