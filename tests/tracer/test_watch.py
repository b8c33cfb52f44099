"""Watching as the agent does it: a thread, real windows, and a budget."""

import errno
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import nullcontext

import pytest
from attrs import evolve
from structlog.testing import capture_logs

from temper_core.errors import BpfError
from temper_core.records.snapshots import Overhead
from temper_plugin_tracer.kernel import WakeKernel
from temper_plugin_tracer.pacing import AIM_CPU_RATIO
from temper_plugin_tracer.watch import WakeWatch
from tests.patience import PATIENCE_S
from tests.tracer.people import a_snapshot

AS_NOBODY = """
import sys, time
from temper_plugin_tracer.watch import WakeWatch
watch = WakeWatch()
watch.want(60)
while not watch.state.reason:
    time.sleep(0.01)
watch.close()
sys.stdout.write(f"\\n{watch.state.reason}")
"""


class Loader:
    """Opens the kernel side, and counts how often; refuses as long as it is told to."""

    def __init__(self, refusal=0):
        self.refusal = refusal
        self.loads = 0

    def __call__(self):
        self.loads += 1
        if self.refusal:
            raise BpfError("cannot load the BPF object", self.refusal)
        return WakeKernel.open()


@pytest.fixture
def make_watch(descriptors):
    """Make a watch; when it is closed no thread and no descriptor of it may be left."""
    made, before, threads = [], descriptors(), threading.active_count()

    def make(**given):
        made.append(WakeWatch(**given))
        return made[-1]

    yield make
    for watch in made:
        watch.close()
    assert descriptors() == before
    assert threading.active_count() == threads


@pytest.fixture
def watch(request, make_watch):
    request.getfixturevalue("bpf_allowed")
    return make_watch()


def test_while_nobody_asks_nothing_is_loaded_and_a_turn_does_nothing(make_watch):
    loader = Loader()
    watch = make_watch(open_kernel=loader)

    for _ in range(100):
        watch.turn(time.monotonic(), a_snapshot())

    assert (loader.loads, watch.last, watch.state.windows) == (0, None, 0)
    assert watch.wanted_until == 0.0


def test_who_asks_gets_a_window_of_what_happens_on_the_node(watch, make_pair, wait_until):
    make_pair(10_000_000).begin()

    watch.want(60)
    watch.turn(time.monotonic(), a_snapshot())
    wait_until(lambda: watch.last, "no window came")

    names = {(edge.waker.comm, edge.wakee.comm) for edge in watch.last.edges}
    assert {("ping", "pong"), ("pong", "ping")} & names
    assert sum(watch.last.waits[0].counts) > 100
    assert abs(watch.last.at - time.time()) < 30
    assert watch.recent(time.monotonic()) is watch.last


def test_windows_cost_no_more_than_their_share_and_get_short_where_switches_are_many(
    watch, make_pair, wait_until
):
    for _ in range(2):
        make_pair(10_000_000).begin()
    watch.want(60)
    wait_until(lambda: watch.last, "no window came")

    state, window = watch.state, watch.last
    assert window.switches_per_s > 20_000
    assert window.length_s < 0.95
    assert (state.kernel_s + state.own_s) / window.every_s <= AIM_CPU_RATIO * 1.001


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_watching_is_told_and_not_run_into_at_every_turn(make_watch, wait_until):
    loads = []

    def fail():
        loads.append(1)
        raise ZeroDivisionError

    watch = make_watch(open_kernel=fail)
    watch.want(60)
    wait_until(lambda: watch.state.reason, "the fault was not told")

    for _ in range(10):
        watch.turn(time.monotonic(), a_snapshot())

    assert len(loads) == 1
    assert watch.defects(time.monotonic()) == (f"wakes: {watch.state.reason}",)


def test_a_shorter_wish_takes_nothing_from_a_longer_one(make_watch):
    watch = make_watch(open_kernel=Loader(errno.EPERM))
    watch.want(600)
    until = watch.wanted_until

    watch.want(1)

    assert watch.wanted_until == until


def test_the_settings_can_have_it_on_from_the_start(request, make_watch, wait_until):
    request.getfixturevalue("bpf_allowed")
    watch = make_watch(is_wanted=True)

    watch.turn(time.monotonic(), None)

    wait_until(lambda: watch.last, "no window came")
    assert watch.wanted_until == float("inf")


def test_wishes_add_up_to_the_longest_and_none_shortens_another(make_watch):
    watch = make_watch(open_kernel=Loader(errno.EPERM))

    watch.want(600)
    longest = watch.wanted_until
    watch.want(5)

    assert watch.wanted_until == longest
    watch.want(1e9)
    assert watch.wanted_until <= time.monotonic() + 3_600


def test_closing_in_the_midst_of_a_window_ends_it_at_once(watch, wait_until):
    watch.want(60)
    wait_until(lambda: any(thread.name == "wakes" for thread in threading.enumerate()))
    began = time.monotonic()

    watch.close()

    assert time.monotonic() - began < 5
    watch.want(60)  # comes too late, and does nothing
    assert not any(thread.name == "wakes" for thread in threading.enumerate())


def test_a_refusal_is_told_with_its_cause_and_tried_again_only_when_somebody_asks(
    make_watch, wait_until
):
    loader = Loader(errno.EINVAL)
    watch = make_watch(open_kernel=loader)

    with capture_logs() as logs:
        watch.want(60)
        wait_until(lambda: watch.state.reason, "no reason")
        for _ in range(20):
            watch.turn(time.monotonic(), None)
        tries = loader.loads
        watch.want(60)
        wait_until(lambda: loader.loads == 2 and watch.state.reason, "no second try")

    assert tries == 1
    assert watch.defects(time.monotonic()) == (f"wakes: {watch.state.reason}",)
    assert {entry["event"] for entry in logs} == {"wakes_not_watched"}


def test_who_asks_hears_at_once_what_is_in_the_way(make_watch):
    watch = make_watch(open_kernel=Loader(errno.EINVAL))

    watch.want(60)
    first = watch.state.reason
    watch.want(60)

    assert "cannot load the BPF object" in first
    assert watch.state.reason == first


def test_who_asks_again_once_nothing_is_in_the_way_hears_so(request, make_watch, wait_until):
    request.getfixturevalue("bpf_allowed")
    loader = Loader(errno.EINVAL)
    watch = make_watch(open_kernel=loader)
    watch.want(60)

    loader.refusal = 0
    watch.want(60)

    wait_until(lambda: not watch.state.reason, "it still names what was in the way")


def test_what_was_in_the_way_is_no_defect_once_nobody_asks_any_more(make_watch, wait_until):
    watch = make_watch(open_kernel=Loader(errno.EINVAL))
    watch.want(60)
    wait_until(lambda: watch.state.reason, "no reason")

    assert watch.defects(watch.wanted_until + 1) == ()


@pytest.mark.usefixtures("bpf_allowed")
def test_without_the_capability_it_says_so_and_how_to_get_it():
    setpriv = shutil.which("setpriv")
    if setpriv is None or os.geteuid():
        pytest.skip("needs root and setpriv")
    bare = [setpriv, "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", AS_NOBODY]

    told = subprocess.run(bare, capture_output=True, text=True, timeout=PATIENCE_S, check=True)

    reason = told.stdout.splitlines()[-1]
    assert "this process lacks CAP_BPF" in reason
    assert reason.endswith("run it as root, or give it the capabilities BPF and PERFMON")


def test_an_observer_that_uses_up_the_budget_leaves_none_for_windows(
    request, make_watch, wait_until
):
    request.getfixturevalue("bpf_allowed")
    watch = make_watch()
    dear = Overhead({"observe_user": 0.008, "observe_kernel": 0.004})

    watch.turn(time.monotonic(), evolve(a_snapshot(), overhead=dear))
    watch.want(60)
    wait_until(lambda: watch.state.reason, "no reason")

    assert "nothing is left of the budget" in watch.state.reason
    assert watch.last is None


def test_cpu_time_of_the_windows_is_charged_to_their_part(request, make_watch, wait_until):
    request.getfixturevalue("bpf_allowed")
    charged = []
    watch = make_watch(charge=lambda: charged.append("a window") or nullcontext())

    watch.want(60)
    wait_until(lambda: watch.last, "no window came")

    assert charged == ["a window"]


def test_an_old_window_is_not_shown_for_ever(watch, wait_until):
    watch.want(60)
    wait_until(lambda: watch.last, "no window came")
    now = time.monotonic()

    assert watch.recent(now + watch.last.every_s) is watch.last
    assert watch.recent(now + 4 * watch.last.every_s) is None
    assert watch.recent(now + 4 * watch.last.every_s, period_s=1_000.0) is watch.last
