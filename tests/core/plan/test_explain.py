import json
import sys

import pytest

from temper_core.errors import InputError
from temper_core.plan import explain, explanation_document
from temper_core.profiles.fingerprints import MOST_IMAGES
from temper_core.records.pods import LONGEST_WANTED, PROFILE_ANNOTATIONS, Container, Origin
from temper_core.records.thread_groups import Behaviour, ThreadGroup, ThreadMatch, Treatment
from temper_core.records.tiers import Tier
from temper_core.settings import Settings

CRITICAL, HIGH = 1_000_000, 100_000


def explained(plan, name):
    return explain(plan, Settings(), name)


def test_an_explanation_names_tier_inputs_layer_and_size(plan, pod):
    made = plan(pod("web", HIGH, 2500, 4000))

    found = explained(made, "default/web")

    assert (found.pod, found.tier) == ("default/web", Tier.HIGH)
    assert found.reason == "priority 100000 >= high threshold 100000"
    assert found.inputs["cpu_request"] == "2500m"
    assert found.inputs["cpu_limit"] == "4000m"
    (place,) = found.places
    assert (place.layer, place.cpus_min, place.cpus_max) == ("high", 4, 4)
    assert "1 pod requests 2500m (limits 4000m)" in place.reason
    assert "2 cores of 2 CPUs" in place.reason


def test_a_pod_is_found_by_a_name_that_is_unique(plan, pod):
    made = plan(pod("web", HIGH), pod("db", HIGH, namespace="shop"))

    assert explained(made, "db").pod == "shop/db"


def test_a_name_that_several_pods_have_names_them(plan, pod):
    made = plan(pod("db", namespace="a", uid="1"), pod("db", namespace="b", uid="2"))

    with pytest.raises(InputError, match=r"2 pods are named 'db': a/db, b/db"):
        explained(made, "db")


@pytest.mark.parametrize("given", ["shop/payment", "paymnets", "default/payments"])
def test_an_unknown_pod_names_those_that_are_close(plan, pod, given):
    made = plan(pod("payments", namespace="shop"), pod("web"))

    with pytest.raises(InputError, match=r"no pod .* among 2 on this node; similar: shop/payments"):
        explained(made, given)


def test_a_name_of_any_client_is_compared_without_difflib(plan, pod, monkeypatch):
    """difflib takes the cube of the letters: seconds for 110 pods whose long names are alike."""
    monkeypatch.setitem(sys.modules, "difflib", None)
    names = ["".join("ab"[i % n == 0] for i in range(190)) + str(n) for n in range(2, 62)]
    made = plan(*(pod(name) for name in names))

    with pytest.raises(InputError, match=names[0]):
        explained(made, f"{names[0][:-1]}x")


def test_an_unknown_pod_unlike_any_other_is_told_without_a_guess(plan, pod):
    with pytest.raises(InputError, match=r"no pod 'zzz' among 1 on this node$"):
        explained(plan(pod("web")), "zzz")


def test_every_layer_of_a_pod_with_groups_is_listed(plan, pod, mysql, with_image):
    made = plan(with_image(pod("db", CRITICAL, 1500), "mysql:8"), profiles=[mysql])

    found = explained(made, "db")

    assert [place.layer for place in found.places] == [
        "mysql.connections.critical",
        "critical",
        "open",
    ]
    assert found.profile == "mysql"
    assert "image mysql:8" in found.profile_reason
    assert [(note.code, note.subject) for note in found.notes] == [
        ("group_needs_steering", "mysql.innodb.critical"),
        ("group_yields", "mysql.rest.critical"),
    ]
    assert (
        'group rest of profile mysql with treatment = "normal" would keep the main thread, '
        "and all that no other group takes, in critical"
    ) in found.changes


def test_a_demotion_is_explained_with_what_would_undo_it(plan, pod):
    made = plan(pod("big", CRITICAL, 3000), cores=2)

    found = explained(made, "big")

    assert ("demoted", "critical") in {(note.code, note.subject) for note in found.notes}
    assert "critical is fenced where its requests need at most 2 CPUs in sum" in found.changes


def test_notes_about_others_are_left_out(plan, pod):
    made = plan(pod("big", CRITICAL, 3000), pod("batch"), cores=2)

    assert explained(made, "batch").notes == ()


def test_what_would_raise_a_best_effort_pod_is_said(plan, pod):
    changes = explained(plan(pod("batch")), "batch").changes

    assert (
        "a CPU or memory request, or any PriorityClass of value 0, would make it normal" in changes
    )
    assert (
        "a PriorityClass would raise it, from this value on: "
        "-100 low, 0 normal, 100000 high, 1000000 critical"
    ) in changes


def test_the_next_core_is_said(plan, pod):
    changes = explained(plan(pod("api", HIGH, 2500)), "api").changes

    assert "over 4000m of requests in sum, high needs one more core" in changes


def test_a_demotion_for_want_of_one_cpu_is_told_in_the_singular(plan, pod):
    made = plan(pod("big", CRITICAL, 2000), cores=2, threads_per_core=1)

    (note,) = (note for note in made.notes if note.code == "demoted")

    assert "2 cores of 1 CPU, but 1 left to fence" in note.message
    assert "at most 1 CPU of critical requests in sum" in note.message
    assert (
        "critical is fenced where its requests need at most 1 CPU in sum"
        in explained(made, "big").changes
    )


def test_a_tier_without_a_core_is_told_what_it_lacks(plan, pod):
    changes = explained(plan(pod("api", HIGH, 500), cores=1), "api").changes

    assert "high owns CPUs where a core is left: 0 of 1 core can be owned (reserve 1)" in changes


@pytest.mark.parametrize(
    ("origin", "told"),
    [
        (
            Origin.WORKLOAD,
            (
                "tier = in its [[workloads]] rule, or temper run --tier, sets the tier",
                "profile = in its [[workloads]] rule, or temper run --profile, would choose one",
            ),
        ),
        (
            Origin.UNIT,
            (
                "a [[workloads]] rule for it with tier = would set the tier",
                "a [[workloads]] rule for it with profile = would choose a profile",
            ),
        ),
    ],
)
@pytest.mark.parametrize("tier", [Tier.LOW, None])
def test_what_is_no_kubernetes_pod_is_told_of_rules_alone(plan, pod, origin, told, tier):
    unit = pod("db", origin=origin, tier=tier, cgroups=("system.slice/db.service/",))

    assert explained(plan(unit), "db").changes == told


def test_a_pod_with_a_rule_is_told_that_priorities_do_not_count(plan, pod):
    changes = explained(plan(pod("api", tier=Tier.HIGH, tier_rule="rule")), "api").changes

    assert changes[0] == "the tier is set by that rule; priorities have no effect"


def test_the_document_is_json(plan, pod):
    document = explanation_document(explained(plan(pod("api", HIGH, 500)), "api"))

    assert json.loads(json.dumps(document))["places"][0]["layer"] == "high"


def test_a_steered_place_shows_its_hint_and_its_rules_in_words(steered, pod, mysql, with_image):
    made = steered(with_image(pod("db", CRITICAL, 1500), "mysql:8"), profiles=[mysql])

    places = {place.layer: place for place in explained(made, "db").places}

    hot = places["mysql.connections.critical"]
    assert (hot.hint, hot.threads) == (16, "threads whose name begins with 'connection'")
    assert (places["critical"].hint, places["open"].hint) == (3, 2)
    assert places["critical"].threads == "threads whose name begins with 'ib_'"
    assert places["open"].threads == "every thread that no group takes"


def test_a_static_place_has_no_hint(plan, pod):
    (place,) = explained(plan(pod("web", HIGH)), "web").places

    assert place.hint is None


@pytest.mark.parametrize(
    ("match", "words"),
    [
        (ThreadMatch(comm_pattern="^gc[0-9]"), "threads whose name has /^gc[0-9]/"),
        (ThreadMatch(title_pattern="--io"), "threads whose command line has /--io/"),
        (
            ThreadMatch("a", process="b"),
            "threads whose name begins with 'a' and whose process's name begins with 'b'",
        ),
        (ThreadMatch(leader=True), "threads that lead their process"),
        (ThreadMatch(leader=False), "threads that do not lead their process"),
        (ThreadMatch(exe="java"), "threads whose executable's name begins with 'java'"),
        (ThreadMatch(parent="tini"), "threads whose parent process's name begins with 'tini'"),
        (
            ThreadMatch(is_child=True),
            "threads whose process has executed no program since its fork",
        ),
        (
            ThreadMatch(is_child=False),
            "threads whose process has executed a program since its fork",
        ),
        (ThreadMatch(older_than_s=90), "threads that started at least 90 s ago"),
        (
            ThreadMatch(behaviour=Behaviour((0.5, 1), wakeups_per_s=(10, 2e3))),
            "behaviour is share of a CPU 0.5 to 1, wake-ups per second 10 to 2000",
        ),
    ],
)
def test_every_kind_of_match_has_its_words(steered, pod, profile, match, words):
    web = profile("web", ThreadGroup("gc", (match,), Treatment.YIELD))
    asked = pod("web", HIGH, annotations={"temper.codes/workload-profile": "web"})

    (_, place) = explained(steered(asked, profiles=[web]), "web").places

    assert place.layer == "open"
    assert words in place.threads


def test_the_containers_of_a_steered_pod_are_told_apart(steered, pod, mysql, with_image):
    mixed = with_image(pod("db", HIGH, 3000), "mysql:8", "envoy:1", runtime_ids=["aa", "bb"])

    made = steered(mixed, profiles=[mysql])

    places = {place.layer: place.threads for place in explained(made, "db").places}
    assert places["open"] == "in container c0: every thread that no group takes"
    assert places["high"] == (
        "elsewhere in the pod: every thread; in container c0: threads whose name begins with 'ib_'"
    )


def test_a_steered_pod_without_a_place_shares_open(steered, pod):
    made = steered(pod("web", HIGH, uid=""))

    (place,) = explained(made, "web").places

    assert (place.layer, place.hint, place.threads) == ("open", 2, "every thread")


def test_the_images_that_are_compared_with_profiles_are_shown(plan, pod):
    images = [f"registry.example/{'a' * 400}:{number}" for number in range(MOST_IMAGES + 5)]
    containers = tuple(Container(f"c{number}", image=each) for number, each in enumerate(images))

    shown = explained(plan(pod("web", containers=containers)), "web").inputs["images"]

    assert shown.endswith(f":{MOST_IMAGES - 1}, and 5 more")


@pytest.mark.parametrize("annotation", PROFILE_ANNOTATIONS)
def test_an_annotation_as_large_as_the_api_server_takes_makes_no_long_reason(plan, pod, annotation):
    made = plan(pod("web", annotations={annotation: "\x01" * 261_000}))

    document = json.dumps(explanation_document(explained(made, "web")))

    assert "there is no such profile" in document
    assert len(document) < 10_000
    assert len("".join(note.message for note in made.notes)) < 2_000


def test_a_long_annotation_names_no_profile_whose_id_it_begins_with(pod):
    longest = "a" * (LONGEST_WANTED - 1)

    _, wanted = pod("web", annotations={PROFILE_ANNOTATIONS[0]: longest + "b" * 99}).wanted_profile

    assert wanted.startswith(longest)
    assert wanted != longest


def test_of_a_pod_that_is_too_large_neither_its_annotation_nor_its_size_is_advised(plan, pod):
    annotations = {PROFILE_ANNOTATIONS[0]: "mysql-innodb"}
    made = plan(pod("huge", HIGH, 1_000_000, annotations=annotations))

    found = explained(made, "huge")

    assert found.profile_reason == "not looked for, as no kubelet accepts the pod here"
    assert found.changes == ("a node with as many CPUs as it requests would run it",)
