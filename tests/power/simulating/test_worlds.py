"""Simulated days: a case by hand, and what holds for every one."""

import pytest

from temper_plugin_power.simulating.arms import QUEUE, STATIC, Arm, Fleet, Policy
from temper_plugin_power.simulating.comparing import compare, figures_of_day
from temper_plugin_power.simulating.jobs import HOUR_S, KINDS, Day, Job, Kind, make_jobs
from temper_plugin_power.simulating.outcome import KWH_J, figures_of
from temper_plugin_power.simulating.physics import Machine, job_watts
from temper_plugin_power.simulating.world import World

SHORT = Day(hours=8, jobs_per_hour=100, wrong_share=0.2)
FLEET = Fleet(nodes=8)
SEEDS = (1, 2, 3)
POLICIES = (Policy(STATIC, 0.5), Policy(QUEUE, 0.3))


def days(fleet=FLEET, arms=tuple(Arm), day=SHORT):
    """Yield the jobs of each seed, the arm, and what became of them."""
    for seed in SEEDS:
        for arm in arms:
            jobs = make_jobs(day, seed)
            yield jobs, arm, World(jobs, fleet, arm).run()


def test_a_case_that_was_computed_by_hand():
    kind = Kind("solver", 1.0, "performance", "high", "high", cores=8, median_min=60)
    jobs = [Job(0, kind, kind, arrives_s=0.0, work_s=3600.0)]
    fleet = Fleet(2, Machine(cores=8, idle_watts=100, max_watts=400), Policy(STATIC, 0.5, 60))

    ran = {arm: World(jobs, fleet, arm).run() for arm in (Arm.WITHOUT, Arm.WITH)}

    # Without a profile the eco node has 81 points and the other one 74. 240 W less 100 W idle are
    # 140 W of the 300 W that the job asks for, and so it runs 300/140 of an hour.
    ended = {arm: each.jobs[0] for arm, each in ran.items()}
    assert (ended[Arm.WITHOUT].node, ended[Arm.WITH].node) == ("node-001", "node-000")
    assert ended[Arm.WITHOUT].ran_s == pytest.approx(3600 * 300 / 140)
    assert ended[Arm.WITH].ran_s == 3600.0
    until_s = ran[Arm.WITHOUT].end_s
    figures = {arm: figures_of(each, fleet, until_s) for arm, each in ran.items()}
    assert figures[Arm.WITHOUT]["slowdown_performance"] == pytest.approx(15 / 7)
    assert figures[Arm.WITH]["slowdown_performance"] == 1.0
    idle_kwh = 2 * 100 * 3600 * (15 / 7) / KWH_J
    for arm in ran:
        assert figures[arm]["energy_kwh"] == pytest.approx(idle_kwh + 0.3)


@pytest.mark.parametrize("policy", POLICIES)
def test_energy_is_that_of_idle_nodes_and_of_jobs_and_every_job_ends(policy):
    fleet = Fleet(8, policy=policy)
    for jobs, _, ran in days(fleet):
        assert sorted(each.job.number for each in ran.jobs) == [job.number for job in jobs]
        assert ran.idle_j == pytest.approx(8 * fleet.machine.idle_watts * ran.end_s)
        for each in ran.jobs:
            full_j = job_watts(each.job.kind, fleet.machine) * each.job.work_s
            assert each.energy_j <= full_j * (1 + 1e-9)


def test_without_caps_a_job_takes_its_own_time_and_energy():
    for _, _, ran in days(arms=(Arm.UNCAPPED,)):
        for each in ran.jobs:
            full_j = job_watts(each.job.kind, FLEET.machine) * each.job.work_s
            assert each.energy_j == pytest.approx(full_j)
            assert each.ran_s == pytest.approx(each.job.work_s)


@pytest.mark.parametrize("policy", POLICIES)
def test_no_job_with_a_performance_profile_is_ever_on_an_eco_node(policy):
    seen = 0
    for _, _, ran in days(Fleet(8, policy=policy), arms=(Arm.WITH,)):
        performance = [each for each in ran.jobs if each.job.seen.workload_class == "performance"]
        assert [each for each in performance if each.eco_s > 0] == []
        assert ran.eco_node_s > 0
        seen += len(performance)
    assert seen > 100


def test_without_profiles_performance_jobs_are_on_eco_nodes():
    for _, _, ran in days(arms=(Arm.WITHOUT,)):
        assert any(
            each.eco_s > 0 and each.job.kind.workload_class == "performance" for each in ran.jobs
        )


def test_one_seed_gives_the_same_day_and_another_one_another():
    assert compare(SHORT, FLEET, [1]) == compare(SHORT, FLEET, [1])
    assert make_jobs(SHORT, 1) != make_jobs(SHORT, 2)


def test_where_every_node_is_a_performance_node_profiles_change_nothing():
    fleet = Fleet(8, policy=Policy(STATIC, 1.0))

    figures = figures_of_day(SHORT, fleet, 1, lambda _seed, _arm: None)

    assert figures[Arm.WITH] == figures[Arm.WITHOUT] == figures[Arm.UNCAPPED]


def test_a_cap_of_all_the_power_slows_nothing():
    fleet = Fleet(8, policy=Policy(STATIC, 0.5, eco_pct=100))
    for _, _, ran in days(fleet):
        assert max(each.ran_s / each.job.work_s for each in ran.jobs) == pytest.approx(1)


def test_a_job_waits_until_a_node_that_takes_it_has_room():
    kind = Kind("solver", 1.0, "performance", "high", "high", cores=8, median_min=60)
    jobs = [Job(number, kind, kind, arrives_s=0.0, work_s=600.0) for number in range(2)]
    fleet = Fleet(2, Machine(cores=8), Policy(STATIC, 0.5))

    ran = World(jobs, fleet, Arm.WITH).run()

    assert [(each.node, each.started_s) for each in ran.jobs] == [
        ("node-000", 0.0),
        ("node-000", 600.0),
    ]


def test_a_node_with_a_performance_job_becomes_an_eco_node_after_it():
    kind = Kind("solver", 1.0, "performance", "high", "high", cores=1, median_min=60)
    busy = [Job(number, kind, kind, arrives_s=0.0, work_s=90.0) for number in range(25)]
    fleet = Fleet(8, Machine(cores=8), Policy(QUEUE, 0.0))

    ran = World(busy, fleet, Arm.WITH).run()

    # 25 jobs of weight 1.5 ask for 4 nodes in the first cycle, in which none runs yet.
    assert {each.eco_s for each in ran.jobs} == {0.0}
    assert ran.eco_node_s > 0


def test_the_busiest_hour_is_in_the_afternoon_and_the_shares_are_those_of_the_kinds():
    jobs = [job for seed in range(4) for job in make_jobs(Day(jobs_per_hour=200), seed)]

    hours = [sum(int(job.arrives_s // HOUR_S) == hour for job in jobs) for hour in range(24)]

    assert sum(hours[12:18]) > 2 * sum(hours[0:6])
    assert len(jobs) / 4 == pytest.approx(4800, rel=0.05)
    for kind in KINDS:
        share = sum(job.kind is kind for job in jobs) / len(jobs)
        assert share == pytest.approx(kind.share, abs=0.02)
