"""The chart's DaemonSet on a real node: in this order, from install to uninstall.

Times are the emulator's and are told, not judged.
"""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from attrs import asdict

from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_trainer.remote.pod_watch import ABORT
from tests.control_plane.cluster import wait_until
from tests.kubernetes.node.real_node import NAMESPACE
from tests.kubernetes.node.workloads import (
    CALM,
    PROFILE,
    PROFILE_FILE,
    comers,
    workloads,
)

WORKLOADS = [each.name for each in workloads("")]
TIERS = {"critical": 1, "high": 2, "normal": 1, "low": 1, "background": 2}
KINDS = (
    *("daemonsets", "jobs", "configmaps", "secrets", "services", "serviceaccounts"),
    *("priorityclasses", "clusterroles", "clusterrolebindings"),
)
FOLLOWED_S = 180
CHURNED = 8
TRAINED_S = 900
"""From the command to a trial in the emulator, at most."""
GONE_S = 600
"""The emulator's kubelet takes some half a minute to end one pod's containers."""
LOOKS = 20
ROOTS = {
    ("cgroupfs", "Guaranteed"): "kubepods/pod{uid}/{container}",
    ("cgroupfs", "Burstable"): "kubepods/burstable/pod{uid}/{container}",
    ("cgroupfs", "BestEffort"): "kubepods/besteffort/pod{uid}/{container}",
    (
        "systemd",
        "Guaranteed",
    ): "kubepods.slice/kubepods-pod{slice}.slice/cri-containerd-{container}.scope",
    (
        "systemd",
        "Burstable",
    ): "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice/"
    "cri-containerd-{container}.scope",
    (
        "systemd",
        "BestEffort",
    ): "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{slice}.slice/"
    "cri-containerd-{container}.scope",
}


def test_the_daemonset_enforces_with_the_engine_of_its_image(node, image):
    pod = node.agent_pod()

    assert pod["spec"]["containers"][0]["image"] == image[1]
    assert pod["spec"]["containers"][0]["securityContext"]["privileged"] is False
    assert node.exec("cat /sys/kernel/sched_ext/root/ops").startswith("layered")
    container = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
    assert container in node.exec(f"cat /proc/{node.engine()}/cgroup")
    assert node.observe()["steering"]["mode"] == "hints"
    node.tell("from install to enforcing", f"{_age_s(node, pod):.0f} s")


def _age_s(node, pod):
    """How long it took until the agent told that it enforces, by the cluster's clock."""
    told = node.kubectl("get", "events", "-o", "json", "--field-selector", "reason=Enforcing")
    first = min(each["firstTimestamp"] for each in json.loads(told)["items"])
    return _seconds(first) - _seconds(pod["metadata"]["creationTimestamp"])


def _seconds(stamp):
    return time.mktime(time.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ"))


def test_logs_and_commands_of_the_agent_are_within_reach(node):
    log = node.kubectl("logs", "-n", NAMESPACE, "daemonset/temper-agent")

    assert '"agent_started"' in log
    assert "This machine can enforce." in node.temper("doctor")


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_pod_is_followed_from_its_object_to_its_threads_layers(name, node, placed):
    workload = placed[name]
    pod = node.get("pod", name)

    cgroup = _cgroup(node.driver, pod)
    comms = dict(
        line.split(" ", 1)
        for line in node.exec(
            f"for tid in $(cat /sys/fs/cgroup/{cgroup}/cgroup.threads); do "
            "echo $tid $(cat /proc/$tid/comm); done"
        ).splitlines()
    )
    assert comms, f"nobody lives in {cgroup}"
    expected = {tid: workload.layer_of(comm) for tid, comm in comms.items()}
    seen = {}

    def agrees():
        threads = node.explain(f"default/{name}")["threads"]
        seen.clear()
        seen.update((str(each["tid"]), each["layer"]) for each in threads if each["layer_is_known"])
        return {tid: seen.get(tid) for tid in expected} == expected

    wait_until(agrees, f"{expected} of {comms}, seen {seen}", FOLLOWED_S)
    node.tell(f"layers of {name}", ", ".join(sorted(set(expected.values()))))


def _cgroup(driver, pod):
    uid = pod["metadata"]["uid"]
    container = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
    shape = ROOTS[driver, pod["status"]["qosClass"]]
    return shape.format(uid=uid, slice=uid.replace("-", "_"), container=container)


@pytest.mark.usefixtures("placed")
def test_the_agents_own_command_tells_the_same(node):
    expected = {"shop-write-0": "high", "shop-write-1": "high", "shop-sweep-0": "open"}

    def explained():
        told = json.loads(node.temper("explain", "default/shop", "--output", "json"))
        layers = {each["comm"]: each["layer"] for each in told["threads"]}
        return told if expected.items() <= layers.items() else None

    told = wait_until(explained, f"{expected}, all in one look", FOLLOWED_S)
    assert (told["tier"], told["profile"]) == ("high", "e2e-shop")
    assert node.observe()["steering"]["niced"] == len(("shop-write-0", "shop-write-1"))


def test_the_agent_sees_the_limit_of_its_container_from_its_cgroup_namespace(node):
    """The engine's second load and hostile files are bounded by it."""
    code = (
        "from temper_core.scheduler.host.roots import Roots;"
        "from temper_core.scheduler.preflight.node_checks import memory_limit;"
        "print(memory_limit(Roots()), open('/proc/self/cgroup').read().split())"
    )

    limit, shown = node.python(code).strip().split(" ", 1)

    limits = node.agent_pod()["spec"]["containers"][0]["resources"]["limits"]
    assert limits["memory"] == "1Gi"
    assert int(limit) == 1 << 30, shown


@pytest.mark.usefixtures("placed")
def test_a_node_without_bpf_would_know_the_pods_of_threads(node):
    """By /proc, whose paths are relative to the agent's cgroup namespace."""
    pod = node.get("pod", "shop")
    cgroup = _cgroup(node.driver, pod)
    tid = node.exec(f"head -n 1 /sys/fs/cgroup/{cgroup}/cgroup.threads").strip()
    code = (
        "from temper_core import cgroup_namespace, parse_cgroup;"
        f"print(parse_cgroup(open('/proc/{tid}/cgroup', 'rb').read(), cgroup_namespace()))"
    )

    assert node.python(code).strip() == f"{cgroup}/"


@pytest.mark.usefixtures("placed")
def test_kubectl_temper_fetches_a_trace_of_one_pod(node, tmp_path):
    out = tmp_path / "shop.pftrace"
    node.kubectl_temper("trace", "default/shop", "--seconds", "3", "--out", out)

    names = {text for text in ("shop-write-0", "shop-write-1") if text.encode() in out.read_bytes()}
    assert names == {"shop-write-0", "shop-write-1"}
    node.tell("a trace of 3 s of a pod, by kubectl", f"{out.stat().st_size >> 10} KiB")


@pytest.mark.usefixtures("placed")
def test_a_training_by_kubectl_temper_ends_by_an_annotation_and_leaves_nothing(node, tmp_path):
    profile = tmp_path / "shop.toml"
    profile.write_text(PROFILE)
    given = {"--profile": profile, "--artifacts": tmp_path / "record", "--metric": "x"}
    words = [word for pair in given.items() for word in pair]
    command = ("train", "default/shop", *words, "--benchmark", "sh -c 'sleep 5; echo 1'")
    aborting = ("annotate", "--overwrite", "pod", "shop")
    with ThreadPoolExecutor() as beside:
        training = beside.submit(
            node.kubectl_temper, *command, "--better", "lower", timeout=TRAINED_S
        )
        try:
            wait_until(lambda: _trials(node) or training.done(), "a trial", TRAINED_S)
            begun = _trials(node)
        finally:
            node.kubectl(*aborting, f"{ABORT}=true")
        began = time.monotonic()
        with pytest.raises(AssertionError, match=f"aborted by the annotation {ABORT}"):
            training.result()
    took_s = time.monotonic() - began

    assert [trial["pods"] for trial in begun] == [["default/shop"]]
    assert _trials(node) == []
    assert node.exec("pgrep -f 'temper train [r]elay' || true").strip() == ""
    node.kubectl(*aborting[:1], "pod", "shop", f"{ABORT}-")
    node.tell("a training ended after its annotation", f"{took_s:.0f} s")


def _trials(node):
    return json.loads(node.ask("/trials"))["trials"]


@pytest.mark.usefixtures("placed")
def test_the_critical_layer_owns_a_whole_core_that_no_other_layer_owns(node):
    def owned():
        observed = node.observe()
        owners = {each["name"]: set(each["cpus"]) for each in observed["layers"]}
        cores = [set(siblings) for siblings in observed["machine"]["siblings"]]
        mine = owners.pop("critical", None)  # while an engine starts there are no layers
        return mine if mine in cores and not mine & set().union(*owners.values()) else None

    cpus = wait_until(owned, "a core of its own", 120)
    node.tell("CPUs of the critical layer", str(sorted(cpus)))
    # Told and not judged: a thread that wakes up while the emulator still has its CPUs on the way
    # to sleep takes somebody else's (docs/tiers-and-plans.md, How many cores).
    cgroup = _cgroup(node.driver, node.get("pod", "critical"))
    ran = node.exec(
        f"tid=$(head -n 1 /sys/fs/cgroup/{cgroup}/cgroup.threads); for i in $(seq {LOOKS}); do "
        "awk '{print $39}' /proc/$tid/stat; sleep 0.7; done"
    )
    home = sum(int(cpu) in cpus for cpu in ran.split())
    node.tell("its pod's thread was seen there", f"{home} of {LOOKS} times")


@pytest.mark.usefixtures("placed")
def test_the_annotations_count_what_runs(node):
    # the agent itself is of the system's class and counts as critical
    expected = {tier: str(count + (tier == "critical")) for tier, count in TIERS.items()}

    wait_until(lambda: _counts(node) == expected, f"{expected}", 90)


def _counts(node):
    said = node.annotations()
    return {tier: said.get(f"tier-{tier}-pods") for tier in TIERS}


@pytest.mark.usefixtures("placed")
def test_pods_that_come_and_go_take_no_other_engine(node):
    before, generation = node.engine(), node.annotations()["config-generation"]
    counts, share = _counts(node), CHURNED // 4
    reloads = node.metric("temper_reloads_total")
    coming = comers(CHURNED)

    node.apply(*(each.document() for each in coming))
    names = [each.name for each in coming]
    node.kubectl("wait", "--for=condition=Ready", "pod", *names, "--timeout=400s", timeout=420)
    more = {tier: str(int(count) + share * (tier != "critical")) for tier, count in counts.items()}
    wait_until(lambda: _counts(node) == more, f"{more}", 90)
    node.kubectl("delete", "pod", *names, "--wait=true", timeout=420)

    # an object that is deleted without grace is gone before the emulator has ended its containers
    wait_until(lambda: _counts(node) == counts, f"{counts}", GONE_S)
    assert node.engine() == before
    assert node.annotations()["config-generation"] == generation
    assert node.metric("temper_reloads_total") == reloads


@pytest.mark.usefixtures("placed")
def test_kubectl_temper_resizes_a_running_container_and_takes_it_back(node, tmp_path):
    def weight():
        cgroup = _cgroup(node.driver, node.get("pod", "normal"))
        return int(node.exec(f"cat /sys/fs/cgroup/{cgroup}/cpu.weight"))

    report, before, engine = tmp_path / "report.json", weight(), node.engine()
    (container,) = node.get("pod", "normal")["status"]["containerStatuses"]
    now = asdict(Resources(cpu_request_millis=100, memory_request_bytes=32 << 20))
    wanted = {**now, "cpu_request_millis": 400}
    row = {
        "namespace": "default",
        "owner": "Pod/normal",
        "container": "app",
        "container_kind": "app",
        "keeps": False,
        "confidence": "high",
        "current": now,
        "recommended": wanted,
    }
    report.write_text(json.dumps({"containers": [row]}))

    node.kubectl_temper("resize", report, "--in-place", "--apply", "--yes")
    wait_until(lambda: weight() > 2 * before, "the kubelet wrote the new weight", FOLLOWED_S)
    resized = weight()
    node.kubectl_temper("resize", "--undo", "--in", "default", "--apply", "--yes")
    wait_until(lambda: weight() == before, "the kubelet wrote the old weight", FOLLOWED_S)

    (same,) = node.get("pod", "normal")["status"]["containerStatuses"]
    assert (same["containerID"], same["restartCount"]) == (container["containerID"], 0)
    assert node.engine() == engine
    node.tell("cpu.weight of a container resized in place", f"{before}, {resized}, {before}")


def test_the_kill_switch_holds_and_is_released(node):
    ahead = node.clock_ahead_s()
    waiting = node.when("disabled")
    time.sleep(2)
    asked = time.time()

    node.kubectl("annotate", "node", node.name, "temper.codes/safe-mode-requested=true")

    disabled = float(waiting.communicate(timeout=300)[0]) - ahead - asked
    assert node.engine() == ""
    wait_until(lambda: node.status() == "safe_mode:requested", "told", 60)
    node.kubectl("annotate", "node", node.name, "temper.codes/safe-mode-requested-")
    took = node.enforcing()
    node.tell("kill switch: from kubectl to the stock scheduler", f"{disabled:.1f} s")
    node.tell("kill switch: from its release to enforcing", f"{took:.0f} s")


@pytest.mark.usefixtures("placed")
def test_while_the_api_server_is_away_enforcement_goes_on(node):
    engine = node.engine()
    cgroup = _cgroup(node.driver, node.get("pod", "critical"))
    address = node.agent_pod()["status"]["podIP"]

    def ask(path):
        return node.exec(f"curl -sS --max-time 60 'http://{address}:9100{path}'")

    node.restart_api("--stop")
    try:
        wait_until(lambda: "pods" in " ".join(json.loads(ask("/observe"))["defects"]), "told", 120)
        born = node.exec(
            f"bash -c '{CALM.replace('/tmp/never', '/tmp/born')}' >/dev/null 2>&1 & "
            f"echo $! >/sys/fs/cgroup/{cgroup}/cgroup.procs; echo $!"
        ).split()[-1]

        def followed():
            threads = json.loads(ask("/explain?pod=default/critical"))["threads"]
            found = [each for each in threads if str(each["tid"]) == born]
            return found and found[0]["layer_is_known"] and found[0]["layer"] == "critical"

        wait_until(followed, "a thread that was born meanwhile is in its layer", 90)
        assert node.exec(f"cat /sys/kernel/sched_ext/state; kill {born}").split() == ["enabled"]
    finally:
        node.restart_api("--start")

    wait_until(lambda: not node.observe()["defects"], "the pods are heard of again", 180)
    assert node.engine() == engine


def test_an_agent_that_is_killed_leaves_the_stock_scheduler_and_comes_back(node):
    ahead = node.clock_ahead_s()
    before = node.engine()
    waiting = node.when("disabled")
    time.sleep(2)

    killed = float(node.exec("kill -9 $(pgrep -o -f 'temper agent'); date +%s.%N"))

    disabled = float(waiting.communicate(timeout=300)[0]) - killed
    took = node.enforcing()
    assert node.engine() != before
    assert node.agent_pod()["status"]["containerStatuses"][0]["restartCount"] >= 1
    node.tell("agent killed: until the stock scheduler runs", f"{disabled:.1f} s")
    node.tell("agent killed: from there to enforcing", f"{took:.0f} s")
    node.tell("the guest's clock is ahead by", f"{ahead:.1f} s")


@pytest.mark.usefixtures("placed")
def test_an_edited_profile_rolls_the_daemonset(node):
    before = node.agent_pod()["metadata"]["name"]
    edited = PROFILE.replace('"shop-write"', '"shop-write-1"').replace('"shop-sweep"', '"shop-"')
    began = time.monotonic()

    node.install({PROFILE_FILE: edited})
    wait_until(
        lambda: (node.agent_pod() or {"metadata": {"name": before}})["metadata"]["name"] != before,
        "rolled",
        120,
    )
    node.enforcing()

    def layers():
        threads = node.explain("default/shop")["threads"]
        return {each["comm"]: each["layer"] for each in threads if each["layer_is_known"]}

    wait_until(
        lambda: layers().get("shop-write-1") == "high" and layers().get("shop-write-0") == "open",
        "the edited profile is in force",
        FOLLOWED_S,
    )
    node.tell(
        "DaemonSet rolled: from helm upgrade to enforcing", f"{time.monotonic() - began:.0f} s"
    )


def test_uninstalling_leaves_nothing(node):
    began = time.monotonic()

    node.helm("uninstall", "temper", "--namespace", NAMESPACE, "--wait", timeout=420)

    wait_until(lambda: node.sched_ext() == "disabled", "the stock scheduler", 120)
    wait_until(
        lambda: not node.get("pods", "-n", NAMESPACE)["items"], "no pod of the release is left", 420
    )
    assert node.annotations() == {}
    named = node.kubectl("get", ",".join(KINDS), "-A", "-o", "name")
    assert [name for name in named.split() if "temper" in name] == []
    assert (
        node.exec("find /sys/fs/bpf /run/temper /var/lib/temper -mindepth 1 ! -type d").split()
        == []
    )
    assert node.exec("find /sys/fs/bpf -mindepth 1").split() == []
    assert node.engine() == ""
    node.tell("helm uninstall, until nothing is left", f"{time.monotonic() - began:.0f} s")
