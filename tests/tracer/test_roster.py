import os
import time

import pytest
from attrs import evolve

from temper_core.observe.places import Places
from temper_core.records.snapshots import Mode
from temper_core.records.wakes import Party
from temper_plugin_tracer.kernel import WakeKernel
from temper_plugin_tracer.roster import MOST_READ, NOBODY, PF_KTHREAD, PartyRoster, ThreadCgroups
from tests.tracer.people import PLAN, WEB_CGROUP, a_snapshot, record, sample


@pytest.fixture
def roster_of(tmp_path):
    """Make a roster of some records; what it reads of /proc is in the test's folder."""

    def make(records, snapshot, homes=None):
        places = Places(snapshot.plan if snapshot is not None else None)
        return PartyRoster(records, snapshot, places, homes or ThreadCgroups(str(tmp_path)))

    return make


@pytest.fixture
def live(tmp_path):
    """Let a thread live in a cgroup."""

    def in_cgroup(tid, path):
        (tmp_path / str(tid)).mkdir()
        (tmp_path / str(tid) / "cgroup").write_text(f"0::/{path}\n")

    return in_cgroup


def test_nobody_is_nobody(roster_of):
    assert roster_of({}, a_snapshot()).party(0) == NOBODY == Party(0, "")


def test_a_thread_is_named_as_the_kernel_saw_it_and_lives_where_the_snapshot_says(roster_of):
    roster = roster_of({41: record("renamed")}, a_snapshot(sample(41, comm="before")))

    assert roster.party(41) == Party(41, "renamed", "server", "shop/web", "critical")


def test_where_the_engine_itself_has_a_thread_counts_more_than_the_plan(roster_of):
    roster = roster_of({41: record()}, a_snapshot(sample(41, layer="open")))

    assert roster.party(41).layer == "open"


def test_a_thread_that_no_snapshot_has_belongs_to_the_pod_of_its_cgroup(roster_of, live):
    live(42, f"{WEB_CGROUP}c1")

    roster = roster_of({42: record("brief")}, a_snapshot())

    assert roster.party(42) == Party(42, "brief", "server", "shop/web", "critical")


def test_a_thread_that_has_ended_belongs_where_others_of_its_cgroup_do(roster_of):
    records = {41: record(cgroup=9), 43: record("ended", cgroup=9)}
    roster = roster_of(records, a_snapshot(sample(41)))

    roster.party(41)

    assert roster.party(43).pod == "shop/web"


def test_a_cgroup_once_known_is_known_in_later_windows(roster_of, tmp_path):
    homes = ThreadCgroups(str(tmp_path))
    roster_of({41: record(cgroup=9)}, a_snapshot(sample(41)), homes).party(41)

    later = roster_of({44: record("ended", cgroup=9)}, a_snapshot(), homes)

    assert later.party(44).pod == "shop/web"


def test_a_thread_of_an_unknown_cgroup_has_a_name_and_no_more(roster_of):
    assert roster_of({45: record("ended")}, a_snapshot()).party(45) == Party(45, "ended", "server")


def test_a_tid_that_was_used_again_is_not_taken_for_the_thread_before(roster_of):
    roster = roster_of({41: record("new", tgid=77)}, a_snapshot(sample(41, tgid=10, layer="open")))

    assert roster.party(41) == Party(41, "new", "server")


def test_a_thread_without_room_in_the_kernel_is_named_by_the_snapshot(roster_of):
    roster = roster_of({}, a_snapshot(sample(41, layer="critical")))

    assert roster.party(41).comm == "worker"
    assert roster.party(46) == Party(46, "")


def test_threads_of_the_kernel_are_in_the_root_and_nothing_is_read_for_them(roster_of, live):
    live(2, WEB_CGROUP)

    roster = roster_of({2: record("kswapd0", flags=PF_KTHREAD)}, a_snapshot())

    assert roster.party(2) == Party(2, "kswapd0", "server", "", "open")


@pytest.mark.parametrize("changes", [{"status": None}, {"plan": None}])
def test_without_an_engine_or_a_plan_no_layer_is_inferred(roster_of, changes):
    snapshot = a_snapshot(sample(41))
    if "status" in changes:
        snapshot = evolve(snapshot, status=evolve(snapshot.status, mode=Mode.SAFE_MODE))
    else:
        snapshot = evolve(snapshot, plan=None)

    assert roster_of({41: record()}, snapshot).party(41).layer == ""


def test_before_the_first_snapshot_there_are_names(roster_of):
    assert roster_of({41: record("early")}, None).party(41).comm == "early"


def test_names_that_are_no_text_do_no_harm(roster_of):
    odd = record()._replace(comm=b"\xff\x1b[2J" + bytes(11), process=b"x" * 16)

    party = roster_of({41: odd}, None).party(41)

    assert (party.comm, party.process) == ("\N{REPLACEMENT CHARACTER}\x1b[2J", "x" * 16)


def test_on_a_hybrid_host_every_process_is_looked_up_by_itself(roster_of, live):
    live(47, "system.slice")
    live(48, f"{WEB_CGROUP}c1")
    records = {47: record(cgroup=1, tgid=47), 48: record(cgroup=1, tgid=48)}

    roster = roster_of(records, a_snapshot())

    assert (roster.party(47).pod, roster.party(48).pod) == ("", "shop/web")


def test_a_storm_of_unknown_threads_reads_only_so_many_files(tmp_path, live):
    homes = ThreadCgroups(str(tmp_path))
    homes.new_window()
    found = [homes.of(99, record(cgroup=1000 + n), None) for n in range(MOST_READ)]
    live(50, WEB_CGROUP)

    beyond = homes.of(50, record(cgroup=8), None)
    homes.new_window()

    assert (set(found), beyond) == ({""}, "")
    assert homes.of(50, record(cgroup=8), None) == WEB_CGROUP


def test_this_very_process_is_found_in_its_cgroup(request):
    request.getfixturevalue("bpf_allowed")
    with WakeKernel.open() as kernel:
        kernel.begin(5.0)
        time.sleep(0.01)
        counted = kernel.end()
    own = os.getpid()
    homes = ThreadCgroups()
    homes.new_window()

    found = PartyRoster(counted.parties, None, Places(PLAN), homes).party(own)

    assert found.process
    assert homes.of(own, counted.parties[own], None).endswith("/")
