"""Workloads that a rule finds by the names of their processes."""

import pytest

from temper_core.engine.capabilities import capabilities_of
from temper_core.engine.configuration_check import check
from temper_core.plan import explain, membership, render_engine
from temper_core.records.engine_matchers import Matcher
from temper_core.records.pods import Container, Origin
from temper_core.records.threads import ThreadIdentity
from temper_core.records.tiers import Tier
from temper_core.settings import Settings

HIGH = 100_000


@pytest.fixture
def workload(pod):
    """Make a workload of a rule that names processes."""

    def make(name, *processes, tier=Tier.HIGH, **changes):
        containers = (Container(name, processes=processes),)
        return pod(name, origin=Origin.WORKLOAD, tier=tier, containers=containers, **changes)

    return make


def home(plan, process, cgroup="user.slice/", uid=1000):
    return membership.layer_of(plan, ThreadIdentity(cgroup, "any", process, uid)).name


def test_a_process_name_is_matched_by_what_it_begins_with(plan, workload):
    made = plan(workload("encoder", "ffmpeg", "ffprobe"))

    assert made.layer_named("high").matches == (
        (Matcher("PcommPrefix", "ffmpeg"),),
        (Matcher("PcommPrefix", "ffprobe"),),
    )
    assert made.layer_by_pod["default/encoder"] == home(made, "ffmpeg") == "high"
    assert home(made, "ffmpeg2") == "high"
    assert home(made, "ffplay") == "open"


def test_a_long_process_name_is_cut_to_what_the_kernel_keeps(plan, workload):
    made = plan(workload("long", "a-name-of-more-than-15", "a-name-of-more-too", "", "n\0l"))

    assert made.layer_named("high").matches == ((Matcher("PcommPrefix", "a-name-of-more-"),),)


def test_the_rules_of_the_system_layer_come_before_process_names(plan, workload):
    made = plan(workload("daemon", "containerd"))

    assert home(made, "containerd", uid=0) == "system"
    assert home(made, "containerd") == "high"
    assert home(made, "containerd", "system.slice/containerd.service/") == "system"


def test_a_process_in_the_cgroup_of_a_more_important_pod_stays_there(plan, pod, workload):
    made = plan(
        pod("web", HIGH, 100, cgroups=("web.slice/",)), workload("nginx", "nginx", tier=Tier.NORMAL)
    )

    assert home(made, "nginx", "web.slice/") == "high"
    assert home(made, "nginx") == "normal"


def test_a_workload_whose_cgroup_is_known_is_matched_by_it_alone(plan, workload):
    made = plan(workload("batch", "sh", cgroups=("temper.slice/batch/",)))

    assert made.layer_named("high").matches == ((Matcher("CgroupPrefix", "temper.slice/batch/"),),)


def test_process_names_leave_a_block_for_all_the_cgroups(plan, pod, workload):
    names = [f"worker{n:02}" for n in range(20)]
    pods = [pod(f"p{n:02}", HIGH, 10, cgroups=(f"app{n:02}.slice/",)) for n in range(20)]

    made = plan(workload("many", *names), *pods)

    assert len(made.layer_named("high").matches) == 21
    assert all(home(made, name) == "high" for name in names)
    assert all(home(made, "x", f"app{n:02}.slice/") == "high" for n in range(20))
    assert check(render_engine(made), capabilities_of(None), cpus=16) == ()


def test_names_beyond_the_engines_blocks_are_folded_with_a_note(plan, workload, codes):
    first = workload("a", *(f"one{n:02}" for n in range(30)))
    second = workload("b", *(f"two{n:02}" for n in range(4)))
    third = workload("c", "three")

    made = plan(first, second, third)

    assert len(made.layer_named("high").matches) == 31
    assert codes(made) == {("folded", "default/b"), ("folded", "default/c")}
    (note,) = (note for note in made.notes if note.subject == "default/b")
    assert "two01, two02, two03" in note.message
    assert made.layer_by_pod["default/b"] == home(made, "two00") == "high"
    assert made.layer_by_pod["default/c"] == home(made, "three") == "open"


def test_names_of_a_tier_that_shares_open_need_no_block_and_no_note(plan, workload):
    made = plan(workload("many", *(f"p{n:02}" for n in range(40)), tier=Tier.BACKGROUND))

    assert made.notes == ()
    assert made.layer_by_pod["default/many"] == "open"


def test_groups_of_a_workload_by_name_that_need_too_many_blocks_stay_in_their_tier(
    plan, workload, profile, group, codes
):
    threads = [f"t{n}" for n in range(10)]
    own = profile("own", group("hot", *threads, treatment="exclusive", cpu_fraction=0.5))
    annotations = {"temper.codes/workload-profile": "own"}
    pods = workload(
        "app", "java1", "java2", "java3", "java4", request=1000, annotations=annotations
    )

    made = plan(pods, profiles=[own])

    assert ("folded", "own.hot.high") in codes(made)
    assert check(render_engine(made), capabilities_of(None), cpus=16) == ()
    assert home(made, "java3") == "high"


def test_a_workload_by_name_is_explained_by_its_names(plan, workload):
    made = plan(workload("encoder", "ffmpeg", "ffprobe"))

    found = explain(made, Settings(), "encoder")

    assert (
        found.inputs["cgroups"] == "any; found by process name, which begins with ffmpeg or ffprobe"
    )
