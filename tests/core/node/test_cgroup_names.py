from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.node.cgroup_names import (
    MOST_REMEMBERED,
    CgroupIdentity,
    CgroupKind,
    identify,
    parse_run_name,
)
from temper_core.records.pods import QosClass
from temper_core.records.tiers import Tier

ID = "0123456789abcdef" * 4
OTHER_ID = "f" * 64
UID = "8f1c2d3e-4a5b-6c7d-8e9f-0a1b2c3d4e5f"
UID_ = UID.replace("-", "_")
STATIC = "5b1f2a7c9d3e4f60718293a4b5c6d7e8"

BURSTABLE = f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice"
BEST_EFFORT = f"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UID_}.slice"
GUARANTEED = f"kubepods.slice/kubepods-pod{UID_}.slice"
KIND = (
    "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
    f"kubelet-kubepods-burstable-pod{UID_}.slice"
)


@pytest.mark.parametrize(
    ("pod", "below", "qos_class", "uid"),
    [
        (BURSTABLE, "", QosClass.BURSTABLE, UID),
        (BURSTABLE, f"/cri-containerd-{ID}.scope", QosClass.BURSTABLE, UID),
        (BEST_EFFORT, f"/crio-{ID}.scope", QosClass.BEST_EFFORT, UID),
        (BEST_EFFORT, f"/crio-{ID}.scope/container", QosClass.BEST_EFFORT, UID),
        (GUARANTEED, f"/docker-{ID}.scope", QosClass.GUARANTEED, UID),
        (f"kubepods.slice/kubepods-pod{STATIC}.slice", f"/{ID}", QosClass.GUARANTEED, STATIC),
        (f"kubepods/burstable/pod{UID}", f"/{ID}", QosClass.BURSTABLE, UID),
        (f"kubepods/besteffort/pod{UID}", f"/crio-{ID}", QosClass.BEST_EFFORT, UID),
        (f"kubepods/pod{STATIC}", f"/{ID}/init", QosClass.GUARANTEED, STATIC),
        (KIND, f"/cri-containerd-{ID}.scope", QosClass.BURSTABLE, UID),
        (f"system.slice/docker-{OTHER_ID}.scope/{KIND}", f"/{ID}", QosClass.BURSTABLE, UID),
        (
            f"docker/{OTHER_ID}/kubelet/kubepods/burstable/pod{UID}",
            f"/{ID}",
            QosClass.BURSTABLE,
            UID,
        ),
        (f"docker/{OTHER_ID}/kubepods/besteffort/pod{UID}", f"/{ID}", QosClass.BEST_EFFORT, UID),
        (f"k3s.service/kubepods/pod{UID}", f"/{ID}", QosClass.GUARANTEED, UID),
    ],
)
def test_a_kubernetes_pod_is_known_by_its_uid_and_class(pod, below, qos_class, uid):
    assert identify(f"/{pod}{below}/") == CgroupIdentity(
        CgroupKind.POD,
        owner=pod,
        uid=uid,
        runtime_id=ID if below else "",
        qos_class=qos_class,
    )


@pytest.mark.parametrize(
    "below", [f"/crio-conmon-{ID}.scope", f"/crio-{ID[:20]}.scope", "/something", f"/x-{ID}"]
)
def test_what_is_beside_the_containers_belongs_to_the_pod_alone(below):
    found = identify(BURSTABLE + below)

    assert (found.kind, found.owner, found.runtime_id) == (CgroupKind.POD, BURSTABLE, "")


def test_what_runs_inside_a_pods_container_stays_the_pods():
    found = identify(
        f"{BURSTABLE}/cri-containerd-{ID}.scope/docker/{OTHER_ID}/kubepods/pod{STATIC}"
    )

    assert (found.uid, found.runtime_id) == (UID, ID)


@pytest.mark.parametrize(
    ("path", "owner", "runtime"),
    [
        (f"system.slice/docker-{ID}.scope", f"system.slice/docker-{ID}.scope", "docker"),
        (f"docker/{ID}", f"docker/{ID}", "docker"),
        (f"docker/{ID}/system.slice/containerd.service", f"docker/{ID}", "docker"),
        (f"machine.slice/libpod-{ID}.scope", f"machine.slice/libpod-{ID}.scope", "libpod"),
        (
            f"machine.slice/libpod-{ID}.scope/container",
            f"machine.slice/libpod-{ID}.scope",
            "libpod",
        ),
        (f"libpod_parent/libpod-{ID}", f"libpod_parent/libpod-{ID}", "libpod"),
        (f"libpod_parent/{ID}", f"libpod_parent/{ID}", "libpod"),
        (
            f"machine.slice/machine-libpod_pod_{OTHER_ID}.slice/libpod-{ID}.scope",
            f"machine.slice/machine-libpod_pod_{OTHER_ID}.slice/libpod-{ID}.scope",
            "libpod",
        ),
        (
            f"system.slice/web.service/libpod-payload-{ID}",
            f"system.slice/web.service/libpod-payload-{ID}",
            "libpod",
        ),
        (f"system.slice/nerdctl-{ID}.scope", f"system.slice/nerdctl-{ID}.scope", "nerdctl"),
    ],
)
def test_a_container_is_known_by_its_runtime_and_id(path, owner, runtime):
    assert identify(path) == CgroupIdentity(
        CgroupKind.CONTAINER, owner=owner, name=runtime, runtime_id=ID
    )


@pytest.mark.parametrize(
    ("path", "owner", "name"),
    [
        ("system.slice/mysql.service", "system.slice/mysql.service", "mysql.service"),
        ("system.slice/docker.service/payload", "system.slice/docker.service", "docker.service"),
        (
            "system.slice/system-getty.slice/getty@tty1.service",
            "system.slice/system-getty.slice/getty@tty1.service",
            "getty@tty1.service",
        ),
        ("init.scope", "init.scope", "init.scope"),
        (
            "machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt",
            "machine.slice/machine-qemu\\x2d1\\x2dvm.scope",
            "machine-qemu\\x2d1\\x2dvm.scope",
        ),
    ],
)
def test_a_unit_is_known_by_its_name(path, owner, name):
    assert identify(path) == CgroupIdentity(CgroupKind.UNIT, owner=owner, name=name)


@pytest.mark.parametrize(
    "path",
    ["user.slice", "user.slice/user-0.slice/session-3.scope", "user.slice/user-1.slice/app.slice"],
)
def test_user_sessions_are_one(path):
    assert identify(path) == CgroupIdentity(CgroupKind.SESSION, "user.slice", name="user.slice")


@pytest.mark.parametrize(
    ("path", "parsed"),
    [
        ("run-web@high", ("web", Tier.HIGH, "")),
        ("run-my.db_1@critical@mysql-innodb", ("my.db_1", Tier.CRITICAL, "mysql-innodb")),
        ("run-web@urgent", None),
        ("run-web", None),
        ("web@high", None),
    ],
)
def test_what_temper_run_made_says_name_tier_and_profile(path, parsed):
    assert parse_run_name(path) == parsed
    expected = CgroupKind.RUN if parsed else CgroupKind.OTHER
    assert identify(f"temper.slice/{path}/worker").kind is expected


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "kubepods.slice",
        "kubepods/burstable",
        f"pod{UID}",
        f"work/pod{UID}",
        "docker",
        f"docker/{ID[:12]}",
        ID,
        "system.slice",
        "foo/bar.service",
        "temper.slice",
        "process_api/317e89053e8213450e8cd5eb74f3974e",
    ],
)
def test_everything_else_is_nobodys(path):
    assert identify(path) == CgroupIdentity(CgroupKind.OTHER)


parts = st.sampled_from(
    [
        ID,
        UID,
        f"pod{UID}",
        "kubepods",
        "burstable",
        "docker",
        "user.slice",
        "a.service",
        "a.slice",
        f"kubepods-pod{UID_}.slice",
        "temper.slice",
        "run-a@low",
        "",
        "\udcff",
        "pod",
        f"crio-{ID}",
    ]
)


@given(st.lists(parts, max_size=8))
def test_an_owner_is_always_above_what_it_owns(names):
    path = "/".join(names)

    found = identify(path)

    assert f"{'/'.join(filter(None, names))}/".startswith(f"{found.owner}/" if found.owner else "")
    assert (found.kind is CgroupKind.OTHER) == (not found.owner)


@pytest.mark.parametrize(
    "name", ["kubepods-pod12345678.slice", f"app.slice/docker-{ID}.scope", f"libpod-{ID}.scope"]
)
def test_no_pod_and_no_container_is_believed_in_a_users_own_cgroups(name):
    forged = f"user.slice/user-1000.slice/user@1000.service/{name}"

    assert identify(forged).kind is CgroupKind.SESSION


def test_long_paths_are_identified_and_not_remembered():
    long = f"/kubepods.slice/kubepods-pod{UID_}.slice/{'x' * 4_000}"

    kind, owner = identify(long).kind, ref(identify(long))

    assert kind is CgroupKind.POD
    assert owner() is None


def test_owners_are_remembered_up_to_a_bound():
    paths = [f"system.slice/{number}.service" for number in range(MOST_REMEMBERED + 1)]

    owners = [ref(identify(path)) for path in paths]

    assert owners[0]() is None
    assert owners[-1]() is identify(paths[-1])
