"""Where a steered plan wants each thread: which place counts, and which rule of it."""

import pytest

from temper_core.plan import membership
from temper_core.plan.place_index import PlaceIndex
from temper_core.records.pods import Container, Origin, QosClass
from temper_core.records.steering import Scope, ScopeKind, SteeredPlace, SteeringRule
from temper_core.records.thread_groups import Behaviour, ThreadGroup, ThreadMatch, Treatment
from temper_core.records.threads import ThreadBehaviour, ThreadIdentity
from temper_core.records.tiers import Tier
from temper_core.settings import Settings
from temper_core.settings.models import PodSettings
from temper_core.settings.tiers import PlanSettings

CRITICAL, HIGH, BACKGROUND = 1_000_000, 100_000, -1000
ID, OTHER_ID = "4f" * 32, "5e" * 32
KUBELET = "system.slice/kubelet.service/"


def path_of(pod, below="cri-containerd-1.scope/"):
    uid = pod.uid.replace("-", "_")
    return f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid}.slice/{below}"


@pytest.fixture
def layer_of():
    """Say where a plan wants a thread of a cgroup; of a user that is not root unless told."""

    def find(plan, cgroup, comm="any", process="main", uid=1000, **changes):
        return membership.layer_of(plan, ThreadIdentity(cgroup, comm, process, uid, **changes)).name

    return find


@pytest.fixture
def workload(pod):
    """Make a workload that a rule finds by the names of its processes."""

    def make(name, *processes, tier=None, **changes):
        container = Container("main", processes=processes)
        given = {"origin": Origin.WORKLOAD, "containers": (container,), "tier": tier, **changes}
        return pod(name, **given)

    return make


@pytest.fixture
def better(pod, mysql, with_image):
    """Return a pod whose place, or container's, others would like to be in, and the profiles."""
    database = pod("db", CRITICAL, 1500, uid="u-1")
    return with_image(database, "mysql:8", "envoy:1", runtime_ids=[ID, OTHER_ID]), [mysql]


@pytest.mark.parametrize(
    "cgroup",
    [
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu_1.slice/",
        "kubepods.slice/kubepods-podu_1.slice/cri-containerd-a.scope/init/",
        "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podu_1.slice/crio-a.scope/",
    ],
)
def test_a_pod_is_found_by_its_uid_wherever_its_slice_is(steered, pod, layer_of, cgroup):
    made = steered(pod("a", HIGH, uid="u-1"))

    assert layer_of(made, cgroup) == "high"
    assert layer_of(made, cgroup.replace("podu_1", "podu_12")) != "high"


def test_a_pod_is_found_by_the_directory_of_the_other_driver(steered, pod, layer_of):
    settings = Settings(pods=PodSettings(cgroup_driver="cgroupfs"))

    made = steered(pod("a", HIGH, uid="u-1"), settings=settings)

    assert layer_of(made, "kubepods/burstable/podu-1/abc/") == "high"
    assert layer_of(made, "kubepods/burstable/podu-12/abc/") == "normal"


def test_a_pod_whose_cgroup_is_known_is_found_by_its_path(steered, pod, layer_of):
    made = steered(pod("a", HIGH, cgroups=("web.slice/a/",)))

    assert layer_of(made, "web.slice/a/") == layer_of(made, "web.slice/a/b/") == "high"
    assert layer_of(made, "web.slice/ab/") == layer_of(made, "x/web.slice/a/") == "open"


def test_a_pod_of_a_tier_without_a_layer_is_in_open(steered, pod, layer_of):
    made = steered(pod("a", HIGH, uid="u-1"), pod("b", BACKGROUND, uid="u-2"), cores=1)

    assert layer_of(made, path_of(pod("a", uid="u-1"))) == "open"
    assert layer_of(made, path_of(pod("b", uid="u-2"))) == "open"


def test_the_groups_of_a_profile_are_asked_in_their_order(
    steered, pod, mysql, with_image, layer_of
):
    database = with_image(pod("db", CRITICAL, 1500), "mysql:8")
    made = steered(database, profiles=[mysql])
    cgroup = path_of(database)

    assert layer_of(made, cgroup, "connection") == "mysql.connections.critical"
    assert layer_of(made, cgroup, "ib_io_rd-1") == "critical"
    assert layer_of(made, cgroup, "mysqld") == "open"


def test_an_earlier_group_wins_although_its_layer_comes_later(
    steered, pod, profile, group, layer_of
):
    web = profile("web", group("gc", "a_gc"), group("hot", "a", treatment="exclusive"))
    asked = pod("a", HIGH, 100, annotations={"temper.codes/workload-profile": "web"})

    made = steered(asked, profiles=[web])

    assert layer_of(made, path_of(asked), "a_gc_1") == "high"
    assert layer_of(made, path_of(asked), "a_io_1") == "web.hot.high"


def test_patterns_titles_and_behaviour_are_judged_where_they_are_known(
    steered, pod, profile, layer_of
):
    web = profile(
        "web",
        ThreadGroup("gc", (ThreadMatch(comm_pattern="^gc[0-9]"),), Treatment.YIELD),
        ThreadGroup("io", (ThreadMatch(title_pattern="--io"),), Treatment.EXCLUSIVE, 0.5),
        ThreadGroup("hot", (ThreadMatch(behaviour=Behaviour((0.8, 1))),), Treatment.EXCLUSIVE),
    )
    asked = pod("a", HIGH, 1000, annotations={"temper.codes/workload-profile": "web"})
    made, cgroup = steered(asked, profiles=[web]), path_of(asked)

    assert layer_of(made, cgroup, "gc12") == "open"
    assert layer_of(made, cgroup, "gcc") == "high"
    assert layer_of(made, cgroup, title="serve --io 4") == "web.io.high"
    assert layer_of(made, cgroup, behaviour=ThreadBehaviour(0.9)) == "web.hot.high"
    assert layer_of(made, cgroup, behaviour=ThreadBehaviour(0.1)) == "high"


def test_no_thread_yields_before_its_behaviour_is_known(steered, pod, profile, layer_of):
    by_share = ThreadMatch(comm_prefix="worker", behaviour=Behaviour((0.8, 1)))
    web = profile(
        "web",
        ThreadGroup("hot", (by_share,), Treatment.EXCLUSIVE),
        ThreadGroup("net", (ThreadMatch(comm_prefix="worker-n"),), Treatment.LATENCY),
        ThreadGroup("rest", (), Treatment.YIELD),
    )
    asked = pod("a", HIGH, 1000, annotations={"temper.codes/workload-profile": "web"})
    made, cgroup = steered(asked, profiles=[web]), path_of(asked)

    assert layer_of(made, cgroup, "worker-1") == "high"
    assert layer_of(made, cgroup, "worker-1", behaviour=ThreadBehaviour(0.1)) == "open"
    assert layer_of(made, cgroup, "worker-1", behaviour=ThreadBehaviour(0.9)) == "web.hot.high"
    assert layer_of(made, cgroup, "log") == "open"


def test_a_container_that_the_profile_is_not_about_gets_its_tier_only(
    steered, pod, mysql, with_image, layer_of
):
    mixed = pod("a", HIGH, 3000, uid="u-1")
    mixed = with_image(mixed, "mysql:8", "envoy:1", runtime_ids=[ID, OTHER_ID])
    made = steered(mixed, profiles=[mysql])
    database = path_of(mixed, f"cri-containerd-{ID}.scope/")
    proxy = path_of(mixed, f"cri-containerd-{OTHER_ID}.scope/")

    assert layer_of(made, database, "connection") == "mysql.connections.high"
    assert layer_of(made, database, "mysqld") == "open"
    assert layer_of(made, proxy, "connection") == layer_of(made, proxy, "envoy") == "high"
    assert layer_of(made, path_of(mixed, ""), "pause") == "high"


def test_a_directory_inside_a_pod_that_is_named_like_a_better_one_changes_nothing(
    steered, pod, better, layer_of
):
    database, profiles = better
    made = steered(database, pod("mine", BACKGROUND, uid="u-2"), profiles=profiles)
    mine = path_of(pod("mine", uid="u-2"))

    assert layer_of(made, f"{mine}x-podu_1.slice/") == "open"
    assert layer_of(made, f"{mine}cri-containerd-{ID}.scope/", "connection") == "open"


@pytest.mark.parametrize("driver", ["systemd", "cgroupfs"])
@pytest.mark.parametrize("around", ["x.slice/", "kubepods.slice/kubepods-podu_2.slice/"])
def test_inside_a_pod_that_is_known_by_its_path_no_name_makes_another_pod(
    steered, pod, better, layer_of, driver, around
):
    database, profiles = better
    mine = pod("mine", BACKGROUND, uid="u-2", cgroups=(around,))
    settings = Settings(pods=PodSettings(cgroup_driver=driver))

    made = steered(database, mine, profiles=profiles, settings=settings)

    for name in ("kubepods-podu_1.slice/", "podu-1/", f"cri-containerd-{ID}.scope/", f"{ID}/"):
        for inner in (name, f"a/b/{name}", f"{name}{name}"):
            assert layer_of(made, f"{around}{inner}", "connection") == "open"


def test_a_container_of_the_pod_itself_is_found_inside_of_it(
    steered, pod, mysql, with_image, layer_of
):
    mixed = pod("a", HIGH, 3000, cgroups=("x.slice/a/",))
    mixed = with_image(mixed, "mysql:8", "envoy:1", runtime_ids=[ID, OTHER_ID])

    made = steered(mixed, profiles=[mysql])

    assert layer_of(made, f"x.slice/a/{ID}/", "connection") == "mysql.connections.high"
    assert layer_of(made, f"x.slice/a/{OTHER_ID}/", "connection") == "high"


@pytest.mark.parametrize(
    "inside",
    [
        "kubepods.slice/kubepods-podu_9.slice/cri-containerd-a.scope/",
        "kubepods.slice/kubepods-podu_9.slice/a/b/",
        "kubepods/podu-9/a/",
        "kubepods/podu-9/a/kubepods.slice/",
        f"kubepods.slice/kubepods-podu_9.slice:cri-containerd:{'9a' * 32}/kubepods/",
        "x.slice/x-pod0123abcd_0123_0123_0123_0123456789ab.slice/a/",
        f"system.slice/docker-{'9a' * 32}.scope/",
        f"docker/{'9a' * 32}/a/b/",
    ],
)
@pytest.mark.parametrize("driver", ["systemd", "cgroupfs"])
def test_inside_a_container_that_nobody_has_told_of_no_name_counts(
    steered, better, layer_of, inside, driver
):
    database, profiles = better
    settings = Settings(pods=PodSettings(cgroup_driver=driver))

    made = steered(database, profiles=profiles, settings=settings)

    for name in ("kubepods-podu_1.slice/", "podu-1/", f"cri-containerd-{ID}.scope/", f"{ID}/"):
        for inner in (name, f"a/b/{name}", f"{name}{name}"):
            expected = layer_of(made, inside, "connection")
            assert expected in ("normal", "open")
            assert layer_of(made, f"{inside}{inner}", "connection") == expected


@pytest.mark.parametrize("node", [f"docker/{OTHER_ID}/", f"system.slice/docker-{OTHER_ID}.scope/"])
@pytest.mark.parametrize("tree", ["kubelet/kubepods/", "kubelet.slice/kubelet-kubepods.slice/"])
def test_the_pods_of_a_node_that_is_a_container_are_found(steered, pod, layer_of, node, tree):
    made = steered(pod("a", HIGH, uid="u-1"))
    own, other = f"{node}{tree}kubelet-kubepods-podu_1.slice/", f"{node}{tree}x-podu_2.slice/"

    assert layer_of(made, f"{own}cri-containerd-{ID}.scope/") == "high"
    assert layer_of(made, f"{other}a/kubelet-kubepods-podu_1.slice/") == "open"


def test_a_cgroup_of_a_users_session_is_no_pod_whatever_its_name(steered, pod, better, layer_of):
    session = "user.slice/user-1000.slice/user@1000.service/"
    database, profiles = better
    known = pod("mine", HIGH, cgroups=(f"{session}app.slice/",))

    made = steered(database, known, profiles=profiles)

    assert layer_of(made, f"{session}kubepods-podu_1.slice/") == "open"
    assert layer_of(made, f"{session}docker-{ID}.scope/", "connection") == "open"
    assert layer_of(made, f"{session}app.slice/") == "high"


def test_a_system_pod_is_in_the_system_layer(steered, pod, layer_of):
    agent = pod("cni", 2_000_001_000, uid="u-1")

    assert layer_of(steered(agent), path_of(agent)) == "system"


def test_kernel_threads_are_in_the_system_layer_wherever_they_are(steered, layer_of):
    assert layer_of(steered(), "/", "kworker/0:1", "kworker/0:1", 0, is_kthread=True) == "system"


@pytest.mark.parametrize(
    ("cgroup", "process", "uid", "expected"),
    [
        (KUBELET, "anything", 1000, "system"),
        (f"{KUBELET}below/", "anything", 1000, "system"),
        ("init.scope/", "systemd", 0, "system"),
        ("system.slice/k3s.service/", "containerd", 1000, "system"),
        ("runtime.slice/k3s.service/", "containerd-shim", 0, "system"),
        ("runtime.slice/k3s.service/", "containerd", 1000, "open"),
        (f"system.slice/docker-{ID}.scope/", "kubelet", 0, "open"),
        ("system.slice/cron.service/", "cron", 0, "open"),
        ("user.slice/user-0.slice/", "temper", 0, "system"),
        ("/", "scx_layered", 0, "system"),
        ("", "scx_layered", 0, "system"),
        ("elsewhere/", "scx_layered", 0, "open"),
        ("kubepods.slice/", "kubelet", 0, "normal"),
    ],
)
def test_the_nodes_own_processes_are_known_where_only_it_runs(
    steered, layer_of, cgroup, process, uid, expected
):
    assert layer_of(steered(), cgroup, process, process, uid) == expected


def test_the_agent_in_a_unit_of_its_own_is_in_the_system_layer(steered, pod, layer_of):
    cgroup = "system.slice/temper.service/"
    unit = pod("temper.service", origin=Origin.UNIT, cgroups=(cgroup,))

    made = steered(unit)

    assert layer_of(made, cgroup, "temper", "temper", 0) == "system"
    assert layer_of(made, cgroup, "scx_layered", "scx_layered", 0) == "system"


@pytest.mark.parametrize("name", ["kubelet", "temper", "scx_layered"])
def test_a_container_of_docker_keeps_its_tier_whatever_its_processes_are_called(
    steered, pod, layer_of, name
):
    scope = f"system.slice/docker-{ID}.scope/"
    container = pod("a", origin=Origin.CONTAINER, tier=Tier.BACKGROUND, cgroups=(scope,))

    assert layer_of(steered(container), scope, name, name, 0) == "open"


def test_a_cgroup_that_system_keeps_stays_there_though_a_pod_has_it_too(steered, pod, layer_of):
    mixed = pod("a", HIGH, cgroups=(KUBELET, "web.slice/"))

    made = steered(mixed)

    assert layer_of(made, KUBELET) == "system"
    assert layer_of(made, "web.slice/") == "high"


@pytest.mark.parametrize(
    ("cgroup", "expected"),
    [
        ("kubepods.slice/kubepods-pod9.slice/", "normal"),
        ("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod9.slice/", "normal"),
        ("kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod9.slice/", "open"),
        ("kubepods/pod9/", "normal"),
        ("kubepods/burstable/pod9/", "normal"),
        ("kubepods/besteffort/pod9/", "open"),
    ],
)
def test_a_pod_that_is_not_known_yet_is_taken_by_its_qos_class(steered, layer_of, cgroup, expected):
    assert layer_of(steered(), cgroup) == expected
    assert layer_of(steered(cores=1), cgroup) == "open"


def test_a_process_rule_counts_wherever_no_pods_place_does(steered, pod, workload, layer_of):
    made = steered(
        workload("video", "ffmpeg", tier=Tier.HIGH),
        pod("web", BACKGROUND, uid="u-1"),
    )

    assert layer_of(made, "user.slice/", process="ffmpeg") == "high"
    assert layer_of(made, "nowhere/at/all/", process="ffmpeg2") == "high"
    assert layer_of(made, path_of(pod("web", uid="u-1")), process="ffmpeg") == "open"
    assert layer_of(made, KUBELET, process="ffmpeg") == "system"


@pytest.mark.parametrize(
    ("cgroup", "expected"),
    [
        ("kubepods.slice/kubepods-pod9.slice/a/", "normal"),
        ("kubepods/besteffort/pod9/a/", "open"),
    ],
)
def test_a_process_rule_takes_nothing_from_pods_that_are_not_known_yet(
    steered, workload, layer_of, cgroup, expected
):
    made = steered(workload("video", "ffmpeg", tier=Tier.HIGH))

    assert layer_of(made, cgroup, process="ffmpeg") == expected


def test_of_two_process_rules_the_longer_name_counts(steered, workload, layer_of):
    made = steered(
        workload("all", "ff", tier=Tier.HIGH),
        workload("one", "ffmpeg", tier=Tier.CRITICAL),
        cores=16,
    )

    assert layer_of(made, "x/", process="ffplay") == "high"
    assert layer_of(made, "x/", process="ffmpeg") == "critical"


def test_a_process_rule_does_not_take_the_nodes_own_along(steered, workload, layer_of):
    made = steered(workload("mine", "kube", tier=Tier.BACKGROUND))

    assert layer_of(made, "runtime.slice/", process="kubelet", uid=0) == "system"
    assert layer_of(made, "runtime.slice/", process="kubelet", uid=1000) == "open"


def test_of_two_pods_at_one_place_the_more_important_has_it(steered, pod, layer_of):
    made = steered(
        pod("a", BACKGROUND, cgroups=("x.slice/",)), pod("b", HIGH, cgroups=("x.slice/",))
    )

    assert layer_of(made, "x.slice/") == "high"
    assert len({place.scope for place in made.steering}) == len(made.steering)


def test_a_pod_that_nothing_tells_from_others_has_no_place(steered, pod):
    made = steered(pod("a", HIGH, uid="", origin=Origin.CONTAINER))

    assert "default/a" not in {place.pod for place in made.steering}
    assert made.layer_named("open").members == ("default/a",)


def test_rules_that_say_the_same_as_the_last_are_left_out(steered, pod, profile, group):
    web = profile("web", group("gc", "gc", treatment="yield"), group("io", "io"))
    asked = pod("a", HIGH, 100, annotations={"temper.codes/workload-profile": "web"})

    (place,) = [each for each in steered(asked, profiles=[web]).steering if each.pod]

    assert [(rule.layer, rule.match) for rule in place.rules] == [
        ("open", ThreadMatch(comm_prefix="gc")),
        ("high", None),
    ]


def test_a_thread_for_which_no_rule_holds_is_in_open():
    rule = SteeringRule("high", ThreadMatch(comm_prefix="io"))
    index = PlaceIndex([SteeredPlace(Scope(ScopeKind.PATH, "a"), (rule,), "pod")])

    assert index.layer_of(ThreadIdentity("a/", "io_1", "main")) == "high"
    assert index.layer_of(ThreadIdentity("a/", "main", "main")) == "open"


def test_the_place_of_more_cgroups_than_are_remembered_is_still_right():
    rules = (SteeringRule("high"),)
    index = PlaceIndex([SteeredPlace(Scope(ScopeKind.PATH, "a"), rules, "pod")])

    layers = {index.layer_of(ThreadIdentity(f"a/{n}/", "x", "x")) for n in range(20_000)}

    assert layers == {"high"}
    assert index.layer_of(ThreadIdentity("a/7/", "x", "x")) == "high"


@pytest.mark.parametrize(
    ("scope", "path", "expected"),
    [
        (Scope(ScopeKind.PATH, "a/b"), "a/b", True),
        (Scope(ScopeKind.PATH, "a/b"), "a/b/c", False),
        (Scope(ScopeKind.PATH, "", exact=True), "", True),
        (Scope(ScopeKind.POD, "pod1.slice"), "x/kubepods-pod1.slice", True),
        (Scope(ScopeKind.POD, "pod1.slice"), "x/kubepods-pod11.slice", False),
        (Scope(ScopeKind.POD, "pod1-2"), "kubepods/pod1-2", True),
        (Scope(ScopeKind.CONTAINER, ID), f"x/cri-containerd-{ID}.scope", True),
        (Scope(ScopeKind.CONTAINER, ID), f"x/{ID}", True),
        (Scope(ScopeKind.CONTAINER, ID), f"x/{ID}0", False),
        (Scope(ScopeKind.PROCESS, "ffmpeg"), "ffmpeg", False),
    ],
)
def test_a_scope_knows_its_own_cgroup(scope, path, expected):
    assert scope.is_at(path) is expected


def test_guaranteed_pods_without_a_class_are_normal_before_and_after_they_are_known(
    steered, pod, layer_of
):
    known = pod("a", None, 1000, 1000, qos_class=QosClass.GUARANTEED, uid="u-1")
    cgroup = "kubepods.slice/kubepods-podu_1.slice/"

    assert layer_of(steered(), cgroup) == layer_of(steered(known), cgroup) == "normal"


def test_without_names_of_their_own_system_cgroups_and_processes_can_be_empty(steered, layer_of):
    none = PlanSettings(system_cgroups=(), system_process_cgroups=())

    made = steered(settings=Settings(plan=none))

    assert layer_of(made, KUBELET, process="kubelet", uid=0) == "open"
