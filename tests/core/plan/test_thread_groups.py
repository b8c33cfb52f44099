import pytest

from temper_core.plan import membership
from temper_core.records.profiles import Fingerprint
from temper_core.records.thread_groups import ThreadGroup, ThreadMatch, Treatment
from temper_core.records.threads import ThreadIdentity
from temper_core.records.tiers import LayerKind

CRITICAL, HIGH = 1_000_000, 100_000


@pytest.fixture
def layer_of():
    """Say in which layer a thread of a pod is, by its name."""

    def find(plan, pod, comm, process="main", *, leader=False, cgroup=None):
        path = (
            cgroup or f"kubepods.slice/kubepods-pod{pod.uid.replace('-', '_')}.slice/cri-1.scope/"
        )
        layer = membership.layer_of(
            plan, ThreadIdentity(path, comm, process, 1000, is_leader=leader)
        )
        return layer.name

    return find


@pytest.fixture
def exclusive(pod, profile, group):
    """Make a pod of the high tier and its profile, whose hot threads get a share of it."""

    def make(request, fraction):
        hot = group("hot", "hot", treatment="exclusive", cpu_fraction=fraction)
        annotations = {"temper.codes/workload-profile": "web"}
        return pod("a", HIGH, request, annotations=annotations), profile("web", hot)

    return make


@pytest.mark.parametrize(
    ("request_millis", "fraction", "cores"),
    [(2250, 0.9, 3), (2250, 0.85, 2), (3000, 1.0, 3), (1500, 0.85, 2), (30_000, 0.1, 3)],
)
def test_exclusive_cores_are_the_exact_ceiling(plan, exclusive, request_millis, fraction, cores):
    busy, hot = exclusive(request_millis, fraction)

    layer = plan(busy, profiles=[hot], cores=32).layer_named("web.hot.high")

    assert (layer.kind, layer.exclusive) == (LayerKind.CONFINED, True)
    assert layer.cpus_min == layer.cpus_max == cores * 2


def test_exclusive_threads_do_not_preempt_their_way_out_of_their_cores(plan, exclusive):
    busy, hot = exclusive(2000, 0.5)

    made = plan(busy, profiles=[hot], cores=32)

    assert not made.layer_named("web.hot.high").preempt
    assert made.layer_named("high").preempt


def test_exclusive_cores_of_several_pods_are_rounded_up_once(plan, pod, mysql, with_image):
    pods = [with_image(pod(name, CRITICAL, 1500), "mysql:8") for name in "ab"]

    layer = plan(*pods, profiles=[mysql]).layer_named("mysql.connections.critical")

    assert layer.cpus_min == 3 * 2
    assert layer.group_members == ("default/a", "default/b")


def test_without_a_request_an_exclusive_group_becomes_latency(plan, pod, mysql, with_image, codes):
    made = plan(with_image(pod("a", CRITICAL), "mysql:8"), profiles=[mysql])

    assert made.layer_named("mysql.connections.critical") is None
    assert ("demoted", "mysql.connections.critical") in codes(made)
    assert ("group_needs_steering", "mysql.connections.critical") in codes(made)


def test_the_groups_of_a_pod_go_where_their_treatment_says(plan, pod, mysql, with_image, layer_of):
    database = with_image(pod("a", CRITICAL, 1500), "mysql:8")

    made = plan(database, profiles=[mysql])

    assert layer_of(made, database, "connection") == "mysql.connections.critical"
    assert layer_of(made, database, "ib_log_writer") == "critical"
    assert layer_of(made, database, "mysqld") == "open"
    assert made.layer_named("open").members == ("default/a",)
    assert made.layer_named("critical").group_members == ("default/a",)


def test_the_tier_counts_only_what_exclusive_groups_did_not_take(plan, pod, mysql, with_image):
    made = plan(with_image(pod("a", CRITICAL, 8000, 8000), "mysql:8"), profiles=[mysql], cores=16)

    assert made.layer_named("mysql.connections.critical").cpus_min == 7 * 2
    assert made.layer_named("critical").cpus_min == 2
    assert "1200m" in made.layer_named("critical").reason


def test_three_exclusive_cores_fit_on_four(plan, pod, profile, group):
    hot = profile("onnx", group("hot", treatment="exclusive"))
    busy = pod("a", CRITICAL, 3000, annotations={"temper.codes/workload-profile": "onnx"})

    made = plan(busy, profiles=[hot], cores=4)

    assert [layer.name for layer in made.layers] == ["system", "onnx.hot.critical", "open"]
    assert made.layer_named("onnx.hot.critical").cpus_max == 6
    assert made.layer_named("onnx.hot.critical").members == ("default/a",)


def test_a_group_stays_in_its_tier_where_a_second_layer_that_borrows_would_starve_the_open_one(
    plan, pod, profile, group, codes
):
    hot = profile("onnx", group("hot", "hot", treatment="exclusive", cpu_fraction=0.5))
    busy = pod("a", HIGH, 5000, annotations={"temper.codes/workload-profile": "onnx"})

    made = plan(busy, pod("b", CRITICAL, 100), profiles=[hot], cores=4)

    assert [layer.name for layer in made.layers] == ["system", "critical", "high", "open"]
    assert made.layer_named("system").kind is LayerKind.GROUPED
    assert ("folded", "onnx.hot.high") in codes(made)


def test_an_exclusive_group_that_does_not_fit_stays_in_its_tier_as_without_a_profile(
    plan, pod, profile, group, codes
):
    hot = profile("llama", group("hot", treatment="exclusive"))
    busy = pod("a", CRITICAL, 2000, annotations={"temper.codes/workload-profile": "llama"})

    made = plan(busy, profiles=[hot], cores=2)

    assert made.layer_named("llama.hot.critical") is None
    without = plan(busy, cores=2).layer_named("critical")
    assert made.layer_named("critical") == without
    assert ("folded", "llama.hot.critical") in codes(made)


def test_an_exclusive_group_leaves_the_last_core_to_the_rest_of_its_tier(
    plan, pod, mysql, with_image, layer_of
):
    database = with_image(pod("a", CRITICAL, 1500), "mysql:8")

    made = plan(database, profiles=[mysql], cores=2)

    assert layer_of(made, database, "connection") == "critical"
    critical = made.layer_named("critical")
    assert (critical.kind, critical.protected, critical.demoted) == (
        LayerKind.CONFINED,
        True,
        False,
    )
    (why,) = [note.message for note in made.notes if note.code == "folded"]
    assert why == (
        "2 cores for exclusive use and 1 for the other threads of critical, 1 left to own: "
        "the threads stay in the layer of their tier"
    )


def test_an_exclusive_group_that_leaves_no_core_to_the_rest_of_its_pod_stays_with_it(
    plan, pod, profile, group
):
    hot = profile("onnx", group("hot", "hot", treatment="exclusive"))
    busy = pod("a", CRITICAL, 3000, annotations={"temper.codes/workload-profile": "onnx"})

    made = plan(busy, profiles=[hot], cores=4)

    assert made.layer_named("onnx.hot.critical") is None
    assert made.layer_named("critical").kind is LayerKind.CONFINED
    assert made.layer_named("open").members == ()


@pytest.mark.parametrize(("priority", "tier"), [(CRITICAL, "critical"), (HIGH, "high")])
def test_an_exclusive_group_is_protected_in_the_tiers_that_fence(
    plan, pod, profile, group, priority, tier
):
    hot = profile("web", group("hot", "hot", treatment="exclusive", cpu_fraction=0.5))
    busy = pod("a", priority, 2000, annotations={"temper.codes/workload-profile": "web"})

    made = plan(busy, profiles=[hot], cores=8)

    assert made.layer_named(f"web.hot.{tier}").protected


@pytest.mark.parametrize("priority", [None, 0, 99_999])
def test_an_annotation_fences_no_cores_for_a_pod_without_a_class_that_does(
    plan, pod, profile, group, codes, priority
):
    hot = profile("web", group("hot", "hot", treatment="exclusive"))
    busy = pod("a", priority, 4000, annotations={"temper.codes/workload-profile": "web"})

    made = plan(busy, profiles=[hot], cores=8)

    assert made.layer_named("web.hot.normal") is None
    assert not any(layer.kind is LayerKind.CONFINED for layer in made.layers)
    assert ("folded", "web.hot.normal") in codes(made)


def test_low_and_background_pods_get_no_group_layers(plan, pod, mysql, with_image, codes):
    made = plan(with_image(pod("a", -5, 1500), "mysql:8"), profiles=[mysql])

    assert [layer.name for layer in made.layers] == ["system", "open"]
    assert ("folded", "mysql.connections.low") in codes(made)


def test_a_latency_group_without_steering_stays_in_its_tier_with_its_slices(
    plan, pod, profile, group, with_image, codes
):
    torch = profile("torch", group("feeders", "pt_data", treatment="latency"))
    training = with_image(pod("a", HIGH, 1000), "torch:2")

    made = plan(training, profiles=[torch])

    assert made.layer_named("torch.feeders.high") is None
    assert made.layer_named("high").slice_us == 10_000
    assert ("group_needs_steering", "torch.feeders.high") in codes(made)


def test_what_a_group_overrides_is_taken(plan, pod, profile, group, with_image):
    tuned = profile("web", group("hot", "hot", treatment="exclusive", slice_us=1234, weight=77))

    made = plan(with_image(pod("a", HIGH, 1000), "web:1"), profiles=[tuned])

    layer = made.layer_named("web.hot.high")
    assert (layer.slice_us, layer.weight) == (1234, 77)


def test_groups_that_need_steering_are_noted_and_stay_in_their_tier(
    plan, pod, profile, with_image, codes, layer_of
):
    pattern = ThreadGroup("jit", (ThreadMatch(comm_pattern="^C2 "),), Treatment.LATENCY)
    rest = ThreadGroup("rest", (), Treatment.YIELD)
    service = with_image(pod("a", HIGH, 1000), "java:21")

    made = plan(service, profiles=[profile("java", pattern, rest)])

    assert layer_of(made, service, "C2 Compiler") == "high"
    assert layer_of(made, service, "anything") == "high"
    assert {("group_needs_steering", f"java.{name}.high") for name in ("jit", "rest")} <= codes(
        made
    )


def test_a_note_names_the_keys_for_which_the_engine_has_no_matcher(plan, pod, profile, with_image):
    young = (ThreadMatch(comm_prefix="C2 Comp", older_than_s=60), ThreadMatch(exe="java"))
    jit = ThreadGroup("jit", young, Treatment.YIELD)

    made = plan(with_image(pod("a", HIGH, 1000), "java:21"), profiles=[profile("java", jit)])

    [why] = [note.message for note in made.notes if note.code == "group_needs_steering"]
    assert why.startswith("a match by older_than_s, exe needs steering; until then those threads")


def test_boost_is_noted_and_stays_in_its_tier(plan, pod, mysql, with_image, codes):
    made = plan(with_image(pod("a", HIGH, 1000), "mysql:8"), profiles=[mysql])

    assert ("group_needs_steering", "mysql.innodb.high") in codes(made)


def test_named_threads_that_yield_leave_the_rest_in_the_tier(
    plan, pod, profile, group, with_image, layer_of
):
    tidy = profile("db", group("gc", "gc_", "purge", treatment="yield"))
    database = with_image(pod("a", HIGH, 1000), "db:1")

    made = plan(database, profiles=[tidy])

    assert layer_of(made, database, "gc_1") == "open"
    assert layer_of(made, database, "purge") == "open"
    assert layer_of(made, database, "worker") == "high"
    assert made.layer_named("high").members == ("default/a",)
    assert made.layer_named("open").group_members == ("default/a",)


def test_the_first_group_that_matches_wins(plan, pod, profile, group, with_image, layer_of):
    ordered = profile(
        "db",
        group("keep", "io_sync"),
        group("hot", "io_", treatment="exclusive"),
        group("later", "io_late", treatment="yield"),
        group("rest", treatment="yield"),
    )
    database = with_image(pod("a", HIGH, 1000), "db:1")

    made = plan(database, profiles=[ordered])

    assert layer_of(made, database, "io_sync_1") == "high"
    assert layer_of(made, database, "io_read") == "db.hot.high"
    assert layer_of(made, database, "io_late") == "db.hot.high"
    assert layer_of(made, database, "main") == "open"


def test_process_and_leader_are_told_apart(plan, pod, profile, with_image, layer_of):
    by_process = ThreadGroup("workers", (ThreadMatch(process="worker"),), Treatment.EXCLUSIVE)
    by_leader = ThreadGroup("leaders", (ThreadMatch(leader=True),), Treatment.YIELD)
    service = with_image(pod("a", HIGH, 1000), "web:1")

    made = plan(service, profiles=[profile("web", by_process, by_leader)])

    assert layer_of(made, service, "anything", "worker:1") == "web.workers.high"
    assert layer_of(made, service, "main", leader=True) == "open"
    assert layer_of(made, service, "aio") == "high"


def test_a_group_that_an_earlier_one_hides_gets_no_layer(
    plan, pod, profile, group, with_image, codes
):
    shadowed = profile("db", group("all", "io"), group("hot", "io_read", treatment="exclusive"))

    made = plan(with_image(pod("a", HIGH, 1000), "db:1"), profiles=[shadowed])

    assert made.layer_named("db.hot.high") is None
    assert ("folded", "db.hot.high") in codes(made)


def test_a_profile_is_about_the_containers_that_it_recognises(
    plan, pod, mysql, with_image, layer_of
):
    ids = ("a" * 64, "b" * 64)
    mixed = with_image(pod("a", HIGH, 1500), "mysql:8", "envoy:1", runtime_ids=ids)

    made = plan(mixed, profiles=[mysql])

    prefix = "kubepods.slice/kubepods-poda_0000_4000.slice/cri-containerd-"
    database, proxy = (f"{prefix}{each}.scope/" for each in ids)
    assert layer_of(made, mixed, "connection", cgroup=database) == "mysql.connections.high"
    assert layer_of(made, mixed, "mysqld", cgroup=database) == "open"
    assert layer_of(made, mixed, "wrk:worker_0", cgroup=proxy) == "high"
    assert layer_of(made, mixed, "connection", cgroup=proxy) == "high"
    assert made.layer_named("high").members == ("default/a",)


def test_more_groups_than_layers_fold_the_least_important(
    plan, pod, profile, group, with_image, codes
):
    profiles = [profile(f"p{n:02}", group("hot", "hot", treatment="exclusive")) for n in range(20)]
    pods = [
        with_image(pod(f"x{n:02}", CRITICAL if n % 2 else HIGH, 1000), f"p{n:02}:1")
        for n in range(20)
    ]

    made = plan(*pods, profiles=profiles, cores=64)

    own = [layer.name for layer in made.layers if "." in layer.name]
    assert len(made.layers) == 16
    assert own == [
        *(f"p{n:02}.hot.critical" for n in range(1, 20, 2)),
        "p00.hot.high",
        "p02.hot.high",
    ]
    assert ("folded", "p18.hot.high") in codes(made)


def test_of_equal_groups_the_first_of_their_profile_keep_their_layers(
    plan, pod, profile, group, with_image
):
    groups = [
        group(f"g{n}", f"worker-{n}-", treatment="exclusive", cpu_fraction=0.05) for n in range(16)
    ]
    many = profile("many", *groups)

    made = plan(with_image(pod("a", CRITICAL, 4000), "many:1"), profiles=[many], cores=64)

    own = [layer.name for layer in made.layers if "." in layer.name]
    assert 0 < len(own) < len(groups)
    assert own == [f"many.g{n}.critical" for n in range(len(own))]


def test_a_profile_of_too_many_names_folds_instead_of_breaking_the_engine(
    plan, pod, profile, group, with_image, codes
):
    names = [f"thread-{n:02}" for n in range(40)]
    wide = profile("db", group("background", *names, treatment="yield"))

    made = plan(with_image(pod("a", HIGH, 1000), "db:1"), profiles=[wide])

    assert made.layer_named("high").members == ("default/a",)
    assert ("folded", "db.background.high") in codes(made)


def test_names_of_group_layers_fit_every_engine(plan, pod, profile, group):
    long = profile("p" * 63, group("g" * 63, treatment="exclusive", cpu_fraction=0.5))
    busy = pod("a", HIGH, 1000, annotations={"temper.codes/workload-profile": "p" * 63})

    names = [layer.name for layer in plan(busy, profiles=[long]).layers]

    assert len(names[1]) == 63
    assert names[1].startswith("ppp")


def test_a_fingerprint_without_a_container_of_its_own_means_the_whole_pod(
    plan, pod, profile, group, layer_of
):
    tidy = profile("db", group("gc", "gc", treatment="yield"), fingerprint=Fingerprint())
    asked = pod("a", HIGH, 1000, annotations={"temper.codes/workload-profile": "db"})

    made = plan(asked, profiles=[tidy])

    assert layer_of(made, asked, "gc") == "open"
    assert layer_of(made, asked, "web") == "high"


def test_more_profiles_than_a_layer_has_blocks_fold_some_of_their_groups(
    plan, pod, profile, group, with_image, layer_of
):
    names = [f"app{n:02}" for n in range(40)]
    profiles = [
        profile(name, group("kept", f"{name}-"), group("rest", treatment="yield")) for name in names
    ]
    pods = [with_image(pod(name, HIGH, 10), f"{name}:1") for name in names]

    made = plan(*pods, profiles=profiles)

    folded = {note.subject for note in made.notes if note.code == "folded"}
    assert len(made.layer_named("high").matches) <= 32
    assert 8 <= len(folded) < 40
    for each in pods:
        expected = "high" if f"{each.name}.rest.high" in folded else "open"
        assert layer_of(made, each, "other") == expected
        assert layer_of(made, each, f"{each.name}-1") == "high"


@pytest.fixture
def yields(profile, group):
    return profile(
        "app", group("hot", "hot", treatment="latency"), group("rest", treatment="yield")
    )


@pytest.mark.parametrize(
    ("priority", "subjects"),
    [
        (1_000_000, {"app.rest.critical"}),
        (100_000, {"app.rest.high"}),
        (1, set()),
        (-1000, set()),
    ],
)
def test_an_important_pod_whose_rest_yields_is_noted(
    plan, pod, yields, with_image, priority, subjects
):
    made = plan(with_image(pod("a", priority, 1000), "app:1"), profiles=[yields])

    assert {note.subject for note in made.notes if note.code == "group_yields"} == subjects


def test_a_group_that_yields_by_name_takes_no_main_thread_along(
    plan, pod, profile, group, with_image, codes
):
    app = profile("app", group("gc", "gc", treatment="yield"))

    made = plan(with_image(pod("a", 1_000_000, 1000), "app:1"), profiles=[app])

    assert codes(made) == set()
