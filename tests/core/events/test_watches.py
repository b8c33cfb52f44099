import pytest
from attrs import define, evolve, field

from temper_core import LayerPlan, Mode, Note, Severity, Status, ThreadGroup, Violation
from temper_core.events.event_keeper import EventKeeper
from temper_core.events.event_log import EventLog
from temper_core.events.event_watch import EventWatch
from temper_core.events.safe_mode_watch import SafeModeWatch
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.records.plans import Generation
from temper_core.records.profiles import LoadedProfile, ProfileFailure, WorkloadProfile
from temper_core.records.snapshots import PluginState
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.scheduler.counters import EngineCounters
from temper_core.scheduler.failure.diagnosis import Diagnosis, EndKind
from temper_core.testing import make_machine, make_snapshot


@define
class Scheduler:
    status: Status = Status(Mode.OBSERVE_ONLY, "no_plan")
    generation: Generation | None = None
    counters: EngineCounters = field(factory=EngineCounters)
    diagnosis: Diagnosis | None = None


@define
class Profiles:
    catalogue: ProfileCatalogue = ProfileCatalogue()


@define
class Node:
    """A node as the watch sees it; each ``turn`` returns what it recorded."""

    requests: SafeModeRequests
    scheduler: Scheduler = field(factory=Scheduler)
    profiles: Profiles = field(factory=Profiles)
    plan: LayerPlan | None = None
    snapshot: object = None
    log: EventLog = field(factory=EventLog)
    watch: EventWatch = field(init=False)

    def __attrs_post_init__(self):
        keeper = EventKeeper(self.log)
        self.watch = EventWatch(self.log, keeper, self.scheduler, self.requests, self.profiles)

    def turn(self):
        before = self.log.last
        self.watch.turn(self.plan, self.snapshot)
        return [(event.kind, event.subject, event.reason) for event in self.log.after(before)]

    def plan_with(self, *notes):
        self.plan = LayerPlan(make_machine(), (), notes=notes)


@pytest.fixture
def node(tmp_path):
    made = Node(SafeModeRequests(tmp_path / "file", tmp_path / "state.json"))
    made.turn()
    return made


def generation(number):
    return Generation(number, LayerPlan(make_machine(), ()), "[]")


def violation(subject="shop/web", **changes):
    given = {"invariant": "smt_collision", "severity": Severity.WARNING, "subject": subject}
    return Violation(
        **{**given, "message": "shared", "fix": "", "evidence": {}, "since": 5.0, **changes}
    )


def loaded(name, **changes):
    groups = (ThreadGroup("rest"),)
    return LoadedProfile(WorkloadProfile(name, groups, **changes), f"/etc/{name}.toml")


def test_where_nothing_changes_nothing_is_recorded(node):
    node.plan_with(Note("demoted", "low", "too little"))
    node.snapshot = make_snapshot(violations=(violation(),))
    node.turn()
    node.plan_with(Note("demoted", "low", "still too little"))
    node.snapshot = make_snapshot(violations=(violation(),))

    assert node.turn() == []


def test_safe_mode_names_its_cause_and_all_who_ask(node):
    node.requests.add("alice", "a drill")
    node.requests.add("bob", "another")
    node.scheduler.status = Status(Mode.SAFE_MODE, "requested", "alice: a drill")
    entered = node.turn()
    who = node.log.after()[-1].requester
    node.scheduler.status = Status(Mode.SAFE_MODE, "ejected", "a stall")
    changed = node.turn()
    node.scheduler.status = Status(Mode.RELOADING)
    left = node.turn()

    assert entered == [("safe_mode_entered", "requested", "alice: a drill")]
    assert who == "alice, bob"
    assert changed == [("safe_mode_entered", "ejected", "a stall")]
    assert node.log.after()[-2].requester == ""
    assert left == [("safe_mode_left", "ejected", "now reloading")]


def test_a_node_that_only_observes_says_why_and_detail_alone_is_no_event(node):
    node.scheduler.status = Status(Mode.OBSERVE_ONLY, "no_sched_ext", "the kernel lacks it")
    first = node.turn()
    node.scheduler.status = Status(Mode.OBSERVE_ONLY, "no_sched_ext", "in other words")

    assert first == [("mode_changed", "observe_only", "no_sched_ext: the kernel lacks it")]
    assert node.turn() == []


def test_an_engine_is_followed_from_its_start_to_its_end(node):
    scheduler = node.scheduler
    scheduler.status = Status(Mode.ENFORCING, engine="scx_layered 1.1.4")
    node.turn()
    scheduler.counters.reloads["start"] += 1
    started = node.turn()
    scheduler.generation = generation(1)
    attached = node.turn()
    scheduler.generation = evolve(scheduler.generation, plan=LayerPlan(make_machine(), ()))
    same = node.turn()
    scheduler.counters.reloads["plan"] += 1
    scheduler.counters.swaps["warm"] += 1
    scheduler.generation = generation(2)
    swapped = node.turn()
    scheduler.status = evolve(scheduler.status, detail="it was stopped")
    scheduler.generation = None
    detached = node.turn()

    assert started == [("engine_reloaded", "start", "")]
    assert attached == [("engine_attached", "generation 1", "scx_layered 1.1.4")]
    assert same == []
    assert swapped == [
        ("engine_reloaded", "plan", ""),
        ("engine_swapped", "warm", ""),
        ("engine_attached", "generation 2", "scx_layered 1.1.4"),
    ]
    assert detached == [("engine_detached", "generation 2", "it was stopped")]


def test_an_ejection_and_a_failed_swap_come_with_the_diagnosis(node):
    node.scheduler.diagnosis = Diagnosis(EndKind.LAUNCH_FAILED, "it did not start")
    node.scheduler.counters.ejections["launch_failed"] += 1
    node.scheduler.counters.swap_failures["launch_failed"] += 2

    found = node.turn()

    assert [kind for kind, _, _ in found] == ["engine_ejected", *["engine_swap_failed"] * 2]
    assert all(
        subject == "launch_failed" and why.startswith("it did not") for _, subject, why in found
    )


def test_a_demotion_begins_and_ends_with_the_plan(node):
    node.plan_with(Note("demoted", "low", "too little"), Note("folded", "mid", "other"))
    began = node.turn()
    node.plan_with(Note("demoted", "high", "too little"))

    assert began == [("demotion_began", "low", "too little")]
    assert node.turn() == [
        ("demotion_began", "high", "too little"),
        ("demotion_ended", "low", "too little"),
    ]


def test_a_violation_begins_and_ends_and_has_the_level_of_its_severity(node):
    worse = violation("shop/db", severity=Severity.ERROR)
    node.snapshot = make_snapshot(violations=(violation(), worse))
    began = node.turn()
    levels = [event.level for event in node.log.after()]
    node.snapshot = make_snapshot(at=65.0, violations=(worse,))

    assert began == [
        ("violation_began", "shop/web", "smt_collision: shared"),
        ("violation_began", "shop/db", "smt_collision: shared"),
    ]
    assert levels == ["warning", "error"]
    assert node.turn() == [("violation_ended", "shop/web", "smt_collision: lasted 60 s")]


def test_profiles_that_come_change_fail_and_go_are_recorded(node):
    web, failure = loaded("web"), ProfileFailure("/etc/db.toml", "db", "has no id")
    node.profiles.catalogue = ProfileCatalogue((web,), (failure,))
    first = node.turn()
    node.profiles.catalogue = ProfileCatalogue((loaded("web", description="edited"),), (failure,))
    second = node.turn()
    node.profiles.catalogue = ProfileCatalogue((), (failure,))

    assert first == [
        ("profile_failed", "db", "/etc/db.toml: has no id"),
        ("profile_loaded", "web", "/etc/web.toml"),
    ]
    assert second == [("profile_loaded", "web", "/etc/web.toml")]
    assert node.turn() == [("profile_dropped", "web", "/etc/web.toml")]


def test_of_the_profiles_at_the_start_only_failures_are_recorded(tmp_path):
    failure = ProfileFailure("/etc/db.toml", "", "is no TOML")
    started = Node(
        SafeModeRequests(tmp_path / "file", tmp_path / "state.json"),
        profiles=Profiles(ProfileCatalogue((loaded("web"),), (failure,))),
    )

    assert started.turn() == [("profile_failed", "/etc/db.toml", "/etc/db.toml: is no TOML")]


def test_a_plugin_and_a_part_of_one_are_set_aside_and_called_again(node):
    linter = PluginState("linter", "1", "temper-linter", (), "active")
    lost = evolve(linter, lost=("exporter x: it hung: for good",), calls=7)
    node.snapshot = make_snapshot(plugins=(linter,))
    at_work = node.turn()
    node.snapshot = make_snapshot(plugins=(evolve(lost, state="set_aside", failure="it raised"),))
    aside = node.turn()
    node.snapshot = make_snapshot(plugins=(lost,))

    assert at_work == []
    assert aside == [
        ("plugin_set_aside", "linter", "it raised"),
        ("plugin_set_aside", "linter: exporter x", "it hung: for good"),
    ]
    assert node.turn() == [("plugin_revived", "linter", "")]


def test_requests_for_safe_mode_are_recorded_on_the_thread_that_makes_them(tmp_path):
    log = EventLog()
    watch = SafeModeWatch(log)
    (tmp_path / "file").write_text("disk is being replaced")
    requests = SafeModeRequests(tmp_path / "file", tmp_path / "state.json", changed=watch.look)
    watch.begin(requests.active)

    requests.add("alice", "a drill")
    requests.add("alice", "a drill")
    requests.add("alice", "no drill")
    requests.withdraw("alice")
    (tmp_path / "file").unlink()
    requests.poll_file()

    assert [(event.kind, event.subject, event.reason) for event in log.after()] == [
        ("safe_mode_requested", "alice", "a drill"),
        ("safe_mode_requested", "alice", "no drill"),
        ("safe_mode_released", "alice", "no drill"),
        ("safe_mode_released", "file", "disk is being replaced"),
    ]


def test_the_start_the_end_and_what_could_not_be_opened_are_recorded(node):
    node.watch.open()
    node.watch.opened(["instrument tracer: no BPF"])
    node.watch.stop()
    node.watch.close()

    found = [(event.kind, event.reason) for event in node.log.after()]
    assert found == [
        ("agent_started", ""),
        ("instrument_failed", "instrument tracer: no BPF"),
        ("agent_stopped", ""),
    ]
    assert node.log.is_closed
