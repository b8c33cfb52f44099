"""The warm swap, with real processes behind real gates: what each side notices of the other."""

import os
import signal

import pytest

from temper_core.errors import EngineError
from temper_core.scheduler import pre_exec_script
from tests.core.scheduler.fake_engine import OPS
from tests.core.scheduler.preflight.rights import can_gate

pytestmark = can_gate
VERIFIER = "Error: Argument list too long (os error 7)\n"
PANIC = "thread 'main' panicked\n"
STALL = "Error: EXIT: runnable task stall (taskset[248] failed to run for 5.508s)\n"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def files(world) -> set[str]:
    run = world.node.roots.run
    return {one.name for one in run.iterdir()} if run.exists() else set()


def test_the_old_engine_schedules_and_answers_until_the_next_one_is_loaded(world, plan):
    scheduler = world.enforce(plan("a"))
    old = scheduler.engine_pid
    world.hold.touch()
    world.change(scheduler, plan("b"))
    world.drive(scheduler, lambda: scheduler.stats)
    asked_at = scheduler.stats.answered_at

    world.now += 11.0
    world.drive(scheduler, lambda: scheduler.stats.answered_at > asked_at)

    assert scheduler.status.mode == "enforcing"
    assert "generation 2 loads beside it (used 0 of 60 s of CPU)" in scheduler.status.detail
    assert (scheduler.engine_pid, scheduler.generation.number) == (old, 1)
    assert scheduler.engine_pids[0] == old
    assert len(scheduler.engine_pids) == 2
    world.hold.unlink()
    world.settle(scheduler, "enforcing", generation=2)


def test_the_node_reloads_only_between_the_two_engines(world, plan):
    scheduler = world.enforce(plan("a"))
    old, seen = scheduler.engine_pid, []
    world.change(scheduler, plan("b"))

    def is_over() -> bool:
        if not seen or seen[-1] != scheduler.status.mode:
            seen.append(scheduler.status.mode)
        return scheduler.generation is not None and scheduler.generation.number == 2

    world.drive(scheduler, is_over)

    assert seen == ["enforcing", "reloading", "enforcing"]
    assert scheduler.engine_pid != old
    assert scheduler.counters.reloads == {"start": 1, "plan": 1}
    assert scheduler.counters.swaps == {"warm": 1}
    windows = scheduler.counters.stock_seconds_by_way
    assert (sum(windows["warm"].counts), sum(windows["cold"].counts)) == (1, 0)
    assert not scheduler.counters.ejections


def test_a_swap_leaves_one_engine_its_files_and_nothing_else(world, plan):
    scheduler = world.enforce(plan("a"))
    old = scheduler.engine_pid
    world.change(scheduler, plan("b"))
    world.settle(scheduler, "enforcing", generation=2)

    world.drive(scheduler, lambda: len(scheduler.engine_pids) == 1)

    assert not is_alive(old)
    assert files(world) == {"engine.pid", "engine-2.json"}
    assert (world.node.roots.run / "engine.pid").read_text().startswith(f"{scheduler.engine_pid} ")


def test_while_the_stock_scheduler_runs_the_next_step_is_wanted_within_two_milliseconds(
    world, plan
):
    world.script(stop_s=0.1)
    scheduler = world.enforce(plan("a"))
    world.change(scheduler, plan("b"))
    wishes: list[float] = []

    def is_over() -> bool:
        if scheduler.status.mode == "reloading" and world.node.state != "enabled":
            wishes.append(scheduler.step(world.now))
        return scheduler.generation is not None and scheduler.generation.number == 2

    world.drive(scheduler, is_over)

    assert wishes
    assert max(wishes[:-1], default=0.0) <= 0.002


def test_the_window_runs_from_the_kernels_release_to_its_next_attachment(world, plan):
    world.script(attach_hang_s=0.2)
    scheduler = world.enforce(plan("a"))
    world.change(scheduler, plan("b"))
    world.drive(scheduler, lambda: "attaching" in scheduler.status.detail)

    world.now += 0.7
    world.settle(scheduler, "enforcing", generation=2)

    assert scheduler.counters.stock_seconds.total == pytest.approx(0.7)


def test_the_new_engines_statistics_are_not_taken_from_an_old_one_that_lingers(world, plan):
    world.script(linger_s=0.3)
    scheduler = world.enforce(plan("a"))
    old = scheduler.engine_pid
    world.script()
    world.change(scheduler, plan("a", "b"))
    world.drive(scheduler, lambda: world.node.state == "enabled" and scheduler.engine_pid != old)
    assert is_alive(old)

    world.settle(scheduler, "enforcing", generation=2)

    assert old not in scheduler.engine_pids or not is_alive(old)
    world.now += 1.0
    world.drive(scheduler, lambda: scheduler.stats)
    assert set(scheduler.stats.layers) == {"a", "b"}


def test_a_plan_that_the_verifier_refuses_leaves_the_old_engine_untouched(world, plan):
    scheduler = world.enforce(plan("a"))
    old = scheduler.engine_pid
    world.script(die=VERIFIER, die_if_layer="bad")
    world.change(scheduler, plan("bad"))
    world.drive(scheduler, lambda: scheduler.counters.swap_failures)

    world.now += 3600
    scheduler.step(world.now)

    assert (scheduler.status.mode, scheduler.engine_pids) == ("enforcing", (old,))
    assert scheduler.generation.plan == plan("a")
    assert scheduler.counters.swap_failures == {"verifier_too_large": 1}
    assert "generation 2 did not attach: the verifier refused the plan" in scheduler.refusal
    assert scheduler.refusal in scheduler.status.detail
    assert scheduler.diagnosis.kind == "verifier_too_large"
    assert not scheduler.counters.ejections
    assert scheduler.counters.reloads == {"start": 1}
    assert files(world) == {"engine.pid", "engine-1.json"}


def test_a_plan_after_a_refused_one_gets_its_chance(world, plan):
    scheduler = world.enforce(plan("a"))
    world.script(die=VERIFIER, die_if_layer="bad")
    world.change(scheduler, plan("bad"))
    world.drive(scheduler, lambda: scheduler.counters.swap_failures)

    world.change(scheduler, plan("good"))

    world.settle(scheduler, "enforcing", generation=3)
    assert scheduler.refusal == ""


def test_a_plan_that_failed_for_want_of_luck_is_tried_again_after_the_back_off(world, plan):
    scheduler = world.enforce(plan("a"), backoff_s=100.0)
    old = scheduler.engine_pid
    world.script(die=PANIC, exit=101, die_if_layer="b")
    world.change(scheduler, plan("b"))
    world.drive(scheduler, lambda: scheduler.counters.swap_failures)
    world.script()

    world.now += 99
    for _ in range(3):
        scheduler.step(world.now)
    assert scheduler.engine_pids == (old,)
    assert "generation 2 did not attach" in scheduler.status.detail
    world.now += 2
    scheduler.step(world.now)
    world.now += 31
    world.settle(scheduler, "enforcing", generation=3)

    assert scheduler.generation.plan == plan("b")
    assert scheduler.refusal == ""


def test_failed_successors_use_up_no_crash_budget(world, plan):
    scheduler = world.enforce(plan("a"), crash_budget=2, stats_silence_s=86_400.0)
    world.script(die=PANIC, exit=101, die_if_layer="bad")

    for failures in (1, 2, 3, 4):
        world.change(scheduler, plan("bad", f"pod-{failures}"))
        world.drive(
            scheduler,
            lambda failures=failures: scheduler.counters.swap_failures["panic"] == failures,
        )
        world.now += 700
        scheduler.step(world.now)

    assert scheduler.status.mode == "enforcing"
    assert scheduler.generation.number == 1
    assert not scheduler.counters.ejections


def test_a_newer_plan_takes_the_place_of_one_that_still_loads(world, plan):
    scheduler = world.enforce(plan("a"))
    world.script(hang=True)
    world.change(scheduler, plan("b"))
    loading = scheduler.engine_pids[-1]
    world.script()

    world.change(scheduler, plan("c"))
    world.settle(scheduler, "enforcing", generation=3)

    assert scheduler.generation.plan == plan("c")
    assert not is_alive(loading)
    assert scheduler.counters.swaps == {"warm": 1}
    assert not scheduler.counters.swap_failures


def test_plans_that_change_faster_than_engines_load_do_not_keep_every_engine_away(world, plan):
    scheduler = world.enforce(plan("a"))
    world.hold.touch()
    world.change(scheduler, plan("b"))
    world.change(scheduler, plan("c"))
    world.drive(scheduler, lambda: "generation 3 loads" in scheduler.status.detail)

    world.change(scheduler, plan("d"))
    world.hold.unlink()

    world.settle(scheduler, "enforcing", generation=3)
    assert scheduler.generation.plan == plan("c")


def test_the_same_configuration_with_other_pods_disturbs_no_swap(world, plan):
    scheduler = world.enforce(plan("a"))
    world.hold.touch()
    world.change(scheduler, plan("b"))
    loading = scheduler.engine_pids[-1]
    same_for_the_engine = plan("b", weight=7)

    scheduler.submit(same_for_the_engine)
    scheduler.step(world.now)
    world.hold.unlink()
    world.settle(scheduler, "enforcing", generation=2)

    assert scheduler.engine_pid == loading
    assert scheduler.generation.plan == same_for_the_engine


def test_a_plan_that_comes_back_ends_the_swap(world, plan):
    scheduler = world.enforce(plan("a"))
    old = scheduler.engine_pid
    world.script(hang=True)
    world.change(scheduler, plan("b"))
    loading = scheduler.engine_pids[-1]

    scheduler.submit(plan("a"))
    world.drive(scheduler, lambda: scheduler.engine_pids == (old,))

    assert not is_alive(loading)
    assert (scheduler.status.mode, scheduler.status.detail) == ("enforcing", "")
    assert world.node.state == "enabled"


def test_safe_mode_ends_both_engines_at_once(world, plan):
    scheduler = world.enforce(plan("a"))
    world.script(hang=True)
    world.change(scheduler, plan("b"))
    both = scheduler.engine_pids

    world.requests.add("cli", "now")
    world.drive(scheduler, lambda: not scheduler.engine_pids)

    assert (scheduler.status.mode, scheduler.status.reason) == ("safe_mode", "requested")
    assert world.node.state == "disabled"
    assert not any(is_alive(pid) for pid in both)
    assert files(world) == set()
    assert not scheduler.counters.ejections


def test_safe_mode_between_the_engines_opens_no_gate(world, plan):
    world.script(stop_s=0.2)
    scheduler = world.enforce(plan("a"))
    world.change(scheduler, plan("b"))
    world.drive(scheduler, lambda: "waits for the kernel" in scheduler.status.detail)

    world.requests.add("cli", "now")
    world.drive(scheduler, lambda: not scheduler.engine_pids)

    assert world.node.state == "disabled"
    assert scheduler.counters.reloads == {"start": 1}


def test_an_engine_that_is_thrown_out_takes_its_successor_with_it(world, plan):
    scheduler = world.enforce(plan("a"), backoff_s=10.0)
    world.script(hang=True)
    world.change(scheduler, plan("b"))
    world.script()

    world.trigger.write_text(STALL)
    world.drive(scheduler, lambda: not scheduler.engine_pids)
    world.trigger.unlink()

    assert (scheduler.status.mode, scheduler.status.reason) == ("safe_mode", "ejected")
    assert "taskset[248]" in scheduler.status.detail
    world.now += 11
    world.settle(scheduler, "enforcing")
    assert scheduler.counters.swaps == {}


def test_an_old_engine_that_ignores_sigterm_is_killed_and_followed(world, plan):
    world.script(ignore_term=True)
    scheduler = world.enforce(plan("a"), stop_deadline_s=10.0)
    world.script()
    world.change(scheduler, plan("b"))
    world.drive(scheduler, lambda: "waits for the kernel" in scheduler.status.detail)

    world.now += 11
    world.settle(scheduler, "enforcing", generation=2)

    assert scheduler.counters.swaps == {"warm": 1}


def test_a_kernel_that_does_not_become_free_gets_no_successor(world, plan):
    world.script(ignore_term=True, keep_attached=True)
    scheduler = world.enforce(plan("a"), stop_deadline_s=10.0)
    world.script()
    world.change(scheduler, plan("b"))
    world.drive(scheduler, lambda: "waits for the kernel" in scheduler.status.detail)
    old, waiting = scheduler.engine_pids

    world.now += 11
    world.drive(scheduler, lambda: not is_alive(old))
    for _ in range(3):
        scheduler.step(world.now)
        world.now += 6
    world.settle(scheduler, "safe_mode", "foreign_scheduler")

    world.drive(scheduler, lambda: not is_alive(waiting))
    assert scheduler.counters.reloads == {"start": 1}


def test_a_successor_that_cannot_attach_is_rolled_back_at_once(world, plan):
    scheduler = world.enforce(plan("a"))
    world.script(attach_die=PANIC, attach_if_layer="b")
    world.change(scheduler, plan("b"))

    world.drive(scheduler, lambda: scheduler.counters.reloads["rollback"])
    world.settle(scheduler, "enforcing", generation=1)

    assert scheduler.counters.reloads == {"start": 1, "plan": 1, "rollback": 1}
    assert scheduler.counters.swap_failures == {"unknown": 1}
    assert scheduler.counters.swaps == {}
    assert "generation 2 did not attach" in scheduler.status.detail
    assert sum(scheduler.counters.stock_seconds_by_way["cold"].counts) == 1


def test_an_engine_that_starts_again_in_place_comes_through_its_gate(world, plan):
    scheduler = world.enforce(plan("a"))
    world.change(scheduler, plan("b"))
    world.settle(scheduler, "enforcing", generation=2)
    pid = scheduler.engine_pid
    world.now += 2.0

    world.detach.touch()
    world.settle(scheduler, "reloading")
    world.settle(scheduler, "enforcing")

    assert scheduler.engine_pid == pid
    assert scheduler.counters.reloads["hotplug"] == 1


def test_a_successor_is_not_loaded_for_an_engine_that_detached(world, plan):
    world.script(detached_s=0.3)
    scheduler = world.enforce(plan("a"))
    world.script(hang=True)
    world.change(scheduler, plan("b"))
    loading = scheduler.engine_pids[-1]

    world.detach.touch()
    world.settle(scheduler, "reloading")
    world.drive(scheduler, lambda: not is_alive(loading))

    world.settle(scheduler, "enforcing", generation=1)


@pytest.mark.parametrize(
    ("exit_code", "words"),
    [
        (pre_exec_script.NO_MOUNT_NAMESPACE, "no mount namespace of its own"),
        (pre_exec_script.CANNOT_MOUNT_GATE, "cannot mount the gate over"),
    ],
)
def test_where_there_can_be_no_gate_the_change_is_cold_and_says_why(
    world, plan, monkeypatch, exit_code, words
):
    scheduler = world.enforce(plan("a"))
    refusing = world.node.put(
        "launcher.py",
        "import os, sys\n"
        "if sys.argv[3]:\n"
        f"    sys.stderr.write('temper: {words}: Operation not permitted\\n')\n"
        f"    os._exit({exit_code})\n"
        "os.execv(sys.argv[5], sys.argv[5:])\n",
    )
    monkeypatch.setattr(pre_exec_script, "__file__", str(refusing))
    assert scheduler.swap_obstacle == ""

    world.change(scheduler, plan("b"))
    world.drive(scheduler, lambda: "cold" in scheduler.status.detail)
    assert f"(cold: {words}: Operation not permitted)" in scheduler.status.detail
    world.settle(scheduler, "enforcing", generation=3)

    assert scheduler.counters.swaps == {"cold": 1}
    assert not scheduler.counters.swap_failures
    assert scheduler.swap_obstacle == f"{words}: Operation not permitted"
    assert scheduler.status.detail == ""


def test_going_through_safe_mode_gives_the_gate_another_chance(world, plan, monkeypatch):
    scheduler = world.enforce(plan("a"))
    with monkeypatch.context() as patch:
        refusing = world.node.put(
            "launcher.py",
            "import os, sys\n"
            f"if sys.argv[3]: os._exit({pre_exec_script.NO_MOUNT_NAMESPACE})\n"
            "os.execv(sys.argv[5], sys.argv[5:])\n",
        )
        patch.setattr(pre_exec_script, "__file__", str(refusing))
        world.change(scheduler, plan("b"))
        world.settle(scheduler, "enforcing", generation=3)
    world.requests.add("cli", "look")
    world.drive(scheduler, lambda: not scheduler.engine_pids)
    world.requests.withdraw("cli")
    world.settle(scheduler, "enforcing")

    world.change(scheduler, plan("c"))
    world.settle(scheduler, "enforcing", generation=4)

    assert scheduler.counters.swaps == {"cold": 1, "warm": 1}


def test_a_swap_that_the_settings_forbid_is_cold(world, plan):
    scheduler = world.enforce(plan("a"), warm_swap=False)

    world.change(scheduler, plan("b"))

    assert "(cold: [scheduler] warm_swap is false)" in scheduler.status.detail
    assert scheduler.swap_obstacle == "[scheduler] warm_swap is false"
    world.settle(scheduler, "enforcing", generation=2)


def test_a_cgroup_without_room_for_two_engines_makes_the_change_cold(world, plan):
    scheduler = world.enforce(plan("a"))
    world.node.put("cgroup/memory.max", f"{600 << 20}\n")
    world.node.put("cgroup/memory.current", f"{250 << 20}\n")

    world.change(scheduler, plan("b"))

    assert "a second engine needs 384 MiB while it loads" in scheduler.status.detail
    assert "has 350 MiB left" in scheduler.status.detail
    world.settle(scheduler, "enforcing", generation=2)


def test_nothing_is_stopped_for_an_engine_that_preflight_would_keep_away(world, plan):
    scheduler = world.enforce(plan("a"), recheck_s=60.0, stats_silence_s=86_400.0)
    old = scheduler.engine_pid
    world.node.remove("cgroup/cgroup.controllers")
    world.change(scheduler, plan("b"))
    assert "the next engine cannot be started: cgroup_v2" in scheduler.status.detail
    assert (scheduler.status.mode, scheduler.engine_pids) == ("enforcing", (old,))

    world.node.put("cgroup/cgroup.controllers", "cpu\n")
    world.now += 61
    scheduler.step(world.now)
    world.now += 31

    world.settle(scheduler, "enforcing", generation=2)


def test_a_successor_that_cannot_be_spawned_costs_the_old_engine_nothing(world, plan):
    scheduler = world.enforce(plan("a"))
    old = scheduler.engine_pid
    world.node.roots.run.chmod(0o777)

    world.change(scheduler, plan("b"))
    world.node.roots.run.chmod(0o700)

    assert (scheduler.status.mode, scheduler.engine_pids) == ("enforcing", (old,))
    assert scheduler.counters.swap_failures == {"launch_failed": 1}
    assert "only its owner" in scheduler.status.detail


def test_closing_during_a_swap_ends_both_engines_and_leaves_no_file(world, plan):
    scheduler = world.enforce(plan("a"))
    world.script(hang=True)
    world.change(scheduler, plan("b"))
    both = scheduler.engine_pids

    scheduler.close()

    assert world.node.state == "disabled"
    assert not world.node.roots.run.exists()
    assert not any(is_alive(pid) for pid in both)


def test_an_old_engine_that_dies_by_somebody_elses_hand_while_stopping_is_followed(world, plan):
    world.script(stop_s=0.3)
    scheduler = world.enforce(plan("a"))
    old = scheduler.engine_pid
    world.script()
    world.change(scheduler, plan("b"))
    world.drive(scheduler, lambda: "waits for the kernel" in scheduler.status.detail)

    os.kill(old, signal.SIGKILL)
    world.settle(scheduler, "enforcing", generation=2)

    assert not scheduler.counters.ejections


class Hints:
    """A map of hints that notes whom it was made ready for, and what the kernel ran then."""

    def __init__(self, node) -> None:
        self.path = node.put("hints", "")
        self.calls: list[tuple[str, str]] = []
        self.failures: list[Exception] = []
        self._node = node

    def ready(self, plan) -> None:
        self.calls.append((plan.layers[0].name, self._node.state))
        if self.failures:
            raise self.failures.pop(0)
        self.path.touch()


@pytest.fixture
def hints(world) -> Hints:
    return Hints(world.node)


def test_hints_are_made_right_while_no_engine_reads_them(world, plan, hints):
    scheduler = world.enforce(plan("a", steered=True), hint_map=hints)
    assert hints.calls == [("a", "disabled")]
    assert ["--task-hint-map", str(hints.path)] == world.engine()["arguments"][2:4]

    world.change(scheduler, plan("b", steered=True))
    world.settle(scheduler, "enforcing", generation=2)

    assert hints.calls == [("a", "disabled"), ("b", "disabled")]
    assert ["--task-hint-map", str(hints.path)] == world.engine()["arguments"][2:4]
    assert scheduler.counters.swaps == {"warm": 1}


def test_a_layer_that_only_the_configuration_has_belongs_to_the_proof(world, plan, hints):
    world.script(names=["a"])
    scheduler = world.scheduler(hint_map=hints)
    scheduler.submit(plan("a", steered=True))

    world.drive(scheduler, lambda: "other layers" in scheduler.status.detail)

    assert "unmatched" in scheduler.status.detail


def test_a_static_plan_needs_no_hints(world, plan, hints):
    world.enforce(plan("a"), hint_map=hints)

    assert hints.calls == []
    assert "--task-hint-map" not in world.engine()["arguments"]


def test_hints_that_cannot_be_given_are_a_failed_start(world, plan, hints):
    hints.failures = [EngineError("/sys/fs/bpf is not mounted")]
    scheduler = world.scheduler(hint_map=hints)
    scheduler.submit(plan("a", steered=True))
    world.settle(scheduler, "safe_mode", "ejected")
    assert "the hints for the plan cannot be set: /sys/fs/bpf" in scheduler.status.detail
    assert scheduler.diagnosis.kind == "launch_failed"

    world.now += 11

    world.settle(scheduler, "enforcing")


def test_a_steered_plan_without_a_map_is_a_failed_start(world, plan):
    scheduler = world.scheduler()
    scheduler.submit(plan("a", steered=True))

    world.settle(scheduler, "safe_mode", "ejected")

    assert "there is no map of hints" in scheduler.status.detail


def test_hints_that_fail_between_the_engines_bring_the_good_plan_back(world, plan, hints):
    scheduler = world.enforce(plan("a", steered=True), hint_map=hints)
    hints.failures = [EngineError("the map is gone")]

    world.change(scheduler, plan("b", steered=True))
    world.drive(scheduler, lambda: scheduler.counters.reloads["rollback"])
    world.settle(scheduler, "enforcing", generation=1)

    assert [name for name, _ in hints.calls] == ["a", "b", "a"]
    assert "the map is gone" in scheduler.status.detail


def test_a_pin_that_somebody_removed_is_made_again_before_the_successor_looks_for_it(
    world, plan, hints
):
    scheduler = world.enforce(plan("a", steered=True), hint_map=hints)
    hints.path.unlink()

    world.change(scheduler, plan("b", steered=True))
    world.settle(scheduler, "enforcing", generation=2)

    assert hints.calls == [("a", "disabled"), ("a", "enabled"), ("b", "disabled")]


@pytest.mark.parametrize("reason", ["disabled by sysrq-S", "runnable task stall"])
def test_an_ejection_of_an_engine_that_gives_way_is_not_undone_by_its_heir(world, plan, reason):
    world.script(ignore_term=True)
    scheduler = world.enforce(plan("a"))
    world.script()
    world.change(scheduler, plan("b"))
    world.drive(scheduler, lambda: "waits for the kernel" in scheduler.status.detail)

    with world.node.roots.kmsg.open("a") as log:
        log.write(f'6,1,2,-;sched_ext: BPF scheduler "{OPS}" disabled ({reason})\n')
    world.trigger.write_text(f"Error: EXIT: {reason}\n")
    world.drive(scheduler, lambda: scheduler.diagnosis is not None)
    world.trigger.unlink()
    world.drive(scheduler, lambda: not scheduler.engine_pids)

    assert sum(scheduler.counters.ejections.values()) == 1
    assert scheduler.diagnosis.kind == {"disabled by sysrq-S": "sysrq"}.get(reason, "stall")
    assert scheduler.status.mode != "enforcing"
    assert (world.node.roots.sched_ext / "state").read_text().strip() == "disabled"


def test_an_orderly_end_of_an_engine_that_restarted_in_place_is_no_ejection(world, plan):
    world.script(report_s=0.3)
    scheduler = world.enforce(plan("a"))
    world.now += 2.0
    world.detach.write_text("EXIT: unregistered from the main kernel (cpu 3 going offline)\n")
    world.settle(scheduler, "reloading")
    world.settle(scheduler, "enforcing")

    world.change(scheduler, plan("b"))
    world.settle(scheduler, "enforcing", generation=2)

    assert scheduler.counters.swaps == {"warm": 1}
    assert not scheduler.counters.ejections
