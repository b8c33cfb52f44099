import pytest

from temper_core.node.pod_size import CpuSize
from temper_core.node.workloads import Claim, Workload, claims, workload_pod
from temper_core.records.pods import Origin, QosClass
from temper_core.records.tiers import Tier
from temper_core.settings.models import WorkloadRule

PATHS = (
    "",
    "batch.slice",
    "batch.slice/a.service",
    "batch.slice/a.service/child",
    "batch.slice/b.service",
    "batch.slice-old",
    "jobs/one",
    "jobs/two",
    "system.slice/worker@1.service",
    "system.slice/worker@2.service",
    "kubepods.slice/kubepods-pod5b1f2a7c9d3e4f60718293a4b5c6d7e8.slice",
)
NAMES = frozenset({"mysqld", "mysqld_safe", "a-very-long-na", "a-very-long-nam", "bash"})


def taken(*rules):
    found = claims([Workload.of(rule) for rule in rules], PATHS, NAMES)
    return {claim.workload.rule.name: (claim.cgroups, claim.processes) for claim in found}


@pytest.mark.parametrize(
    ("pattern", "cgroups"),
    [
        ("batch.slice", ("batch.slice",)),
        ("/batch.slice/", ("batch.slice",)),
        ("batch.slice/*", ("batch.slice/a.service", "batch.slice/b.service")),
        ("batch.slice/[b-z]*", ("batch.slice/b.service",)),
        ("jobs/o?e", ("jobs/one",)),
        ("*/*/child", ("batch.slice/a.service/child",)),
    ],
)
def test_a_cgroup_rule_matches_part_by_part(pattern, cgroups):
    assert taken(WorkloadRule("w", cgroup=pattern)) == {"w": (cgroups, ())}


@pytest.mark.parametrize(
    ("pattern", "cgroups"),
    [
        ("a", ("batch.slice/a.service",)),
        ("a.service", ("batch.slice/a.service",)),
        ("batch.slice", ("batch.slice",)),
        ("worker@*", ("system.slice/worker@1.service", "system.slice/worker@2.service")),
        ("worker@2", ("system.slice/worker@2.service",)),
    ],
)
def test_a_unit_rule_matches_the_units_name(pattern, cgroups):
    assert taken(WorkloadRule("w", unit=pattern)) == {"w": (cgroups, ())}


@pytest.mark.parametrize(
    "above",
    [
        "user.slice/user-1000.slice/user@1000.service/app.slice",
        "system.slice/ci.service",
        f"system.slice/docker-{'a' * 64}.scope/system.slice",
        "lxc.payload.guest/system.slice",
    ],
)
def test_a_unit_rule_takes_no_cgroup_that_users_or_containers_have_named(above):
    rule = Workload.of(WorkloadRule("w", unit="mysql", tier=Tier.CRITICAL))
    own = "system.slice/mysql.service"

    (claim,) = claims([rule], [own, f"{above}/mysql.service"], frozenset())

    assert claim.cgroups == (own,)


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [
        ("ffmpeg*", ("ffmpeg",)),
        ("a-very-long-name-ind*", ("a-very-long-nam",)),
        ("ff[m]peg*", ("ff",)),
    ],
)
def test_many_processes_of_one_rule_leave_room_to_those_of_others(pattern, kept):
    started = {f"ffmpeg{number:02}" for number in range(90)} | {"a-very-long-nam"}
    started |= {f"a-very-long-name-ind{number}" for number in range(90)}

    (claim,) = claims([Workload.of(WorkloadRule("w", process=pattern))], (), frozenset(started))

    assert claim.processes == kept


def test_a_rule_that_matches_a_cgroup_and_what_is_below_takes_the_upper_one():
    assert taken(WorkloadRule("w", unit="*")) == {
        "w": (
            ("batch.slice", "system.slice/worker@1.service", "system.slice/worker@2.service"),
            (),
        )
    }


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("mysqld", ("mysqld",)),
        ("mysqld*", ("mysqld", "mysqld_safe")),
        ("a-very-long-name-indeed", ("a-very-long-nam",)),
    ],
)
def test_a_process_rule_matches_names_as_the_kernel_keeps_them(pattern, names):
    assert taken(WorkloadRule("w", process=pattern)) == {"w": ((), names)}


@pytest.mark.parametrize("rule", [{"cgroup": "absent"}, {"unit": "absent"}, {"process": "absent"}])
def test_a_rule_that_nothing_fits_makes_no_workload(rule):
    assert taken(WorkloadRule("w", **rule)) == {}


def test_the_first_rule_that_wants_a_cgroup_gets_it():
    first = WorkloadRule("first", cgroup="batch.slice/a.service")
    second = WorkloadRule("second", cgroup="batch.slice/*")

    assert taken(first, second) == {
        "first": (("batch.slice/a.service",), ()),
        "second": (("batch.slice/b.service",), ()),
    }


def test_a_rule_with_several_conditions_takes_what_fits_any_of_them():
    rule = WorkloadRule("w", cgroup="jobs/one", unit="a", process="bash")

    assert taken(rule) == {"w": (("batch.slice/a.service", "jobs/one"), ("bash",))}


def test_the_kernels_root_cgroup_belongs_to_no_rule():
    assert taken(WorkloadRule("w", cgroup="/")) == {}


@pytest.mark.parametrize(
    ("quantities", "seen", "size", "qos_class"),
    [
        ({}, CpuSize(), (0, None), QosClass.BEST_EFFORT),
        ({}, CpuSize(500, 1000), (500, 1000), QosClass.BURSTABLE),
        ({"cpu_request": "2"}, CpuSize(500, 1000), (2000, 1000), QosClass.BURSTABLE),
        ({"cpu_limit": "4"}, CpuSize(500, 1000), (500, 4000), QosClass.BURSTABLE),
        ({"cpu_limit": "0"}, CpuSize(500, 1000), (500, None), QosClass.BURSTABLE),
        ({"cpu_request": "2", "cpu_limit": "2"}, CpuSize(), (2000, 2000), QosClass.GUARANTEED),
    ],
)
def test_the_rules_quantities_come_before_what_the_cgroup_says(quantities, seen, size, qos_class):
    rule = WorkloadRule("w", cgroup="jobs/one", **quantities)

    pod = workload_pod(Claim(Workload.of(rule), ("jobs/one",)), seen)

    assert (pod.cpu_request_millis, pod.cpu_limit_millis) == size
    assert pod.qos_class is qos_class


def test_a_workload_says_which_rule_gave_its_tier():
    rule = WorkloadRule("w", cgroup="jobs/*", process="bash", tier=Tier.LOW, profile="batch")

    pod = workload_pod(Claim(Workload.of(rule), ("jobs/one", "jobs/two"), ("bash",)), CpuSize())

    assert (pod.key, pod.uid, pod.origin, pod.tier) == (
        "w",
        "workload:w",
        Origin.WORKLOAD,
        Tier.LOW,
    )
    assert pod.tier_rule == "workload rule 'w' (cgroup = 'jobs/*', process = 'bash')"
    assert pod.wanted_profile == ("temper.codes/workload-profile", "batch")
    assert pod.cgroups == ("jobs/one/", "jobs/two/")
    assert pod.containers[0].processes == ("bash",)
