"""A recorded node decided and judged again."""

import json

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temper_core import Detection, Detector, Finding, Invariant, hookimpl
from temper_core.cli.simulated_tables import simulation_document
from temper_core.errors import DocumentError
from temper_core.plan.change import ChangeKind
from temper_core.plugin_host import PluginHost, load_host
from temper_core.records.snapshots import Mode, PluginState, Status
from temper_core.rehearsal import simulation
from temper_core.rehearsal.simulation import SimulationOverrides, simulate
from temper_core.settings import Settings
from temper_core.settings.models import LintSettings, PluginHostSettings, SchedulerSettings
from temper_core.settings.tiers import PlanSettings
from temper_core.testing import make_machine, make_pod, make_thread

WATCHING = Status(Mode.OBSERVE_ONLY)
QUICK = LintSettings(windows=3, fire_after=2, clear_after=2)


class Plugin:
    """Finds every thread named ``noisy``, and takes pods named ``batch`` for a shop."""

    @hookimpl
    def temper_invariants(self):
        return [Invariant("noisy", self.check, "whoever is loud is heard")]

    @hookimpl
    def temper_detectors(self):
        return [Detector("by-name", self.detect)]

    def check(self, snapshot):
        for thread in snapshot.threads:
            if thread.comm == "noisy":
                yield Finding(f"tid {thread.tid}", "is noisy", "quieten it", {"tid": thread.tid})
            if thread.comm == "broken":
                raise ValueError("no snapshot like this")

    def detect(self, pod):
        return Detection("shop", 0.5, "its name") if pod.name == "batch" else None


@pytest.fixture(autouse=True)
def plugins(monkeypatch):
    """Have one plugin, whatever is installed."""

    def load_host(of):
        host = PluginHost(of)
        host.add(Plugin(), "noise")
        return host

    monkeypatch.setattr(simulation, "load_host", load_host)


@pytest.fixture
def db():
    return make_pod("db", priority=2_000_000, cgroups=("pods/db/",), cpu_request_millis=4000)


@pytest.fixture
def looks(look_of):
    """Return a function that makes as many looks at a plan as there are sets of names."""

    def make(plan, *names, first=0, **changes):
        return [
            look_of(plan, first + n, *(make_thread(name, tid=9) for name in each), **changes)
            for n, each in enumerate(names)
        ]

    return make


def test_the_recorded_plan_is_decided_again(web, db, plan_of, look_of, write):
    plan = plan_of(web, db)

    told = simulate(write(look_of(plan, 0), look_of(plan, 1)), SimulationOverrides())

    assert told.plan == plan
    assert told.difference is None
    assert told.threads == ()
    assert [step.change.kind for step in told.steps] == [ChangeKind.NONE]


def test_what_no_engine_ran_is_decided_from_nothing(web, db, plan_of, look_of, write):
    one, two = plan_of(web, steered=False), plan_of(web, db, steered=False)
    looks = [look_of(one, 0, status=WATCHING), look_of(two, 1, status=WATCHING)]

    told = simulate(write(*looks), SimulationOverrides())

    assert told.plan == two
    assert [step.change.kind for step in told.steps] == [ChangeKind.START, ChangeKind.WARM_SWAP]


def test_each_change_of_the_pods_takes_the_way_that_its_engine_could(
    web, db, plan_of, look_of, write
):
    small = make_pod("small", cgroups=("pods/small/",))
    plans = [plan_of(web), plan_of(web, small), plan_of(web, small, db)]

    told = simulate(
        write(*(look_of(plan, n) for n, plan in enumerate(plans))), SimulationOverrides()
    )

    first, second, third = told.steps
    assert (first.at_s, second.at_s, third.at_s) == (0.0, 5.0, 10.0)
    assert (first.pods, second.pods, third.pods) == (1, 2, 3)
    assert second.change.kind is ChangeKind.HINTS
    assert [move.pod for move in second.change.moves] == ["default/small"]


@pytest.mark.parametrize(
    ("warm", "kind"), [(True, ChangeKind.WARM_SWAP), (False, ChangeKind.COLD_RESTART)]
)
def test_another_machine_needs_another_engine(web, plan_of, look_of, write, warm, kind):
    settings = Settings(scheduler=SchedulerSettings(warm_swap=warm))

    told = simulate(
        write(look_of(plan_of(web), 0)),
        SimulationOverrides(settings=settings, machine=make_machine(16)),
    )

    assert told.difference.kind is kind
    assert told.steps[0].change.reasons[0].code == "machine"
    assert told.plan.machine.cores == 16


def test_a_static_recording_can_be_steered(web, plan_of, look_of, write):
    path = write(look_of(plan_of(web, steered=False), 0))

    as_it_was, steered = (
        simulate(path, SimulationOverrides()),
        simulate(path, SimulationOverrides(steered=True)),
    )

    assert not as_it_was.plan.is_steered
    assert steered.plan == plan_of(web)
    assert steered.steps[0].change.reasons[0].code == "steering"


def test_settings_may_forbid_hints(web, plan_of, look_of, write):
    settings = Settings(scheduler=SchedulerSettings(steering="static"))

    told = simulate(
        write(look_of(plan_of(web), 0)), SimulationOverrides(settings=settings, steered=True)
    )

    assert not told.plan.is_steered


def test_shrinking_takes_place_when_it_has_been_due_for_long_enough(
    web, db, plan_of, look_of, write
):
    settings = Settings(plan=PlanSettings(shrink_after_s=20.0))
    both, alone = plan_of(web, db), plan_of(web)
    looks = [look_of(both, 0), *(look_of(alone, n) for n in range(1, 8))]

    told = simulate(write(*looks), SimulationOverrides(settings=settings))

    kinds = [(step.at_s, step.change.kind) for step in told.steps]
    assert kinds[:2] == [(0.0, ChangeKind.NONE), (5.0, ChangeKind.HINTS)]
    assert kinds[2:] == [(25.0, ChangeKind.WARM_SWAP)]


def test_threads_that_a_profile_sends_elsewhere_are_named_with_what_they_use(
    web, plan_of, look_of, write, tmp_path
):
    fronts = [
        make_thread(f"front-{n}", tid=n, cgroup="pods/web/", pod="web", cpu_used=0.25)
        for n in (1, 2)
    ]
    shop = evolve(web, containers=(evolve(web.containers[0], image="registry.example/shop:1"),))
    path = write(*(look_of(plan_of(shop), n, *fronts) for n in range(2)))
    (tmp_path / "profiles").mkdir()
    profile = '[fingerprint]\nimages = ["*/shop:*"]\n[[thread_groups]]\nname = "all"\n'
    (tmp_path / "profiles" / "mine.toml").write_text(
        'id = "mine"\n' + profile + 'treatment = "yield"\n'
    )

    told = simulate(path, SimulationOverrides(profiles=tmp_path / "profiles"))

    assert told.plan.assignments[0].profile.profile.id == "mine"
    assert [(each.owner, each.comm, each.threads, each.cpu_used) for each in told.threads] == [
        ("web", "front-1", 1, 0.25),
        ("web", "front-2", 1, 0.25),
    ]
    assert {(each.before, each.after) for each in told.threads} == {("high", "open")}


def test_detectors_that_are_installed_here_are_asked(plan_of, look_of, write):
    batch = make_pod("batch", cgroups=("pods/batch/",), containers=())

    told = simulate(write(look_of(plan_of(batch), 0)), SimulationOverrides())

    [assignment] = told.plan.assignments
    assert assignment.profile.profile.id == "shop"
    assert "its name" in assignment.profile_reason


def test_a_violation_stands_after_enough_windows_of_the_recording_and_goes_as_late(
    plan_of, looks, write
):
    quiet, noisy = ["calm"], ["noisy"]
    path = write(*looks(plan_of(), noisy, noisy, quiet, quiet, quiet, noisy, noisy))

    told = simulate(path, SimulationOverrides(settings=Settings(lint=QUICK)))

    stood = [
        (each.violation.subject, each.from_s, each.until_s, each.looks) for each in told.violations
    ]
    assert stood == [("tid 9", 5.0, 15.0, 2), ("tid 9", 30.0, None, 1)]
    assert told.has_findings
    assert told.invariants == ("noisy", "plugin_health")


def test_one_sample_never_fires(plan_of, looks, write):
    path = write(*looks(plan_of(), ["calm"], ["noisy"], ["calm"], ["calm"], ["calm"]))

    told = simulate(path, SimulationOverrides(settings=Settings(lint=QUICK)))

    assert told.violations == ()
    assert not told.has_findings


def test_a_baseline_is_no_window(plan_of, looks, write):
    baseline = looks(plan_of(), ["noisy"], window_s=0.0)

    told = simulate(
        write(*baseline, *looks(plan_of(), ["noisy"], first=1)),
        SimulationOverrides(Settings(lint=QUICK)),
    )

    assert told.looks == 1
    assert told.violations == ()


def test_a_plugin_that_fails_is_a_finding(plan_of, looks, write):
    path = write(*looks(plan_of(), ["broken"], ["broken"]))

    told = simulate(path, SimulationOverrides(settings=Settings(lint=QUICK)))

    assert {each.violation.invariant for each in told.violations} == {"plugin_health"}


def test_what_is_missing_here_is_remarked(plan_of, look_of, write):
    plugin = PluginState("gone", "1.0", "temper-plugin-gone", (), "active")
    tables = {"noise": {"token": "hidden"}}

    told = simulate(
        write(look_of(plan_of(), 0, plugins=(plugin,)), settings=Settings(plugins=tables)),
        SimulationOverrides(),
    )

    assert told.remarks == (
        "plugin 'gone' was active where this was recorded, and is not here",
        "settings.plugins.noise.token was left out of the recording",
    )


def test_a_node_on_which_nothing_was_planned_is_judged_all_the_same(looks, write):
    told = simulate(
        write(*looks(None, ["noisy"], ["noisy"])), SimulationOverrides(Settings(lint=QUICK))
    )

    assert told.plan is None
    assert told.difference is None
    assert len(told.violations) == 1


def test_the_same_file_gives_the_same_result(web, db, plan_of, looks, write):
    path = write(
        *looks(plan_of(web), ["noisy"], ["noisy"]),
        *looks(plan_of(web, db), ["front-1", "noisy"], first=2),
    )

    said = {
        json.dumps(simulation_document(simulate(path, SimulationOverrides()))) for _ in range(3)
    }

    assert len(said) == 1


@pytest.fixture
def recorded(web, db, plan_of, looks, write):
    """A recording of a steered and of a static plan, with every kind of line in it."""
    return write(
        *looks(plan_of(web), ["front-1", "noisy"]),
        *looks(plan_of(web, db, steered=False), ["front-1", "noisy"], first=1),
    )


ODD = st.one_of(
    st.none(),
    st.integers(-2, 5),
    st.sampled_from([1 << 62, -(1 << 62), 1e18, -1.0, 0.5, "", "open", "x/../", "\0", "\ud800"]),
    st.sampled_from(["Grouped", "Open", "Confined", "critical", "background", "HintEquals"]),
    st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.sampled_from(["id", "name", "open"]), st.integers(0, 3), max_size=2),
)


@given(data=st.data())
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_recording_however_odd_makes_a_traceback(data, recorded, tmp_path):
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    for _ in range(data.draw(st.integers(1, 3))):
        spoil(data, data.draw(st.sampled_from(lines)))
    odd = tmp_path / "odd.rec"
    odd.write_text("".join(json.dumps(line) + "\n" for line in lines))

    complaint = ""
    try:
        json.dumps(
            simulation_document(
                simulate(odd, SimulationOverrides(steered=data.draw(st.booleans())))
            )
        )
    except DocumentError as error:
        complaint = str(error)

    assert not complaint or complaint.startswith(f"{odd}")
    assert "\n" not in complaint


def spoil(data, place):
    """Replace or remove something somewhere below *place*."""
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        inner = place[key]
        if not (isinstance(inner, dict | list) and inner) or data.draw(st.integers(0, 7)) == 0:
            break
        place = inner
    if data.draw(st.booleans()) and isinstance(place, dict):
        del place[key]
    else:
        place[key] = data.draw(ODD)


def test_a_recording_names_no_code(web, plan_of, look_of, write, tmp_path, monkeypatch):
    monkeypatch.setattr(simulation, "load_host", load_host)
    directory, loaded = tmp_path / "plugins", tmp_path / "loaded"
    directory.mkdir()
    (directory / "named.py").write_text(f"open({str(loaded)!r}, 'w').close()\n")
    named = Settings(plugin_host=PluginHostSettings(allow=("named",), directory=str(directory)))
    path = write(look_of(plan_of(web), 0), settings=named)

    told = simulate(path, SimulationOverrides())

    assert not loaded.exists()
    assert f"plugins of {directory}" in told.remarks[0]

    told = simulate(path, SimulationOverrides(settings=named))

    assert loaded.exists()
    assert not [remark for remark in told.remarks if str(directory) in remark]
