"""``temper k8s doctor`` on nodes, agents and kubelets: each finding, and silence without."""

import json
import ssl
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.kubernetes.tools.conftest import told_by_an_agent
from tests.kubernetes.tools.made_cluster import details


@pytest.mark.usefixtures("installed")
def test_a_healthy_cluster_has_no_findings(k8s, doctor):
    assert doctor()[0] == set()

    done = k8s("doctor", "--no-kubelets")

    assert done.stdout == "2 nodes, 17 checks: nothing found\n"
    assert done.returncode == 0


@pytest.mark.usefixtures("installed")
def test_people_get_each_finding_with_its_remedy_and_the_worst_first(k8s, fleet):
    fleet.node("old", info={"kernelVersion": "5.10.0-28"})

    done = k8s("doctor", "--no-kubelets")

    lines = done.stdout.splitlines()
    assert lines[0].startswith("FAIL  kernel    kernel 5.10.0-28 has no sched_ext; it needs 6.12")
    assert lines[0].endswith("(1 node: old)")
    assert lines[1].strip().startswith("-> use another node image")
    assert lines[2].startswith("note  coverage  no agent runs there")
    assert lines[-1] == "3 nodes, 17 checks: 1 error, 1 note"


NODES = {
    "an old kernel": (
        {"info": {"kernelVersion": "6.11.0-1-generic"}},
        ("kernel", "error"),
    ),
    "AKS by its provider": ({"providerID": "azure:///subscriptions/1"}, ("platform", "error")),
    "AKS by its label": (
        {"labels": {"kubernetes.azure.com/cluster": "mine"}},
        ("platform", "error"),
    ),
    "OpenShift": (
        {"info": {"osImage": "Red Hat Enterprise Linux CoreOS 418.94.202"}},
        ("platform", "error"),
    ),
}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("what", NODES)
def test_nodes_that_cannot_enforce_are_found(fleet, doctor, what):
    given, (check, severity) = NODES[what]
    fleet.node("odd", told_by_an_agent("enforcing"), **given)
    fleet.agent("odd")

    assert doctor()[0] == {(check, severity, ("odd",))}


@pytest.mark.usefixtures("installed")
def test_autopilot_is_known_by_its_nodes(fleet, doctor):
    fleet.node("gk3-mine-pool-1", told_by_an_agent("enforcing"))
    fleet.agent("gk3-mine-pool-1")

    assert doctor()[0] == {("platform", "error", ("gk3-mine-pool-1",))}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("kernel", ["6.12.0", "6.18.15-gke", "7.0.1"])
def test_kernels_that_have_sched_ext_are_no_finding(fleet, doctor, kernel):
    info = {"kernelVersion": kernel, "osImage": "Ubuntu 25.10"}
    fleet.node("new", told_by_an_agent("enforcing"), info=info, providerID="gce://x")
    fleet.agent("new")

    assert doctor()[0] == set()


MODES = {
    "safe_mode:foreign_scheduler": ("foreign_scheduler", "error"),
    "safe_mode:invalid_plan": ("invalid_plan", "error"),
    "safe_mode:ejected": ("ejected", "error"),
    "safe_mode:crash_loop": ("crash_loop", "error"),
    "safe_mode:requested": ("safe_mode", "note"),
    "observe_only:no_sched_ext": ("sched_ext", "error"),
}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("status", [*MODES, "observe_only:not_asked", "reloading"])
def test_what_the_agent_says_of_its_mode_is_told(fleet, doctor, status):
    fleet.node("odd", told_by_an_agent(status, message="scx_lavd is attached"))
    fleet.agent("odd")

    found, told = doctor()

    assert found == ({(*MODES[status], ("odd",))} if status in MODES else set())
    if MODES.get(status, ("", ""))[0] not in ("", "safe_mode", "sched_ext"):
        assert "scx_lavd is attached" in told["findings"][0]["detail"]


@pytest.mark.usefixtures("installed")
def test_each_check_that_an_agents_preflight_failed_is_a_finding_with_its_remedy(fleet, doctor):
    message = "btf: no BTF here; cgroup_v2: only cgroup v1 is mounted; static_cpu_manager: it pins"
    fleet.node("odd", told_by_an_agent("safe_mode:preflight", message=message))
    fleet.agent("odd")

    found, told = doctor()

    assert found == {
        (check, "error", ("odd",)) for check in ("btf", "cgroup_v2", "static_cpu_manager")
    }
    assert "only cgroup v1 is mounted" in details(told, "cgroup_v2")
    assert all("run `temper doctor`" not in each["remedy"] for each in told["findings"])


@pytest.mark.usefixtures("installed")
def test_agents_that_fail_are_gone_silent_or_stale_are_found(fleet, doctor):
    fleet.node("failing", told_by_an_agent("enforcing"))
    fleet.agent("failing", waiting="CrashLoopBackOff")
    fleet.node("gone", told_by_an_agent("enforcing"))
    fleet.node("silent")
    fleet.agent("silent")
    fleet.node("stale", told_by_an_agent("enforcing", seconds=4000))
    fleet.agent("stale")
    fleet.node("ahead", told_by_an_agent("enforcing", seconds=-4000))
    fleet.agent("ahead")

    assert doctor()[0] == {
        ("agent", "error", ("failing",)),
        ("agent", "error", ("gone",)),
        ("agent", "warning", ("silent",)),
        ("agent", "warning", ("stale",)),
        ("agent", "warning", ("ahead",)),
    }


@pytest.mark.usefixtures("installed")
def test_a_node_that_runs_no_linux_needs_no_agent(fleet, doctor):
    fleet.node("glass", labels={"kubernetes.io/os": "windows"})

    assert doctor()[0] == set()


@pytest.mark.usefixtures("installed")
def test_versions_that_differ_are_found_but_the_canary_may(fleet, doctor):
    fleet.node("canary", told_by_an_agent("enforcing"))
    fleet.agent("canary", tag="2.0.0", is_canary=True)
    before = doctor()[0]

    fleet.node("three", told_by_an_agent("enforcing"))
    fleet.agent("three", tag="0.9.0")
    found, told = doctor()

    assert before == set()
    assert found == {("version_skew", "warning", ("three",))}
    assert details(told, "version_skew") == "agents of several versions: 1 of 0.9.0, 2 of 1.0.0"


def own_address():
    """Return an address of this machine that is not the loopback's, which is never proxied to."""
    found = subprocess.run(["hostname", "-I"], check=True, capture_output=True, text=True)
    addresses = [each for each in found.stdout.split() if "." in each]
    return addresses[0] if addresses else pytest.skip("this machine has no network address")


@contextmanager
def kubelet(cluster, configuration):
    """Answer ``/configz`` as a kubelet does; yields the port."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"kubeletconfig": configuration}).encode()
            self.send_response(200 if self.path == "/configz" else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer((own_address(), 0), Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cluster.directory / "server.crt", cluster.directory / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def reachable(fleet, name, port):
    fleet.status(
        "Node",
        name,
        {
            "addresses": [{"type": "InternalIP", "address": own_address()}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        },
    )


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ({"cpuManagerPolicy": "static"}, {("static_cpu_manager", "error")}),
        ({"cpuManagerPolicy": "none", "failCgroupV1": False}, {("cgroup_v2", "note")}),
        ({"cpuManagerPolicy": "none", "cgroupDriver": "systemd"}, set()),
    ],
)
def test_what_kubelets_are_told_to_do_is_looked_at(cluster, fleet, k8s, configuration, expected):
    with kubelet(cluster, configuration) as port:
        reachable(fleet, "one", port)
        told = json.loads(k8s("doctor", "-o", "json").stdout)

    found = {(each["check"], each["severity"], tuple(each["nodes"])) for each in told["findings"]}
    assert found == {(*each, ("one",)) for each in expected}, told["unknown"]
    assert not any(each["what"].endswith("of one") for each in told["unknown"])


@pytest.mark.usefixtures("installed")
def test_a_kubelet_that_does_not_answer_is_no_finding_and_told(k8s):
    told = json.loads(k8s("doctor", "-o", "json").stdout)

    assert told["findings"] == []
    assert "the kubelets' configuration of one" in told["unknown"][0]["what"]
