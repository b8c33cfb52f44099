"""The life cycle against a real child process: every state, every way in and out."""

import os
import signal
import time

import pytest

from temper_core.errors import PlanError

STALL = "Error: EXIT: runnable task stall (taskset[248] failed to run for 5.508s)\n"


def test_a_node_without_a_plan_only_observes(world):
    scheduler = world.scheduler()

    scheduler.step(world.now)

    assert (scheduler.status.mode, scheduler.status.reason) == ("observe_only", "no_plan")


def test_enforcing_means_attached_proven_and_answering(world, plan):
    scheduler = world.scheduler()
    scheduler.submit(plan("critical", "rest"))

    world.settle(scheduler, "enforcing")

    assert world.node.state == "enabled"
    assert scheduler.status.generation == 1
    assert scheduler.status.engine == "scx_layered 1.1.4"
    assert scheduler.generation.plan == plan("critical", "rest")
    assert scheduler.counters.reloads == {"start": 1}


def test_statistics_of_the_engine_are_at_hand_while_it_runs(world, plan):
    scheduler = world.scheduler()
    scheduler.submit(plan("critical", "rest"))
    world.settle(scheduler, "enforcing")

    world.now += 1.0
    world.drive(scheduler, lambda: scheduler.stats)

    assert scheduler.stats.layers["rest"].cpus == (1,)


def test_a_kernel_without_sched_ext_is_only_observed(world, plan):
    (world.node.roots.sched_ext).rename(world.node.folder / "gone")
    scheduler = world.scheduler()
    scheduler.submit(plan("rest"))

    scheduler.step(world.now)

    assert (scheduler.status.mode, scheduler.status.reason) == ("observe_only", "no_sched_ext")
    assert scheduler.engine_pid is None


def test_a_node_that_is_told_not_to_enforce_only_observes(world, plan):
    scheduler = world.scheduler(enforce=False)
    scheduler.submit(plan("rest"))

    scheduler.step(world.now)

    assert (scheduler.status.mode, scheduler.status.reason) == ("observe_only", "not_asked")


def test_a_failed_preflight_is_safe_mode_and_looked_at_again(world, plan):
    world.node.remove("cgroup/cgroup.controllers")
    scheduler = world.scheduler(recheck_s=60.0)
    scheduler.submit(plan("rest"))
    scheduler.step(world.now)
    assert (scheduler.status.mode, scheduler.status.reason) == ("safe_mode", "preflight")
    assert "cgroup_v2" in scheduler.status.detail

    world.node.put("cgroup/cgroup.controllers", "cpu\n")
    world.now += 59
    scheduler.step(world.now)
    assert scheduler.status.reason == "preflight"
    world.now += 2

    world.settle(scheduler, "enforcing")


def test_a_foreign_scheduler_is_left_alone_and_looked_at_again(world, plan):
    world.node.attach("bpfland_1.0.0")
    scheduler = world.scheduler()
    scheduler.submit(plan("rest"))
    scheduler.step(world.now)
    assert (scheduler.status.mode, scheduler.status.reason) == ("safe_mode", "foreign_scheduler")
    assert "bpfland" in scheduler.status.detail
    assert world.node.state == "enabled"

    world.node.detach()
    world.now += 61

    world.settle(scheduler, "enforcing")


def test_an_engine_found_attached_that_is_not_our_child_is_foreign(world, plan):
    world.node.attach("layered_1.1.4_x86_64_unknown_linux_gnu")
    scheduler = world.scheduler()
    scheduler.submit(plan("rest"))

    scheduler.step(world.now)

    assert scheduler.status.reason == "foreign_scheduler"


def test_a_scheduler_that_attached_while_ours_was_loading_costs_no_budget(world, plan):
    world.script(die="Error: another sched_ext scheduler is already running\n")
    scheduler = world.scheduler(crash_budget=1)
    scheduler.submit(plan("rest"))

    world.settle(scheduler, "safe_mode", "foreign_scheduler")

    world.script()
    world.now += 61
    world.settle(scheduler, "enforcing")


def test_the_same_plan_again_reloads_nothing(world, plan):
    scheduler = world.scheduler()
    scheduler.submit(plan("a", "rest"))
    world.settle(scheduler, "enforcing")
    pid = scheduler.engine_pid

    scheduler.submit(plan("a", "rest"))
    world.now += 3600
    scheduler.step(world.now)

    assert scheduler.engine_pid == pid
    assert sum(scheduler.counters.reloads.values()) == 1


def test_a_changed_plan_reloads_cold_after_the_quiet_period(world, plan):
    scheduler = world.scheduler(warm_swap=False, quiet_s=2.0)
    scheduler.submit(plan("a", "rest"))
    world.settle(scheduler, "enforcing")
    pid = scheduler.engine_pid

    scheduler.submit(plan("b", "rest"))
    world.now += 100
    scheduler.step(world.now)
    assert scheduler.engine_pid == pid
    world.now += 2
    scheduler.step(world.now)
    assert scheduler.status.mode == "reloading"
    world.settle(scheduler, "enforcing", generation=2)

    assert scheduler.engine_pid != pid
    assert scheduler.counters.reloads == {"start": 1, "plan": 1}
    assert sum(scheduler.counters.stock_seconds.counts) == 1


def test_a_plan_that_comes_back_cancels_its_reload(world, plan):
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")

    scheduler.submit(plan("b"))
    scheduler.step(world.now)
    scheduler.submit(plan("a"))
    scheduler.step(world.now)
    world.now += 3600
    scheduler.step(world.now)

    assert scheduler.status.mode == "enforcing"
    assert scheduler.generation.number == 1


def test_a_plan_that_breaks_a_rule_of_the_engine_leaves_the_old_one_attached(world, plan):
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")

    world.refusals.append(PlanError("plan", ["17 layers are more than 16"]))
    scheduler.submit(plan("b"))
    world.now += 3600
    scheduler.step(world.now)

    assert (scheduler.status.mode, scheduler.generation.number) == ("enforcing", 1)
    assert "17 layers" in scheduler.status.detail
    assert "17 layers" in scheduler.refusal


def test_a_refused_plan_with_nothing_to_fall_back_to_is_safe_mode_until_it_changes(world, plan):
    scheduler = world.scheduler()
    world.refusals.append(PlanError("plan", ["no terminal layer"]))
    scheduler.submit(plan("a"))
    scheduler.step(world.now)
    assert (scheduler.status.mode, scheduler.status.reason) == ("safe_mode", "invalid_plan")
    assert "no terminal layer" in scheduler.status.detail

    scheduler.submit(plan("b"))

    world.settle(scheduler, "enforcing")


def test_a_plan_that_does_not_load_is_rolled_back_once(world, plan):
    scheduler = world.scheduler(warm_swap=False)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")

    world.script(die="Error: Argument list too long (os error 7)\n", die_if_layer="bad")
    scheduler.submit(plan("bad"))
    scheduler.step(world.now)
    world.now += 100
    world.drive(scheduler, lambda: scheduler.counters.reloads["rollback"])
    world.settle(scheduler, "enforcing", generation=1)

    assert scheduler.counters.reloads == {"start": 1, "plan": 1, "rollback": 1}
    assert scheduler.counters.ejections == {"verifier_too_large": 1}
    assert "generation 2 did not attach" in scheduler.status.detail
    world.now += 3600
    scheduler.step(world.now)
    assert scheduler.generation.number == 1


def test_a_plan_after_a_rolled_back_one_gets_its_chance(world, plan):
    scheduler = world.scheduler(warm_swap=False)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")
    world.script(die="Error: Argument list too long (os error 7)\n", die_if_layer="bad")
    scheduler.submit(plan("bad"))
    scheduler.step(world.now)
    world.now += 100
    world.drive(scheduler, lambda: scheduler.counters.reloads["rollback"])
    world.settle(scheduler, "enforcing", generation=1)

    scheduler.submit(plan("good"))
    scheduler.step(world.now)
    world.now += 100

    world.settle(scheduler, "enforcing", generation=3)


def test_a_first_plan_that_the_verifier_refuses_is_not_tried_again(world, plan):
    world.script(die="Error: Argument list too long (os error 7)\n")
    scheduler = world.scheduler()
    scheduler.submit(plan("bad"))

    world.settle(scheduler, "safe_mode", "invalid_plan")

    world.now += 3600
    scheduler.step(world.now)
    assert scheduler.engine_pid is None
    assert "verifier" in scheduler.status.detail


def test_an_ejection_is_diagnosed_and_waited_out_with_doubling_delays(world, plan):
    scheduler = world.scheduler(backoff_s=10.0)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")

    world.trigger.write_text(STALL)
    world.settle(scheduler, "safe_mode", "ejected")
    world.trigger.unlink()

    assert scheduler.counters.ejections == {"stall": 1}
    assert "taskset[248]" in scheduler.status.detail
    world.now += 9.9
    scheduler.step(world.now)
    assert scheduler.engine_pid is None
    world.now += 0.2
    world.settle(scheduler, "enforcing", generation=1)
    assert scheduler.counters.reloads == {"start": 1, "recovery": 1}


def test_a_spent_crash_budget_is_left_by_going_through_safe_mode(world, plan):
    world.script(die="thread 'main' panicked\n", exit=101)
    scheduler = world.scheduler(crash_budget=2, backoff_s=10.0)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "safe_mode", "ejected")
    world.now += 11
    world.settle(scheduler, "safe_mode", "crash_loop")

    world.script()
    world.now += 3600
    scheduler.step(world.now)
    assert scheduler.status.reason == "crash_loop"
    world.requests.add("operator", "have a look")
    scheduler.step(world.now)
    assert scheduler.status.reason == "requested"
    world.requests.withdraw("operator")

    world.settle(scheduler, "enforcing")


def test_a_changed_plan_does_not_end_a_crash_loop_that_no_plan_is_to_blame_for(world, plan):
    world.script(die="thread 'main' panicked\n", exit=101)
    scheduler = world.scheduler(crash_budget=1)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "safe_mode", "crash_loop")

    scheduler.submit(plan("b"))
    world.now += 86_400
    scheduler.step(world.now)

    assert scheduler.status.reason == "crash_loop"
    assert scheduler.counters.reloads == {"start": 1}


def test_a_changed_plan_gets_one_try_after_the_longest_wait_where_the_last_was_to_blame(
    world, plan
):
    world.script(die="Error: Argument list too long (os error 7)\n")
    scheduler = world.scheduler(crash_budget=1, backoff_limit_s=600.0)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "safe_mode", "invalid_plan")

    scheduler.submit(plan("b"))
    world.now += 599
    scheduler.step(world.now)
    assert scheduler.status.reason == "ejected"
    world.now += 2
    world.script()

    world.settle(scheduler, "enforcing")


TRANSIENT = [
    ({"die": "", "exit": 137}, "unknown"),
    ({"die": "thread 'main' panicked\n", "exit": 101}, "panic"),
    ({"die": "Error: Failed to load BPF program\nInvalid argument\n"}, "kconfig_missing"),
]


@pytest.mark.parametrize(("script", "kind"), TRANSIENT)
def test_a_plan_that_failed_for_want_of_luck_is_tried_again_after_the_wait(
    world, plan, script, kind
):
    scheduler = world.scheduler(warm_swap=False, backoff_s=100.0)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")
    world.script(**script, die_if_layer="b")
    scheduler.submit(plan("b"))
    scheduler.step(world.now)
    world.now += 50
    world.drive(scheduler, lambda: scheduler.counters.reloads["rollback"])
    world.settle(scheduler, "enforcing", generation=1)
    assert scheduler.counters.ejections == {kind: 1}
    assert "generation 2 did not attach" in scheduler.status.detail

    world.script()
    world.now += 99
    scheduler.step(world.now)
    assert scheduler.generation.number == 1
    world.now += 2
    scheduler.step(world.now)
    world.now += 50
    world.settle(scheduler, "enforcing", generation=3)

    assert scheduler.generation.plan == plan("b")
    assert scheduler.refusal == ""


def test_a_scheduler_that_came_first_is_held_against_no_plan(world, plan):
    scheduler = world.scheduler(warm_swap=False, recheck_s=60.0)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")
    world.script(die="Error: another sched_ext scheduler is already running\n", die_if_layer="b")
    scheduler.submit(plan("b"))
    scheduler.step(world.now)
    world.now += 50
    world.settle(scheduler, "safe_mode", "foreign_scheduler")

    world.script()
    world.now += 61
    world.settle(scheduler, "enforcing")

    assert scheduler.generation.plan == plan("b")
    assert scheduler.counters.reloads["rollback"] == 0


def test_no_churn_of_failing_plans_takes_the_good_one_down_more_often_than_the_budget(world, plan):
    scheduler = world.scheduler(
        warm_swap=False, crash_budget=2, min_interval_s=0.0, stats_silence_s=86_400.0
    )
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")
    world.script(die="thread 'main' panicked\n", exit=101, die_if_layer="bad")

    for turn in range(25):
        scheduler.submit(plan("bad", f"pod-{turn}"))
        for _ in range(2):
            world.now += 30
            scheduler.step(world.now)
            world.settle(scheduler, "enforcing", generation=1)

    assert scheduler.counters.ejections == {"panic": 2}
    assert scheduler.counters.reloads["rollback"] == 2


def test_safe_mode_stops_the_engine_and_ends_when_nobody_asks_any_more(world, plan):
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")

    world.requests.add("cli", "maintenance")
    world.requests.add("dashboard", "worried")
    world.idle(scheduler)
    assert (scheduler.status.mode, scheduler.status.reason) == ("safe_mode", "requested")
    assert world.node.state == "disabled"
    assert "maintenance" in scheduler.status.detail
    world.requests.withdraw("cli")
    scheduler.step(world.now)
    assert scheduler.status.reason == "requested"
    world.requests.withdraw("dashboard")

    world.settle(scheduler, "enforcing", generation=1)
    assert scheduler.counters.reloads == {"start": 1, "safe_mode": 1}
    assert not scheduler.counters.ejections


def test_the_hosts_file_is_looked_for_every_poll(world, plan):
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")

    world.node.put("safe-mode", "disk is being replaced\n")
    world.now += 1.1

    world.settle(scheduler, "safe_mode", "requested")
    assert "disk is being replaced" in scheduler.status.detail


def test_safe_mode_does_not_wait_for_an_engine_that_is_loading(world, plan):
    world.script(hang=True)
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))
    world.drive(scheduler, world.started.exists)
    assert scheduler.status.mode == "reloading"

    world.requests.add("cli", "now")
    world.idle(scheduler)

    assert scheduler.status.reason == "requested"
    assert not scheduler.counters.ejections


def test_a_request_from_before_the_start_keeps_the_engine_away(world, plan):
    world.requests.add("cli", "since last week")
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))

    scheduler.step(world.now)

    assert scheduler.status.reason == "requested"
    assert not world.started.exists()


def test_an_engine_that_ignores_sigterm_is_killed_after_the_deadline(world, plan):
    world.script(ignore_term=True)
    scheduler = world.scheduler(stop_deadline_s=10.0)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")

    world.requests.add("cli", "stop")
    scheduler.step(world.now)
    world.now += 9
    scheduler.step(world.now)
    assert scheduler.engine_pid is not None
    assert "still stopping" in scheduler.status.detail
    world.now += 2
    world.idle(scheduler)

    assert world.node.state == "disabled"


def test_a_kernel_that_keeps_the_scheduler_is_told_by_sysrq_where_that_is_allowed(world, plan):
    trigger = world.node.put("proc/sysrq-trigger", "")
    world.script(keep_attached=True)
    scheduler = world.scheduler(sysrq=True)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")

    os.kill(scheduler.engine_pid, signal.SIGKILL)
    world.settle(scheduler, "safe_mode", "ejected")
    assert trigger.read_text() == ""
    world.now += 6
    scheduler.step(world.now)
    assert trigger.read_text() == "S"
    world.node.detach()

    world.idle(scheduler)


def test_sysrq_is_not_used_unasked(world, plan):
    trigger = world.node.put("proc/sysrq-trigger", "")
    world.script(keep_attached=True)
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")

    os.kill(scheduler.engine_pid, signal.SIGKILL)
    world.settle(scheduler, "safe_mode", "ejected")
    world.now += 6
    world.idle(scheduler)
    world.now += 60
    scheduler.step(world.now)

    assert trigger.read_text() == ""
    assert scheduler.status.reason == "foreign_scheduler"


def test_an_engine_that_does_not_attach_in_time_is_ended_and_says_what_was_missing(world, plan):
    world.script(hang=True)
    scheduler = world.scheduler(start_deadline_s=60.0)
    scheduler.submit(plan("a"))
    world.drive(scheduler, world.started.exists)

    world.now += 61
    world.settle(scheduler, "safe_mode", "ejected")
    world.idle(scheduler)

    assert scheduler.diagnosis.kind == "start_timeout"
    assert "sched_ext is disabled" in scheduler.diagnosis.summary


@pytest.mark.parametrize(
    ("script", "missing"),
    [
        ({"names": ["other"]}, "other layers than the plan"),
        ({"stats": "garbage"}, "no statistics"),
        ({"stats": "silence"}, "no statistics"),
        ({"ops": "lavd"}, "the kernel runs lavd"),
    ],
)
def test_an_engine_that_cannot_be_proven_does_not_count_as_attached(world, plan, script, missing):
    world.script(**script)
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))

    world.drive(scheduler, lambda: missing in scheduler.status.detail)

    assert scheduler.status.mode == "reloading"
    world.now += 61
    world.drive(scheduler, lambda: scheduler.diagnosis)
    assert missing in scheduler.diagnosis.summary


def test_an_engine_that_falls_silent_counts_as_hung(world, plan):
    scheduler = world.scheduler(stats_silence_s=60.0, stats_timeout_s=5.0)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")

    os.kill(scheduler.engine_pid, signal.SIGSTOP)

    def has_ejected():
        # An answer that was on its way counts when it arrives, so the clock goes on until none is.
        world.now += 2.5
        return scheduler.status.reason == "ejected"

    world.drive(scheduler, has_ejected)
    world.now += 11
    world.idle(scheduler)

    assert scheduler.counters.ejections == {"hung": 1}
    assert world.node.state == "disabled"


def test_an_agent_that_slept_does_not_take_its_engine_for_hung(world, plan):
    scheduler = world.scheduler(stats_silence_s=60.0)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")

    world.now += 86_400
    for _ in range(5):
        scheduler.step(world.now)

    assert scheduler.status.mode == "enforcing"


def test_one_late_answer_is_not_death(world, plan):
    scheduler = world.scheduler(stats_silence_s=60.0, stats_timeout_s=5.0)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")
    pid = scheduler.engine_pid

    os.kill(pid, signal.SIGSTOP)
    for _ in range(8):
        world.now += 2.5
        scheduler.step(world.now)
    os.kill(pid, signal.SIGCONT)
    before = scheduler.stats
    while scheduler.stats is before and not scheduler.diagnosis:
        world.now += 0.6
        scheduler.step(world.now)
        time.sleep(0.03)

    assert scheduler.diagnosis is None

    assert scheduler.status.mode == "enforcing"


def test_a_good_engine_stays_while_the_kernel_cannot_be_looked_at(world, plan):
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")
    state = world.node.roots.sched_ext / "state"
    aside = state.rename(world.node.folder / "aside")
    state.mkdir()

    for _ in range(20):
        world.now += 10.0
        scheduler.step(world.now)
    state.rmdir()
    aside.rename(state)
    scheduler.step(world.now)

    assert scheduler.status.mode == "enforcing"
    assert scheduler.diagnosis is None
    assert scheduler.counters.reloads == {"start": 1}


def test_an_engine_that_attaches_again_by_itself_is_followed(world, plan):
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")
    pid = scheduler.engine_pid

    world.detach.touch()
    world.settle(scheduler, "reloading")
    world.settle(scheduler, "enforcing")

    assert scheduler.engine_pid == pid
    assert scheduler.counters.reloads == {"start": 1, "hotplug": 1}


def test_reloads_are_spaced_and_the_latest_plan_wins(world, plan):
    scheduler = world.scheduler(quiet_s=0.0, min_interval_s=30.0)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")
    scheduler.submit(plan("b"))
    scheduler.step(world.now)
    world.settle(scheduler, "enforcing", generation=2)

    scheduler.submit(plan("c"))
    world.now += 10
    scheduler.step(world.now)
    scheduler.submit(plan("d"))
    world.now += 10
    scheduler.step(world.now)
    assert scheduler.status.generation == 2
    assert "reloads are at least 30 s apart" in scheduler.status.detail
    world.now += 11
    world.settle(scheduler, "enforcing", generation=3)

    assert scheduler.generation.plan == plan("d")


def test_closing_ends_the_engine_and_leaves_no_file_behind(world, plan):
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")
    pid = scheduler.engine_pid

    scheduler.close()

    assert world.node.state == "disabled"
    assert not world.node.roots.run.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("content", ["", "agent.sock"])
def test_closing_leaves_a_runtime_directory_that_was_there_or_is_used(world, plan, content):
    run = world.node.roots.run
    if not content:
        run.mkdir(mode=0o700)
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")
    if content:
        (run / content).touch()

    scheduler.close()

    assert [one.name for one in run.iterdir()] == [content] * bool(content)


def test_closing_ends_an_engine_that_ignores_sigterm_too(world, plan):
    world.script(ignore_term=True)
    scheduler = world.scheduler(stop_deadline_s=0.2)
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")

    scheduler.close()

    assert world.node.state == "disabled"


def test_an_engine_that_cannot_be_started_is_a_failure_like_any_other(world, plan):
    world.binary.chmod(0o644)
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))

    world.settle(scheduler, "safe_mode", "ejected")

    assert scheduler.diagnosis.kind == "launch_failed"


def test_a_runtime_directory_that_others_may_write_is_not_used(world, plan):
    world.node.roots.run.mkdir()
    world.node.roots.run.chmod(0o777)
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))

    world.settle(scheduler, "safe_mode", "ejected")

    assert "only its owner" in scheduler.status.detail
    assert not world.started.exists()


def test_what_could_not_be_removed_at_an_engines_end_goes_with_the_next_chance(world, plan):
    scheduler = world.scheduler()
    scheduler.submit(plan("a"))
    world.settle(scheduler, "enforcing")
    world.node.put("run/engine-7.json", "")

    scheduler.close()

    assert not world.node.roots.run.exists()
