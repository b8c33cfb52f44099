"""Of a pod with several containers the profile is about those that it recognises."""

import pytest

from temper_core.plan import explain, membership, render_engine
from temper_core.records.profiles import Fingerprint
from temper_core.records.threads import ThreadIdentity
from temper_core.scheduler.engine_process.access import check_against_rules
from temper_core.settings import Settings
from tests.core.plan.nodes import a_thread

HIGH = 100_000
IDS = ("aaaa1111", "bbbb2222", "cccc3333")


@pytest.fixture
def database(profile, group):
    known = Fingerprint(images=("mysql:*",), processes=("mysqld",), versions=("<9",))
    return profile(
        "mysql",
        group("hot", "w", treatment="exclusive", cpu_fraction=0.5),
        group("rest", treatment="yield"),
        fingerprint=known,
    )


def thread(pod, runtime_id, comm="w1"):
    return ThreadIdentity(f"{pod.cgroups[0]}cri-{runtime_id}.scope/", comm, "x", uid=1000)


@pytest.fixture(params=[False, True], ids=["static", "steered"])
def decided(request, plan, steered):
    return steered if request.param else plan


def a_pod_of(pod, with_image, *images, ids=IDS):
    made = pod("db", HIGH, 2000, cgroups=("kubepods.slice/kubepods-poddb.slice/",))
    return with_image(made, *images, runtime_ids=ids[: len(images)])


def test_groups_take_threads_of_matching_containers_alone(pod, with_image, database, decided):
    subject = a_pod_of(pod, with_image, "mysql:8.4", "sidecar:1", "exporter:2")

    made = decided(subject, profiles=[database])

    layers = [
        [membership.layer_of(made, thread(subject, each, comm)).name for comm in ("w1", "other")]
        for each in IDS
    ]
    assert layers == [["mysql.hot.high", "open"], ["high", "high"], ["high", "high"]]


def test_two_containers_that_match_are_both_meant(pod, with_image, database, decided):
    subject = a_pod_of(pod, with_image, "mysql:8.4", "mysql:8.0", "exporter:2")

    made = decided(subject, profiles=[database])

    placement = [membership.layer_of(made, thread(subject, each)).name for each in IDS]
    assert placement == ["mysql.hot.high", "mysql.hot.high", "high"]


def test_a_container_of_another_version_is_left_to_its_tier(pod, with_image, database, decided):
    subject = a_pod_of(pod, with_image, "mysql:8.4", "mysql:9.1")

    made = decided(subject, profiles=[database])

    placement = [membership.layer_of(made, thread(subject, each)).name for each in IDS[:2]]
    assert placement == ["mysql.hot.high", "high"]


def test_a_thread_of_a_container_that_nobody_knows_yet_stays_with_its_tier_or_its_pod(
    pod, with_image, database, decided
):
    subject = a_pod_of(pod, with_image, "mysql:8.4", "sidecar:1")

    made = decided(subject, profiles=[database])

    assert membership.layer_of(made, thread(subject, "dddd4444")).name in {"high", "open"}


def test_containers_that_cannot_be_told_apart_are_all_meant_and_that_is_told(
    pod, with_image, database, decided
):
    subject = a_pod_of(pod, with_image, "mysql:8.4", "sidecar:1", ids=("", ""))

    made = decided(subject, profiles=[database])

    assert membership.layer_of(made, a_thread(subject, "w1")) is not None
    told = explain(made, Settings(), subject.key).profile_about
    assert told == "the whole pod: container c0 is not yet distinct from c1"


def test_which_containers_are_meant_is_explained(pod, with_image, database, decided):
    subject = a_pod_of(pod, with_image, "mysql:8.4", "sidecar:1")

    told = explain(decided(subject, profiles=[database]), Settings(), subject.key).profile_about

    assert told == "container c0; the threads of c1 stay in the layer of the tier"


def test_an_id_in_the_name_of_a_cgroup_elsewhere_is_no_container_of_the_pod(
    pod, with_image, database, decided
):
    """The id is public, in /proc/PID/cgroup, and users choose the names below their sessions."""
    subject = a_pod_of(pod, with_image, "mysql:8.4", "sidecar:1")

    made = decided(subject, profiles=[database])

    theirs = f"user.slice/user-1000.slice/user@1000.service/app.slice/{IDS[0]}/"
    assert membership.layer_of(made, ThreadIdentity(theirs, "w1", "x", uid=1000)).name == "open"


def test_so_it_is_where_one_expression_stands_for_many_containers(plan, pod, with_image, database):
    pods = [
        with_image(
            pod(f"db-{n:02}", HIGH, 100, cgroups=(f"kubepods.slice/kubepods-pod{n:02}.slice/",)),
            "mysql:8.4",
            "sidecar:1",
            runtime_ids=(f"{n:02}{IDS[0]}", f"{n:02}{IDS[1]}"),
        )
        for n in range(40)
    ]

    made = plan(*pods, profiles=[database], cores=64)

    assert "CgroupRegex" in render_engine(made)
    theirs = f"user.slice/user-1000.slice/user@1000.service/app.slice/07{IDS[0]}/"
    own = thread(pods[7], f"07{IDS[0]}")
    assert membership.layer_of(made, own).name == "mysql.hot.high"
    assert membership.layer_of(made, ThreadIdentity(theirs, "w1", "x", uid=1000)).name == "open"
    check_against_rules(render_engine(made), "1.1.4", 64)
