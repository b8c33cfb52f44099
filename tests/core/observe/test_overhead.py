import os
import resource
import threading
import time
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from temper_core.observe.descriptors import DescriptorBudget
from temper_core.observe.observer import Observer
from temper_core.observe.overhead import OwnCost
from temper_core.observe.own_size import READ_EVERY_S, SizeReader
from temper_core.observe.pacing import ObservationPace
from temper_core.records.machine import MachineShape
from temper_core.records.snapshots import Mode, Status
from temper_core.settings.models import LONGEST_PERIOD_S, ObserveSettings, Settings


def burn(cpu_s):
    until = time.thread_time() + cpu_s
    while time.thread_time() < until:
        pass


def test_what_a_part_spent_is_a_share_of_the_window():
    cost = OwnCost()
    began = time.monotonic()
    with cost.part("observe"):
        burn(0.05)

    parts = cost.take().cpu_ratio

    window_s = time.monotonic() - began
    spent_s = (parts["observe_user"] + parts["observe_kernel"]) * window_s
    assert spent_s >= 0.05
    assert all(0 <= ratio <= 1.01 for ratio in parts.values())


def test_the_parts_add_up_to_the_whole_process():
    cost, began_s, began = OwnCost(), time.process_time(), time.monotonic()
    with cost.part("decide"):
        burn(0.02)
    thread = threading.Thread(target=burn, args=(0.03,))
    thread.start()
    thread.join()

    parts = cost.take().cpu_ratio

    spent_s = time.process_time() - began_s
    assert sum(parts.values()) * (time.monotonic() - began) == pytest.approx(spent_s, abs=0.01)
    assert parts["other_user"] + parts["other_kernel"] > parts["decide_user"]


def test_another_thread_can_be_charged_and_a_window_begins_anew():
    cost = OwnCost()

    def serve():
        with cost.part("serve"):
            burn(0.02)

    thread = threading.Thread(target=serve)
    thread.start()
    thread.join()

    first, second = cost.take().cpu_ratio, cost.take().cpu_ratio

    assert first["serve_user"] + first["serve_kernel"] > 0
    assert second["serve_user"] == second["serve_kernel"] == 0


def test_a_part_inside_a_part_is_charged_to_the_inner_one_alone():
    cost, began = OwnCost(), time.monotonic()

    with cost.part("outer"):
        burn(0.02)
        with cost.part("inner"):
            burn(0.08)

    parts, window_s = cost.take().cpu_ratio, time.monotonic() - began
    spent = {
        name: (parts[f"{name}_user"] + parts[f"{name}_kernel"]) * window_s
        for name in ("outer", "inner")
    }
    assert spent["outer"] == pytest.approx(0.02, abs=0.015)
    assert spent["inner"] == pytest.approx(0.08, abs=0.03)


def test_a_charge_that_another_thread_ends_counts_for_nothing():
    cost = OwnCost()
    charge = cost.part("odd")
    charge.__enter__()
    burn(0.05)

    thread = threading.Thread(target=charge.__exit__, args=(None, None, None))
    thread.start()
    thread.join()

    parts = cost.take().cpu_ratio
    assert (parts["odd_user"], parts["odd_kernel"]) == (0.0, 0.0)


def test_what_fails_inside_a_part_is_charged_all_the_same():
    cost = OwnCost()

    def fail():
        with cost.part("observe"):
            burn(0.01)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert sum(cost.take().cpu_ratio.values()) > 0


def test_memory_and_descriptors_are_those_of_the_kernel(spawn, names_in):
    child = spawn("print('up', flush=True)\nimport sys; sys.stdin.read()")

    overhead = OwnCost().take(engine_pid=child.pid, period_s=5.0)

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert 5 * 2**20 < overhead.memory_bytes <= peak + 2**21  # statm lags a little behind
    statm = Path(f"/proc/{child.pid}/statm").read_text().split()
    assert overhead.engine_memory_bytes == int(statm[1]) * os.sysconf("SC_PAGE_SIZE")
    assert abs(overhead.descriptors - len(names_in("/proc/self/fd"))) <= 2
    assert overhead.period_s == 5.0


def test_what_proc_does_not_say_is_zero(tmp_path):
    overhead = OwnCost(tmp_path).take(engine_pid=1)

    assert (overhead.memory_bytes, overhead.engine_memory_bytes, overhead.descriptors) == (0, 0, 0)


def test_an_engine_that_is_gone_has_no_memory(spawn):
    child = spawn("print('up')")
    child.wait()

    assert OwnCost().take(engine_pid=child.pid).engine_memory_bytes == 0


def test_a_cheap_look_keeps_the_wanted_period():
    pace = ObservationPace(5.0, 0.01)

    for _ in range(10):
        pace.note(0.04)

    assert (pace.period_s, pace.defects) == (5.0, ())
    assert pace.cost_ratio == pytest.approx(0.008)


def test_a_dear_look_stretches_the_period_until_it_fits_and_says_so():
    pace = ObservationPace(5.0, 0.01)

    for _ in range(12):
        pace.note(0.15)

    assert pace.period_s == 20.0
    assert pace.defects == (
        "observe: observation costs 0.75% of a core (budget 1.00%): every 20 s, not 5 s",
    )


def test_one_dear_look_among_cheap_ones_changes_nothing():
    pace = ObservationPace(5.0, 0.01)

    for cost_s in (0.01, 0.9, 0.01, 0.01, 0.9, 0.01, 0.01):
        pace.note(cost_s)

    assert pace.period_s == 5.0


def test_the_period_ends_at_a_minute_and_the_defect_stays():
    pace = ObservationPace(5.0, 0.001)

    for _ in range(30):
        pace.note(10.0)

    assert pace.period_s == LONGEST_PERIOD_S
    assert "16.67% of a core" in pace.defects[0]


def test_the_period_comes_back_when_looking_is_cheap_again():
    pace = ObservationPace(5.0, 0.01)
    for _ in range(6):
        pace.note(0.5)
    stretched = pace.period_s

    for _ in range(12):
        pace.note(0.001)

    assert (stretched, pace.period_s, pace.defects) == (20.0, 5.0, ())


def test_a_cost_near_the_budget_does_not_make_the_period_flap():
    pace = ObservationPace(5.0, 0.01)
    periods = []

    for _ in range(40):
        pace.note(0.051)
        periods.append(pace.period_s)

    assert set(periods[6:]) == {10.0}


def test_a_period_of_more_than_a_minute_is_kept_as_it_was_set():
    pace = ObservationPace(300.0, 0.0001)

    for _ in range(9):
        pace.note(1.0)

    assert pace.period_s == 300.0


def test_sizes_are_read_now_and_then_and_kept_in_between(names_in):
    sizes = SizeReader("/proc", DescriptorBudget())
    first = sizes.read(0.0)
    kept = [os.open("/proc/self/stat", os.O_RDONLY) for _ in range(5)]

    soon, later = sizes.read(READ_EVERY_S / 2), sizes.read(READ_EVERY_S)

    open_now = len(names_in("/proc/self/fd"))
    for descriptor in kept:
        os.close(descriptor)
    sizes.close()
    assert soon == first
    assert abs(later.descriptors - open_now) <= 2


def test_another_engine_is_measured_at_once():
    sizes = SizeReader("/proc", DescriptorBudget())

    without, with_one = sizes.read(0.0), sizes.read(0.1, os.getpid())

    sizes.close()
    assert without.engine_memory_bytes == 0
    assert with_one.engine_memory_bytes > 0


def test_what_ran_in_bpf_is_told_apart_and_not_added():
    cost, began = OwnCost(), time.monotonic()
    cost.series = 70
    with cost.part("observe"):
        burn(0.02)
    cost.note_bpf(10_000_000)

    first, second = cost.take(), cost.take()

    assert first.bpf_cpu_ratio * (time.monotonic() - began) >= 0.01
    assert (
        first.bpf_cpu_ratio <= first.cpu_ratio["observe_user"] + first.cpu_ratio["observe_kernel"]
    )
    assert (second.bpf_cpu_ratio, first.series) == (0.0, 70)


def test_the_cost_of_a_look_is_that_of_looking_and_judging():
    cost = OwnCost()
    for name, cpu_s in (("observe", 0.01), ("lint", 0.01), ("decide", 0.1)):
        with cost.part(name):
            burn(cpu_s)

    cost.take()

    assert 0.02 <= cost.look_s < 0.1


def test_a_stretched_period_is_logged_once_and_comes_back():
    thrifty = ObserveSettings(period_s=0.2, budget_cpu_ratio=0.000_001)
    observer = Observer(MachineShape.uniform(2), Settings(observe=thrifty), node="here")

    with capture_logs() as logs:
        looks = [observer.tick(plan=None, status=Status(Mode.OBSERVE_ONLY)) for _ in range(6)]

    observer.close()
    told = [entry for entry in logs if entry["event"] == "look_period_changed"]
    assert [(entry["before_s"], entry["period_s"]) for entry in told] == [(0.2, 0.4)]
    assert looks[0].observing.stretched == ""
    assert looks[-1].observing.stretched.endswith("every 0.4 s, not 0.2 s")
    assert (looks[-1].observing.period_s, looks[-1].observing.asked_period_s) == (0.4, 0.2)
