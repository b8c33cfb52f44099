import attrs
import pytest

from temper_core.records.engine_matchers import Matcher
from temper_core.records.pods import Origin
from temper_core.settings import Settings
from temper_core.settings.models import PodSettings
from temper_core.settings.tiers import PlanSettings

HIGH = 100_000
SYSTEMD = (
    "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice/cri-containerd-1.scope/"
)
CGROUPFS = "kubepods/burstable/pod{}/0123/"
NESTED = "docker/abc/kubelet.slice/kubelet-kubepods-pod{}.slice/cri-containerd-1.scope/"


def blocks_of(plan, name):
    return plan.layer_named(name).matches


def cgroupfs():
    return Settings(pods=PodSettings(cgroup_driver="cgroupfs"))


def test_a_pod_whose_cgroup_is_known_is_matched_by_its_exact_path(plan, pod, layer_at):
    made = plan(pod("a", HIGH, 100, cgroups=("system.slice/web.service",)))

    assert blocks_of(made, "high") == ((Matcher("CgroupPrefix", "system.slice/web.service/"),),)
    assert layer_at(made, "system.slice/web.service/worker/") == "high"
    assert layer_at(made, "system.slice/web.services/") == "open"


def test_a_pod_whose_cgroup_is_not_known_is_matched_by_its_uid(plan, pod, layer_at):
    seen = pod("a", HIGH, 100, uid="12-34")

    systemd, by_name = plan(seen), plan(seen, settings=cgroupfs())

    assert blocks_of(systemd, "high") == ((Matcher("CgroupContains", "pod12_34.slice/"),),)
    assert blocks_of(by_name, "high") == ((Matcher("CgroupContains", "/pod12-34/"),),)
    assert layer_at(systemd, SYSTEMD.format("12_34")) == "high"
    assert layer_at(systemd, NESTED.format("12_34")) == "high"
    assert layer_at(by_name, CGROUPFS.format("12-34")) == "high"
    assert layer_at(by_name, CGROUPFS.format("12-345")) == "open"


@pytest.mark.parametrize(
    "change",
    [
        {"cgroups": ("/",)},
        {"cgroups": ("",)},
        {"cgroups": ("x" * 5000,)},
        {"cgroups": (), "origin": Origin.UNIT},
        {"uid": ""},
    ],
)
def test_a_pod_that_cannot_be_told_from_others_shares_the_open_layer(plan, pod, codes, change):
    made = plan(pod("a", HIGH, 100, **change))

    assert [layer.name for layer in made.layers] == ["system", "open"]
    assert made.layer_named("open").members == ("default/a",)
    assert ("folded", "default/a") in codes(made)


def test_up_to_32_pods_are_a_block_each(plan, pod):
    made = plan(*(pod(f"p{n:03}", HIGH, 10) for n in range(32)))

    assert len(blocks_of(made, "high")) == 32


@pytest.mark.parametrize("driver", ["systemd", "cgroupfs"])
@pytest.mark.parametrize("count", [33, 500])
def test_more_pods_are_one_regular_expression(plan, pod, layer_at, driver, count):
    settings = Settings(pods=PodSettings(cgroup_driver=driver))
    pods = [pod(f"p{n:03}", HIGH, 10) for n in range(count)]

    made = plan(*pods, settings=settings)

    assert [[each.kind for each in block] for block in blocks_of(made, "high")] == [["CgroupRegex"]]
    for each in pods:
        systemd, by_name = each.uid.replace("-", "_"), each.uid
        path = SYSTEMD.format(systemd) if driver == "systemd" else CGROUPFS.format(by_name)
        assert layer_at(made, path) == "high"
    assert layer_at(made, SYSTEMD.format("p000_0000_400")) == "open"
    assert layer_at(made, CGROUPFS.format("p000-0000-40000")) == "open"


def test_a_regular_expression_takes_known_paths_literally(plan, pod, layer_at):
    paths = [rf"system.slice/app\x2d{n}.(a+b)|[c].service/" for n in range(40)]
    pods = [pod(f"p{n}", HIGH, 10, cgroups=(path,)) for n, path in enumerate(paths)]

    made = plan(*pods)

    assert all(layer_at(made, f"{path}inner/") == "high" for path in paths)
    assert layer_at(made, paths[0].replace(".", "x")) == "open"
    assert layer_at(made, f"elsewhere/{paths[0]}") == "open"
    assert layer_at(made, paths[0].replace(".service", ".services")) == "open"


def test_groups_of_many_pods_have_one_expression_per_name(plan, pod, mysql, with_image, layer_at):
    pods = [with_image(pod(f"p{n:02}", HIGH, 100), "mysql:8") for n in range(40)]

    made = plan(*pods, profiles=[mysql], cores=128)

    assert len(blocks_of(made, "mysql.connections.high")) == 1
    path = SYSTEMD.format("p07_0000_4000")
    assert layer_at(made, path, "connection") == "mysql.connections.high"
    assert layer_at(made, path, "ib_io") == "high"
    assert layer_at(made, path, "mysqld") == "open"


@pytest.mark.parametrize(
    ("process", "uid", "layer"),
    [
        ("scx_layered", 0, "system"),
        ("temper", 0, "system"),
        ("kubelet", 0, "system"),
        ("containerd-shim", 0, "system"),
        ("scx_layered", 1000, "open"),
        ("kubelet", 1000, "open"),
        ("cron", 0, "open"),
    ],
)
def test_the_system_layer_keeps_the_node_itself_served(plan, layer_at, process, uid, layer):
    assert layer_at(plan(), "user.slice/", process, process, uid) == layer


def test_the_system_layer_keeps_kernel_threads_and_system_cgroups(plan, layer_at):
    made = plan()

    assert layer_at(made, "/", "kworker/0:1", "kworker/0:1", 0, is_kthread=True) == "system"
    assert layer_at(made, "system.slice/kubelet.service/") == "system"
    assert layer_at(made, "system.slice/ssh.service/") == "open"


@pytest.mark.parametrize("name", ["kubelet", "containerd-shim", "temper", "scx_layered"])
def test_root_in_a_container_of_docker_does_not_join_the_system_by_a_name(plan, layer_at, name):
    container = f"system.slice/docker-{'9a' * 32}.scope/"

    assert layer_at(plan(), container, name, name, 0) == "open"


@pytest.mark.parametrize("name", ["runc", "kubelet", "temper-fake", "containerd-shim"])
def test_a_pods_process_does_not_join_the_system_by_its_name(plan, pod, layer_at, name):
    made = plan(pod("a", HIGH, 100))

    assert layer_at(made, SYSTEMD.format("a_0000_4000"), name, name, 0) == "high"
    assert layer_at(made, SYSTEMD.format("other_pod"), name, name, 0) == "open"


@pytest.mark.parametrize(
    "cgroup", ["/", "runtime.slice/kubelet.service/", "system.slice/k3s.service/"]
)
def test_the_kubelet_is_served_wherever_a_host_runs_it(plan, layer_at, cgroup):
    assert layer_at(plan(), cgroup, "kubelet", "kubelet", 0) == "system"


def test_process_names_are_cut_to_what_the_kernel_keeps(plan):
    settings = Settings(
        plan=PlanSettings(system_processes=("a-name-of-more-than-15", "ünïcödé-ñämé", ""))
    )

    prefixes = [block[0].value for block in blocks_of(plan(settings=settings), "system")]

    assert "a-name-of-more-" in prefixes
    assert "" not in prefixes
    assert all(len(str(prefix).encode()) <= 15 for prefix in prefixes[1:13])


def test_system_lists_beyond_the_engine_are_cut_with_a_note(plan, pod, codes, layer_at):
    wide = PlanSettings(
        system_processes=tuple(f"daemon{n:02}" for n in range(40)),
        system_cgroups=tuple(f"system.slice/s{n}.service/" for n in range(40)),
    )
    system_pod = pod("dns", 2_000_000_000)

    made = plan(system_pod, settings=attrs.evolve(Settings(), plan=wide))

    assert len(blocks_of(made, "system")) == 32  # nine names in three places, and five more
    assert layer_at(made, "system.slice/s39.service/") == "system"
    assert layer_at(made, SYSTEMD.format("dns_0000_4000")) == "system"
    assert ("folded", "system") in codes(made)
