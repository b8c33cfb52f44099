import contextlib
import os
import select
from pathlib import Path

import pytest

from temper_core.errors import MachineError
from temper_core.node import cgroups
from temper_core.node.cgroups import detect_cgroups
from temper_core.node.found_pods import MOST_NESTED
from temper_core.node.host_cgroups import HostCgroups
from temper_core.node.local_source import SURE_S, LocalPods
from temper_core.node.polled_values import YOUNG_POLLS
from temper_core.node.sources import builtin_pod_sources
from temper_core.records.contributions import PodSourceContext
from temper_core.records.machine import MachineShape
from temper_core.records.pods import Container, Origin, QosClass
from temper_core.records.tiers import Tier
from temper_core.settings.models import PodSettings, WorkloadRule
from tests.core.node.trees import make_cgroup, make_hierarchy, make_process

ID = "0123456789abcdef" * 4
OTHER_ID = "f" * 64
UID = "8f1c2d3e-4a5b-6c7d-8e9f-0a1b2c3d4e5f"
UID_ = UID.replace("-", "_")
BURSTABLE = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice"
GUARANTEED = f"kubepods.slice/kubepods-pod{UID_}.slice"


def local(context):
    (source,) = [source for source in builtin_pod_sources() if source.name == "local"]
    return source.open(context)


def pods_of(host, *rules, **options):
    return {pod.key: pod for pod in local(host.context(*rules, **options)).pods()}


def test_a_kubernetes_pod_is_found_with_its_containers_and_size(host):
    make_cgroup(host.cgroups, BURSTABLE, cpu_weight="39\n", cpu_max="200000 100000\n")
    container = make_cgroup(host.cgroups, f"{BURSTABLE}/cri-containerd-{ID}.scope")
    make_process(host.proc, 200, "worker", container)
    make_process(host.proc, 100, "mysqld", container)

    (pod,) = pods_of(host).values()

    assert (pod.uid, pod.key, pod.origin) == (UID, "pod-8f1c2d3e", Origin.KUBERNETES)
    assert pod.qos_class is QosClass.BURSTABLE
    assert (pod.cpu_request_millis, pod.cpu_limit_millis) == (975, 2000)
    assert pod.cgroups == (f"{BURSTABLE}/",)
    assert pod.containers == (Container("", runtime_id=ID, processes=("mysqld",)),)


@pytest.mark.parametrize(
    "impostor",
    [
        f"docker/{OTHER_ID}/{BURSTABLE}",
        f"docker/{OTHER_ID}/kubepods.slice/pod{UID}",
        f"a/kubepods/pod{UID}",
        f"a.slice/b.service/{GUARANTEED}",
        f"{BURSTABLE}/cri-containerd-{ID}.scope/{BURSTABLE}",
    ],
)
def test_a_cgroup_named_like_a_pod_below_another_displaces_no_pod(host, impostor):
    container = make_cgroup(host.cgroups, f"{BURSTABLE}/cri-containerd-{ID}.scope")
    make_process(host.proc, 100, "mysqld", container)
    inside = make_cgroup(host.cgroups, f"{impostor}/cri-containerd-{'e' * 64}.scope")
    make_process(host.proc, 50, "evil", inside)

    (pod,) = [pod for pod in pods_of(host).values() if pod.uid == UID]

    assert pod.cgroups == (f"{BURSTABLE}/",)
    assert pod.containers == (Container("", runtime_id=ID, processes=("mysqld",)),)


def test_the_request_of_a_guaranteed_pod_is_its_exact_quota(host):
    make_cgroup(host.cgroups, GUARANTEED, cpu_weight="10\n", cpu_max="25000 100000\n")

    (pod,) = pods_of(host).values()

    assert (pod.qos_class, pod.cpu_request_millis) == (QosClass.GUARANTEED, 250)


def test_weights_of_the_newer_conversion_are_understood(host):
    make_cgroup(host.cgroups, "kubepods.slice", cpu_weight="303\n")
    make_cgroup(host.cgroups, BURSTABLE, cpu_weight="35\n", cpu_max="max 100000\n")

    (pod,) = pods_of(host, cpus=4).values()

    assert 245 <= pod.cpu_request_millis <= 260


def test_where_there_is_kubernetes_units_are_not_pods(host):
    make_hierarchy(host.cgroups, [BURSTABLE, "system.slice/sshd.service", f"docker/{OTHER_ID}"])

    assert set(pods_of(host)) == {"pod-8f1c2d3e", f"docker-{OTHER_ID[:12]}"}


def test_pods_of_a_cluster_in_containers_are_found_beside_the_containers(host):
    nested = f"docker/{OTHER_ID}/kubelet/kubepods/besteffort/pod{UID}"
    make_hierarchy(host.cgroups, [f"{nested}/{ID}"])

    pods = pods_of(host)

    assert pods["pod-8f1c2d3e"].cgroups == (f"{nested}/",)
    assert pods[f"docker-{OTHER_ID[:12]}"].cgroups == (f"docker/{OTHER_ID}/",)


def test_a_container_has_its_quota_and_main_process(host):
    path = f"system.slice/docker-{ID}.scope"
    make_process(
        host.proc, 7, "redis-server", make_cgroup(host.cgroups, path, cpu_max="150000 100000\n")
    )

    pod = pods_of(host)["docker-0123456789ab"]

    assert (pod.uid, pod.origin, pod.cgroups) == (ID, Origin.CONTAINER, (f"{path}/",))
    assert (pod.cpu_request_millis, pod.cpu_limit_millis) == (0, 1500)
    assert pod.qos_class is QosClass.BURSTABLE
    assert pod.containers[0].runtime_id == ID
    assert pod.containers[0].processes == ("redis-server",)


def test_units_are_pods_and_user_sessions_are_one(host):
    units = ["system.slice/sshd.service", "init.scope", "user.slice/user-0.slice/session-1.scope"]
    make_hierarchy(host.cgroups, units)
    make_process(host.proc, 30, "sshd", host.cgroups / "system.slice/sshd.service")

    pods = pods_of(host)

    assert set(pods) == {"sshd.service", "init.scope", "user.slice"}
    assert {pod.origin for pod in pods.values()} == {Origin.UNIT}
    assert {pod.qos_class for pod in pods.values()} == {QosClass.BEST_EFFORT}
    assert pods["sshd.service"].uid == "unit:sshd.service"
    assert pods["sshd.service"].containers[0].processes == ("sshd",)
    assert pods["user.slice"].cgroups == ("user.slice/",)


@pytest.mark.parametrize("own", [f"system.slice/docker-{ID}.scope", f"docker/{ID}"])
@pytest.mark.parametrize(
    "made",
    [
        f"lxc.payload.c1/docker-{ID}.scope",
        f"aaa.service/docker-{ID}.scope",
        f"system.slice/aaa.service/docker-{ID}.scope",
        f"aaa.slice/aaa.service/docker/{ID}",
        f"docker/{OTHER_ID}/docker/{ID}",
    ],
)
def test_a_cgroup_named_like_the_container_of_another_takes_nothing_from_it(host, own, made):
    make_hierarchy(host.cgroups, [own, made])

    pods = pods_of(host)

    assert pods[f"docker-{ID[:12]}"].cgroups == (f"{own}/",)
    assert f"{made}/" not in {path for pod in pods.values() for path in pod.cgroups}


@pytest.mark.parametrize(
    "outer", ["system.slice/web.service", "lxc.payload.c1", f"docker/{OTHER_ID}"]
)
def test_a_container_inside_another_owner_has_its_share_of_that_ones_size(host, outer):
    inner = [f"{outer}/docker-{number:064x}.scope" for number in range(2)]
    make_cgroup(host.cgroups, outer, cpu_weight="39\n", cpu_max="200000 100000\n")
    for path in inner:
        make_cgroup(host.cgroups, path, cpu_weight="10000\n", cpu_max="max 100000\n")

    made = [pod for pod in pods_of(host).values() if pod.cgroups[0].strip("/") in inner]

    assert [(pod.cpu_request_millis, pod.cpu_limit_millis) for pod in made] == [(487, 2000)] * 2


def test_of_the_containers_inside_another_owner_only_so_many_are_pods(host):
    outer = "system.slice/web.service"
    make_hierarchy(host.cgroups, [f"{outer}/docker-{n:064x}.scope" for n in range(200)])

    pods = pods_of(host)

    assert "web.service" in pods
    assert len(pods) == 1 + MOST_NESTED


def test_pods_whose_uids_begin_alike_have_names_of_their_own(host):
    uids = [f"0a1b2c3d-0000-4000-8000-00000000000{number}" for number in range(2)]
    make_hierarchy(host.cgroups, [f"kubepods/pod{uid}" for uid in uids])

    assert {name: pod.uid for name, pod in pods_of(host).items()} == {uid: uid for uid in uids}


@pytest.mark.parametrize("name", ["kubepods", "kubepods.slice", "my-kubepods.slice"])
def test_a_users_cgroup_named_like_a_kubelets_hides_no_unit(host, name):
    mine = f"user.slice/user-1000.slice/user@1000.service/{name}"
    make_hierarchy(host.cgroups, ["system.slice/sshd.service", mine])

    assert set(pods_of(host)) == {"sshd.service", "user.slice"}


@pytest.mark.parametrize(
    "crowd",
    [
        "system.slice/aaa.service",
        "system.slice/aaa.service/deep/down",
        f"kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice",
        "user.slice/user-1000.slice/user@1000.service",
    ],
)
def test_whoever_makes_thousands_of_cgroups_hides_those_of_nobody_else(host, monkeypatch, crowd):
    monkeypatch.setattr(cgroups, "MOST_OF_MAKER", 20)
    monkeypatch.setattr(cgroups.CgroupTree.__init__, "__defaults__", (100, None))
    others = [f"docker/{OTHER_ID}", "temper.slice/run-db@critical", "user.slice/user-2000.slice/a"]
    make_hierarchy(host.cgroups, [*others, *(f"{crowd}/x{number}" for number in range(200))])
    make_cgroup(host.cgroups, others[1], cgroup_events="populated 1\n")

    found = set(pods_of(host))
    paths = HostCgroups(host.proc, host.cgroups)
    paths.refresh()

    assert found >= {f"docker-{OTHER_ID[:12]}", "run/db"}
    assert {*others} <= {*paths.paths}
    assert len([path for path in paths.paths if path.startswith(f"{crowd}/")]) <= 20


def test_a_container_of_lxc_hides_no_pod_by_any_number_of_cgroups_at_any_depth(host, monkeypatch):
    monkeypatch.setattr(cgroups, "MOST_OF_MAKER", 20)
    monkeypatch.setattr(cgroups.CgroupTree.__init__, "__defaults__", (100, None))
    made = [f"lxc.payload.c1/a{a}/b{b}" for a in range(15) for b in range(15)]
    made += [f"lxc.payload.c1/kubepods/pod{number:032x}" for number in range(100)]
    make_hierarchy(host.cgroups, [*made, f"system.slice/docker-{ID}.scope"])

    assert f"docker-{ID[:12]}" in pods_of(host)


def test_units_can_be_left_out(host):
    make_hierarchy(host.cgroups, ["system.slice/sshd.service", f"docker/{ID}"])

    assert set(pods_of(host, units=False)) == {"docker-0123456789ab"}


def test_what_temper_run_started_has_its_tier_and_profile(host):
    path = "temper.slice/run-db@critical@mysql-innodb"
    make_cgroup(host.cgroups, path, cpu_weight="100\n", cpu_max="400000 100000\n")

    pod = pods_of(host)["run/db"]

    assert (pod.uid, pod.origin) == ("run:db@critical@mysql-innodb", Origin.WORKLOAD)
    assert (pod.tier, pod.tier_rule) == (Tier.CRITICAL, "temper run --tier critical")
    assert pod.wanted_profile == ("temper.codes/workload-profile", "mysql-innodb")
    assert pod.cpu_limit_millis == 4000
    assert pod.cgroups == (f"{path}/",)


def test_two_runs_of_one_name_are_told_apart_by_tier(host):
    make_hierarchy(host.cgroups, ["temper.slice/run-spin@high", "temper.slice/run-spin@low"])

    pods = pods_of(host)

    assert {key: pod.tier for key, pod in pods.items()} == {
        "run/spin@high": Tier.HIGH,
        "run/spin@low": Tier.LOW,
    }


def test_a_run_whose_processes_have_all_ended_is_no_pod(host):
    cgroup = make_cgroup(
        host.cgroups, "temper.slice/run-db@critical", cgroup_events="populated 1\nfrozen 0\n"
    )
    source = local(host.context())
    before = source.pods()
    (cgroup / "cgroup.events").write_text("populated 0\nfrozen 0\n")

    after = source.pods()

    assert ([pod.key for pod in before], after) == (["run/db"], ())


def test_an_empty_unit_is_still_a_pod(host):
    make_cgroup(host.cgroups, "system.slice/sshd.service", cgroup_events="populated 0\n")

    assert set(pods_of(host)) == {"sshd.service"}


def test_a_rule_takes_a_unit_over(host):
    unit = make_cgroup(host.cgroups, "system.slice/mysql.service", cpu_max="300000 100000\n")
    make_process(host.proc, 9, "mysqld", unit)
    rule = WorkloadRule(
        "db", unit="mysql", tier=Tier.CRITICAL, profile="mysql-innodb", cpu_request="2"
    )

    pods = pods_of(host, rule)

    assert set(pods) == {"db"}
    assert (pods["db"].uid, pods["db"].origin) == ("workload:db", Origin.WORKLOAD)
    assert (pods["db"].cpu_request_millis, pods["db"].cpu_limit_millis) == (2000, 3000)
    assert pods["db"].cgroups == ("system.slice/mysql.service/",)
    assert pods["db"].tier is Tier.CRITICAL
    assert pods["db"].tier_rule == "workload rule 'db' (unit = 'mysql')"


def test_a_process_rule_names_the_processes_while_there_are_any(host):
    source = local(host.context(WorkloadRule("batch", process="ffmpeg*", cpu_limit="500m")))
    nothing = source.pods()
    make_process(host.proc, 50, "ffmpeg-8")
    make_process(host.proc, 51, "bash")

    (pod,) = source.pods()

    assert nothing == ()
    assert (pod.cgroups, pod.containers[0].processes) == ((), ("ffmpeg-8",))
    assert (pod.qos_class, pod.cpu_limit_millis) == (QosClass.BURSTABLE, 500)
    assert (pod.tier, pod.tier_rule) == (None, "")


def test_a_process_that_changes_its_name_soon_after_its_start_is_noticed(host):
    source = local(host.context(WorkloadRule("db", process="mysqld")))
    make_process(host.proc, 50, "bash")
    before = source.pods()
    make_process(host.proc, 50, "mysqld")

    after = source.pods()

    assert (before, [pod.key for pod in after]) == ((), ["db"])


def test_pods_come_and_go_and_nothing_new_is_the_same_tuple(host):
    source = local(host.context())
    make_cgroup(host.cgroups, "system.slice/a.service")
    first = source.pods()
    again = source.pods()
    make_cgroup(host.cgroups, "system.slice/b.service")
    second = source.pods()
    for file in (host.cgroups / "system.slice/a.service").iterdir():
        file.unlink()
    (host.cgroups / "system.slice/a.service").rmdir()

    third = source.pods()

    assert again is first
    assert [[pod.name for pod in pods] for pods in (first, second, third)] == [
        ["a.service"],
        ["a.service", "b.service"],
        ["b.service"],
    ]


def test_a_changed_quota_is_noticed_within_sixteen_polls(host):
    directory = make_cgroup(host.cgroups, f"docker/{ID}", cpu_max="100000 100000\n")
    source = local(host.context())
    for _ in range(5):
        source.pods()
    (directory / "cpu.max").write_text("200000 100000\n")

    limits = {source.pods()[0].cpu_limit_millis for _ in range(16)}

    assert 2000 in limits


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def opened(monkeypatch):
    """The files that were read as text, as they are read."""
    files = []
    read_text = Path.read_text
    monkeypatch.setattr(
        Path, "read_text", lambda path, **options: files.append(path) or read_text(path, **options)
    )
    return files


def settled(source, opened):
    for _ in range(YOUNG_POLLS + 1):
        source.pods()
    opened.clear()
    return source


def test_polls_read_no_file_while_nothing_is_heard(host, opened):
    for number in range(160):
        make_cgroup(host.cgroups, f"system.slice/s{number}.service", cpu_max="max 100000\n")
    source = settled(local(host.context()), opened)

    for _ in range(16):
        source.pods()

    assert opened == []
    assert source.fileno() >= 0


def test_now_and_then_a_poll_looks_although_nothing_was_heard(host, opened, clock):
    for number in range(160):
        path = f"system.slice/s{number}.service"
        unit = make_cgroup(host.cgroups, path, cpu_max="max 100000\n")
        make_process(host.proc, 1000 + number, "sshd", unit)
    source = settled(LocalPods(host.context(), clock=clock), opened)

    for _ in range(16):
        clock.now += SURE_S
        source.pods()

    # Three files of each unit once in sixteen polls, and its list of processes every 300 s.
    assert 0 < len(opened) <= 160 * 6


def test_a_written_limit_counts_at_the_next_poll(host, opened):
    unit = make_cgroup(host.cgroups, "system.slice/a.service", cpu_max="max 100000\n")
    source = settled(local(host.context()), opened)
    (before,) = source.pods()

    (unit / "cpu.max").write_text("50000 100000\n")

    (after,) = source.pods()
    assert (before.cpu_limit_millis, after.cpu_limit_millis) == (None, 500)


def test_the_descriptor_is_readable_from_a_new_cgroup_until_the_poll_that_finds_it(host, opened):
    make_cgroup(host.cgroups, "system.slice/a.service")
    source = settled(local(host.context()), opened)
    before = has_news(source)

    make_cgroup(host.cgroups, "system.slice/b.service")

    assert (before, has_news(source)) == (False, True)
    assert {pod.key for pod in source.pods()} == {"a.service", "b.service"}
    assert not has_news(source)


def has_news(source):
    return bool(select.select([source.fileno()], [], [], 0)[0])


def test_where_rules_name_processes_every_poll_looks(host, opened):
    source = settled(local(host.context(WorkloadRule("db", process="mysqld"))), opened)
    before = source.pods()

    make_process(host.proc, 30, "mysqld")

    assert source.fileno() == -1
    assert (before, [pod.key for pod in source.pods()]) == ((), ["db"])


def test_a_hybrid_host_knows_pods_that_only_its_v1_hierarchies_have(host, tmp_path):
    root = tmp_path / "hybrid"
    make_hierarchy(root / "unified", ["system.slice/sshd.service"])
    make_hierarchy(root / "systemd", ["system.slice/sshd.service"], version=1)
    make_hierarchy(root / "cpu", version=1)
    pod_path = f"kubepods/burstable/pod{UID}"
    make_cgroup(
        root / "cpu",
        pod_path,
        cpu_shares="256\n",
        cpu_cfs_quota_us="50000\n",
        cpu_cfs_period_us="100000\n",
    )
    container = make_cgroup(root / "cpu", f"{pod_path}/{ID}")
    make_process(host.proc, 5, "java", container)
    context = PodSourceContext(
        PodSettings(), (), MachineShape.uniform(2), str(host.proc), str(root)
    )

    (pod,) = local(context).pods()

    assert (pod.uid, pod.cgroups) == (UID, ())
    assert (pod.cpu_request_millis, pod.cpu_limit_millis) == (250, 500)
    assert pod.containers == (Container("", runtime_id=ID, processes=("java",)),)


def test_a_host_without_cgroups_says_so(tmp_path):
    context = PodSourceContext(
        PodSettings(), (), MachineShape.uniform(1), str(tmp_path), str(tmp_path)
    )

    with pytest.raises(MachineError, match="no cgroup hierarchy is mounted"):
        local(context)


def test_a_closed_source_starts_afresh(host):
    make_cgroup(host.cgroups, "system.slice/a.service")
    source = local(host.context())
    before = source.pods()

    source.close()

    assert source.pods() == before


real = detect_cgroups().unified
needs_real_tree = pytest.mark.skipif(
    real is None or not os.access(real, os.W_OK), reason="needs a writable cgroup v2 hierarchy"
)


@pytest.fixture
def real_workload(sleeper):
    """A process in a cgroup of this machine's own tree, as ``temper run`` makes it."""
    own = real / "temper.slice" / f"run-test{os.getpid()}@high@redis"
    own.mkdir(parents=True)
    (own / "cgroup.procs").write_text(str(sleeper.pid))
    yield own
    sleeper.kill()
    sleeper.wait()
    own.rmdir()
    with contextlib.suppress(OSError):  # another workload may live beside ours
        own.parent.rmdir()


@needs_real_tree
def test_a_workload_in_this_machines_own_tree_is_found_with_its_process(real_workload):
    context = PodSourceContext(PodSettings(), (), MachineShape.uniform(2))

    pods = {pod.key: pod for pod in local(context).pods()}

    pod = pods[f"run/test{os.getpid()}"]
    assert (pod.tier, pod.cgroups) == (Tier.HIGH, (f"temper.slice/{real_workload.name}/",))
    assert pod.containers[0].processes == ("sleep",)
    assert (pod.cpu_request_millis, pod.cpu_limit_millis) == (0, None)


@needs_real_tree
def test_the_end_of_a_real_workload_is_noticed_though_its_cgroup_stays(real_workload, sleeper):
    source = local(PodSourceContext(PodSettings(), (), MachineShape.uniform(2)))
    before = {pod.key for pod in source.pods()}
    sleeper.kill()
    sleeper.wait()

    after = {pod.key for pod in source.pods()}

    assert real_workload.is_dir()
    assert before - after == {f"run/test{os.getpid()}"}


@needs_real_tree
def test_the_sizes_noted_on_a_real_cgroup_are_read_back_exactly(real_workload):
    os.setxattr(real_workload, "user.temper.cpu_request_millis", b"123")
    os.setxattr(real_workload, "user.temper.cpu_limit_millis", b"4567")
    source = local(PodSourceContext(PodSettings(), (), MachineShape.uniform(2)))

    pod = {pod.key: pod for pod in source.pods()}[f"run/test{os.getpid()}"]

    assert (pod.cpu_request_millis, pod.cpu_limit_millis) == (123, 4567)
    assert pod.qos_class is QosClass.BURSTABLE
