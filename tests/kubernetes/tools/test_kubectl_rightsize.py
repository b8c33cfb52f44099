"""``kubectl temper rightsize``: the demand of all agents, merged by workload."""

import csv
import io
import json
import signal
import socket
import subprocess
import time
from types import SimpleNamespace

import pytest
import yaml

from temper_kube.proxied import REVIEWS
from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.cluster.prices import DISAGREE
from temper_plugin_rightsizer.demand.growth import Floor
from temper_plugin_rightsizer.demand.window import ContainerKey
from temper_plugin_rightsizer.node import document
from temper_plugin_rightsizer.node.containers import NodeContainer
from temper_plugin_rightsizer.store.keeper import Known
from tests.control_plane.cluster import pod
from tests.kube_client.made_server import agent, in_pages, node
from tests.kubernetes.monitoring.live import free_port
from tests.kubernetes.tools.conftest import TEMPER, here
from tests.patience import PATIENCE_S
from tests.rightsizer.shapes import over_hours, window

MIB = 1024 * 1024
NOW = 1_764_140_400
LABELS = {"app.kubernetes.io/name": "temper", "app.kubernetes.io/component": "agent"}
LAZY = [(f"lazy-{number}", 0.29) for number in range(4)]
HOT = [("hot", 0.99), ("helper", 0.17)]
SIZED = Resources(500, None, 256 * MIB, 512 * MIB)


class Learned:
    """What a collector of a node has learned."""

    stopped = ""
    keeper = SimpleNamespace(failure="")

    def __init__(self):
        self.known, self.learned = {}, {}

    def add(self, name, owner, *threads, container="app", namespace="shop", leak_mib=0, hours=6):
        key = ContainerKey(f"uid-{name}", namespace, name, container)
        demand = over_hours(lambda _: window(*threads), hours)
        demand.counts.peak_bytes = 200 * MIB
        if leak_mib:
            times = range(NOW - 6 * 3600, NOW, 900)
            demand.floors = {
                at: Floor(100 * MIB + (at - times[0]) * leak_mib * MIB // 3600) for at in times
            }
        self.learned[key] = demand
        self.known[key] = NodeContainer(key, owner, SIZED)

    def look_back(self, *_):
        return Known(self.learned)

    def container(self, key):
        return self.known[key]

    def answer(self):
        return json.loads(json.dumps(document.report(self, 6 * 3600, NOW, has_demand=True)))


def owned_by(kind, name, owner):
    reference = {"controller": True, "kind": kind, "name": owner}
    return {"metadata": {"namespace": "shop", "name": name, "ownerReferences": [reference]}}


PODS = [
    ("web-7c9-a", "n1", "ReplicaSet", "web-7c9"),
    ("web-7c9-b", "n2", "ReplicaSet", "web-7c9"),
    ("tidy-1-x", "n1", "Job", "tidy-1"),
    ("etcd-n1", "n1", "Node", "n1", "kube-system"),
    ("db-0", "n2", "StatefulSet", "db"),
]


def a_pod(name, on, kind, owner, namespace="shop"):
    made = owned_by(kind, name, owner)
    return {"metadata": {**made["metadata"], "namespace": namespace}, "spec": {"nodeName": on}}


def path_of(name):
    return f"/api/v1/namespaces/temper/pods/temper-agent-{name}:9100/proxy/rightsize"


@pytest.fixture
def fleet(made):
    """Serve three nodes: two agents that learned, and one node without an agent."""
    first, second = Learned(), Learned()
    first.add("web-7c9-a", "ReplicaSet/web-7c9", *LAZY)
    second.add("web-7c9-b", "ReplicaSet/web-7c9", *LAZY, hours=3)
    second.add("web-7c9-b", "ReplicaSet/web-7c9", *HOT, container="proxy")
    first.add("tidy-1-x", "Job/tidy-1", ("main", 0.1))
    first.add("etcd-n1", "Node/n1", ("main", 0.2), namespace="kube-system")
    second.add("db-0", "StatefulSet/db", ("main", 0.2), leak_mib=12)
    made.answers["/api/v1/nodes"] = in_pages([node(name) for name in ("n1", "n2", "n3")])
    made.answers["/api/v1/namespaces/temper/pods"] = in_pages([agent("n1"), agent("n2")])
    made.answers["/apis/apps/v1/replicasets"] = in_pages([owned_by("Deployment", "web-7c9", "web")])
    made.answers["/apis/batch/v1/jobs"] = in_pages([owned_by("CronJob", "tidy-1", "tidy")])
    made.answers["/version"] = {"major": "1", "minor": "33+"}
    made.answers["/api/v1/pods"] = in_pages([a_pod(*each) for each in PODS])
    made.answers[path_of("n1")] = first.answer()
    made.answers[path_of("n2")] = second.answer()
    return made


def reported(ask, *options):
    done = ask("rightsize", "--output", "json", *options)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    return report, {(row["owner"], row["container"]): row for row in report["containers"]}


@pytest.mark.usefixtures("fleet")
def test_replicas_on_several_nodes_are_one_row(ask):
    report, rows = reported(ask)

    web = rows["Deployment/web", "app"]
    assert (web["replicas"], web["verdict"], web["learned_s"]) == (2, "shared", 6 * 3600)
    assert web["recommended"]["cpu_request_millis"] in range(1400, 1560)
    assert web["current"]["cpu_request_millis"] == 500
    proxy = rows["Deployment/web", "proxy"]
    assert (proxy["replicas"], proxy["verdict"], proxy["hot_threads"]) == (1, "exclusive", ["hot"])
    assert {owner for owner, _ in rows} == {
        "Deployment/web",
        "CronJob/tidy",
        "Pod/etcd-n1",
        "StatefulSet/db",
    }
    assert report["source"] == "agents"


def test_an_answer_beyond_the_bound_of_agents_is_not_read(fleet, ask):
    fleet.answers[path_of("n2")] = {**fleet.answers[path_of("n2")], "padding": " " * (8 << 20)}

    report, rows = reported(ask)

    (why,) = [each["why"] for each in report["away"] if each["node"] == "n2"]
    assert f"larger than {8 << 20} bytes" in why
    assert ("StatefulSet/db", "app") not in rows
    assert ("Pod/etcd-n1", "app") in rows


def machine(name, kind, cpu="4", memory="16Gi"):
    made = node(name)
    labels = {"node.kubernetes.io/instance-type": kind}
    size = {"cpu": cpu, "memory": memory}
    return {
        "metadata": {**made["metadata"], "labels": labels},
        "status": {**made["status"], "capacity": size, "allocatable": size},
    }


PRICES = {"core_hour": 0.05, "gib_hour": 0.005, "machines": {"rack-7": 1.0}}


def set_prices(fleet, **prices):
    for name, settings in prices.items():
        path = path_of(name)
        fleet.answers[path] = {**fleet.answers[path], "price_settings": settings}


def test_savings_are_priced_by_the_machines_and_the_agents_settings(ask, fleet):
    machines = [machine("n1", "m5.xlarge"), machine("n2", "rack-7"), machine("n3", "\x1b[31mred")]
    fleet.answers["/api/v1/nodes"] = in_pages(machines)
    set_prices(fleet, n1=PRICES, n2=PRICES)

    report, _ = reported(ask)
    table = ask("rightsize").stdout

    rows = {row["type"]: row for row in report["machines"]}
    assert (rows["m5.xlarge"]["hour"], rows["rack-7"]["hour"]) == (0.192, 1.0)
    assert rows["rack-7"]["source"] == "the settings"
    assert rows["\x1b[31mred"]["source"].startswith("no price of the machine type is known")
    assert rows["m5.xlarge"]["idle_cores"] == 4.0
    mean = report["prices"]
    hourly = 12 * mean["core_hour"] + 48 * mean["gib_hour"]
    assert hourly == pytest.approx(0.192 + 1.0 + 4 * 0.05 + 16 * 0.005, rel=1e-4)
    savings = report["identified_savings"]
    assert savings["headroom_per_month"] == pytest.approx(hourly * 730, rel=1e-3)
    assert "1 x rack-7 (4 cores, 16.0 GiB): 1 an hour" in table
    assert "\x1b" not in table


@pytest.mark.parametrize("forged", [{"core_hour": 1e6}, {"core_hour": "free"}, {"gib_hour": 1e999}])
def test_one_agent_sets_no_prices(ask, fleet, forged):
    fleet.answers["/api/v1/nodes"] = in_pages([machine("n1", "rack-7")])
    set_prices(fleet, n1=forged, n2=PRICES)

    report, _ = reported(ask)

    assert DISAGREE in report["notes"]
    assert (report["prices"]["core_hour"], report["prices"]["gib_hour"]) == (0.031611, 0.004237)


@pytest.mark.parametrize("option", ["--core-price", "--gib-price"])
def test_whether_agents_agree_is_not_told_beside_prices_of_the_command_line(ask, fleet, option):
    set_prices(fleet, n1={"core_hour": 1e6}, n2=PRICES)

    report, _ = reported(ask, option, "0.02")

    assert DISAGREE not in report["notes"]
    assert report["prices"]["source"] == "--core-price and --gib-price"


def test_prices_of_most_agents_are_used(ask, fleet):
    agents = [agent(name) for name in ("n1", "n2", "n3")]
    fleet.answers["/api/v1/namespaces/temper/pods"] = in_pages(agents)
    fleet.answers[path_of("n3")] = Learned().answer()
    set_prices(fleet, n1={"core_hour": 1e6}, n2=PRICES, n3=PRICES)

    report, _ = reported(ask)

    assert report["prices"]["core_hour"] == 0.05
    assert DISAGREE not in report["notes"]


def test_prices_of_the_commands_settings_replace_those_of_the_agents(ask, fleet, tmp_path):
    set_prices(fleet, n1=PRICES, n2=PRICES)
    settings = tmp_path / "settings.toml"
    settings.write_text("[plugins.rightsizer.prices]\ncore_hour = 0.07\n")

    report, _ = reported(ask, "--settings", settings)

    assert report["prices"]["core_hour"] == 0.07


def test_without_the_right_to_list_nodes_the_settings_price_all(ask, fleet):
    message = 'nodes is forbidden: User "me" cannot list resource "nodes" in API group ""'
    fleet.answers["/api/v1/nodes"] = 403, {"kind": "Status", "message": message}

    report, _ = reported(ask)

    assert report["machines"] == []
    assert report["prices"]["source"].startswith("no price of the machine type is known")
    assert report["identified_savings"]["headroom_per_month"] is None
    assert any("prices of machines and idle headroom are not known" in n for n in report["notes"])


@pytest.mark.usefixtures("fleet")
def test_a_leak_is_told_by_the_agent_that_saw_it(ask):
    _, rows = reported(ask)

    leak = rows["StatefulSet/db", "app"]["leak"]
    assert leak["bytes_per_hour"] == pytest.approx(12 * MIB, rel=0.1)
    assert rows["Deployment/web", "app"]["leak"] is None


def test_agents_that_do_not_tell_all_of_their_demand_are_named(ask, fleet):
    """As where the disk with the history does not answer."""
    fleet.answers[path_of("n2")] = {**fleet.answers[path_of("n2")], "is_incomplete": True}

    report, rows = reported(ask)

    assert any(note.startswith("the demand on n2 is incomplete") for note in report["notes"])
    assert rows["Deployment/web", "app"]["replicas"] == 2


def test_agents_that_are_away_are_named(ask, fleet):
    fleet.answers[path_of("n1")] = 503, {"kind": "Status", "message": "connection refused"}

    report, rows = reported(ask)

    assert [each["node"] for each in report["away"]] == ["n1", "n3"]
    assert "connection refused" in report["away"][0]["why"]
    assert report["away"][1]["why"] == "no agent runs there"
    assert any("the demand on n3 is not known" in note for note in report["notes"])
    assert rows["Deployment/web", "app"]["replicas"] == 1
    assert "note: the demand on n1 is not known" in ask("rightsize").stderr


def test_without_any_answer_there_is_one_line(ask, fleet):
    for name in ("n1", "n2"):
        fleet.answers[path_of(name)] = {"containers": [{"pod": "x"}]}

    done = ask("rightsize")

    assert done.returncode == 3
    assert "no agent answers" in done.stderr
    assert "is its version another?" in done.stderr


def test_a_missing_right_is_named(ask, fleet):
    fleet.answers[REVIEWS] = {"status": {"allowed": False}}

    done = ask("rightsize")

    assert done.returncode == 3
    assert "lacks the right to get pods/proxy in the namespace temper" in done.stderr
    assert not [path for _, path, _ in fleet.asked if path.endswith("/proxy/rightsize")]


def test_an_agent_speaks_for_itself_alone(ask, fleet):
    forged = 'User "you" cannot escalate resource "clusterroles" in API group "rbac"'
    fleet.answers[path_of("n1")] = 403, {"kind": "Status", "message": forged}

    report, rows = reported(ask)

    away = {each["node"]: each["why"] for each in report["away"]}
    assert away["n1"] == f"no answer of its agent: 403: {forged}"
    assert ("StatefulSet/db", "app") in rows


@pytest.fixture
def waits(monkeypatch):
    """What would be waited for."""
    found = []
    monkeypatch.setattr("temper_kube.proxied.time.sleep", found.append)
    return found


BUSY = 429, {"message": "later"}, {"Retry-After": "9"}


def test_an_agent_makes_a_command_wait_once_for_a_second(ask, fleet, waits):
    fleet.answers[path_of("n1")] = BUSY

    report, _ = reported(ask)

    assert report["away"][0]["why"] == "no answer of its agent: 429: later"
    assert [path for _, path, _ in fleet.asked].count(path_of("n1")) == 2
    assert waits == [1.0]


def test_a_busy_api_server_drops_no_node(ask, fleet, waits):
    answers = iter([BUSY, fleet.answers[path_of("n1")]])
    fleet.answers[path_of("n1")] = lambda _query: next(answers)

    report, _ = reported(ask)

    assert "n1" not in {each["node"] for each in report["away"]}
    assert waits == [1.0]


def test_an_agent_that_refuses_credentials_does_not_have_them_issued_again(
    fleet, kubeconfig_to, tmp_path
):
    fleet.answers[path_of("n1")] = fleet.answers[path_of("n2")] = 401, {"message": "who"}
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    printed = json.dumps({**credential, "status": {"token": "issued"}})
    script = f"echo run >>{tmp_path}/runs; echo '{printed}'"
    program = {"apiVersion": credential["apiVersion"], "command": "sh", "args": ["-c", script]}
    kubeconfig = kubeconfig_to(fleet.url, {"exec": program})

    done = here("k8s", "rightsize", kubeconfig=kubeconfig)

    assert "no agent answers" in done.stderr
    assert {each["Authorization"] for each in fleet.headers} == {"Bearer issued"}
    assert (tmp_path / "runs").read_text() == "run\n"


@pytest.mark.parametrize("window_s", ["abc", [1], 1e999, -1, 1e300, None, {}])
def test_an_agent_whose_window_cannot_be_read_is_away(ask, fleet, window_s):
    fleet.answers[path_of("n2")] = {"containers": [], "window_s": window_s}

    report, rows = reported(ask)

    away = {each["node"]: each["why"] for each in report["away"]}
    assert "its window_s is not up to 14 days" in away["n2"]
    assert ("Pod/etcd-n1", "app") in rows


@pytest.mark.parametrize("answer", [[], [{"containers": []}], 7])
def test_an_agent_whose_answer_is_no_object_is_away(ask, fleet, answer):
    fleet.answers[path_of("n2")] = 200, answer

    report, _ = reported(ask)

    assert "its agent's answer is not an object" in [each["why"] for each in report["away"]]


@pytest.mark.parametrize(("key", "value"), [("bytes_per_hour", 1e-320), ("last_bytes", 1e308)])
def test_a_growth_beyond_all_measure_is_none(ask, fleet, key, value):
    for row in fleet.answers[path_of("n2")]["containers"]:
        if row["growth"]:
            row["growth"][key] = value
            row["current"]["memory_limit_bytes"] = 1e308

    _, rows = reported(ask)

    assert rows["StatefulSet/db", "app"]["leak"] is None
    assert rows["StatefulSet/db", "app"]["current"]["memory_limit_bytes"] is None


def test_owners_that_may_not_be_listed_stay_what_the_node_knows(ask, fleet):
    fleet.answers["/apis/apps/v1/replicasets"] = 403, {"kind": "Status", "message": "no"}

    report, rows = reported(ask)

    assert ("ReplicaSet/web-7c9", "app") in rows
    assert any("the owners of replicasets are not known" in note for note in report["notes"])


def test_damaged_demand_is_left_out_and_told(ask, fleet):
    broken = fleet.answers[path_of("n1")]
    for row in broken["containers"]:
        row["demand"] = "!" if row["pod"] == "etcd-n1" else row["demand"]

    report, rows = reported(ask)

    assert ("Pod/etcd-n1", "app") not in rows
    assert "1 containers have damaged demand, and are left out" in report["notes"]


def test_an_agent_tells_of_the_pods_on_its_own_node_alone(ask, fleet):
    honest = reported(ask)[1]
    liar = Learned()
    liar.add("db-0", "StatefulSet/db", ("main", 0.2))
    for name, owner in (("web-7c9-a", "ReplicaSet/web-7c9"), ("web-7c9-x", "ReplicaSet/web-7c9")):
        liar.add(name, owner, ("idle", 0.0), hours=300)
    fleet.answers[path_of("n2")] = liar.answer()

    report, rows = reported(ask)

    web = rows["Deployment/web", "app"]
    assert (web["replicas"], web["learned_s"]) == (1, 6 * 3600)
    assert web["recommended"] == honest["Deployment/web", "app"]["recommended"]
    assert (
        "the agent of n2 tells of 2 containers of pods that are not there, and are left out"
        in report["notes"]
    )


def test_the_workload_of_a_pod_is_the_api_servers(ask, fleet):
    liar = Learned()
    liar.add("db-0", "ReplicaSet/web-7c9", ("idle", 0.0))
    fleet.answers[path_of("n2")] = liar.answer()

    _, rows = reported(ask)

    assert rows["Deployment/web", "app"]["replicas"] == 1
    assert ("StatefulSet/db", "app") in rows


def test_demand_of_more_time_than_the_window_is_damaged(ask, fleet):
    liar = Learned()
    liar.add("web-7c9-b", "ReplicaSet/web-7c9", ("idle", 0.0), hours=31)
    fleet.answers[path_of("n2")] = liar.answer()

    report, rows = reported(ask)

    assert rows["Deployment/web", "app"]["replicas"] == 1
    assert "1 containers have damaged demand, and are left out" in report["notes"]


@pytest.mark.usefixtures("fleet")
def test_one_workload_or_namespace_can_be_chosen(ask):
    assert {owner for owner, _ in reported(ask, "shop/web")[1]} == {"Deployment/web"}
    assert {owner for owner, _ in reported(ask, "--in", "kube-system")[1]} == {"Pod/etcd-n1"}
    assert ask("rightsize", "nothing").returncode == 2


@pytest.mark.usefixtures("fleet")
def test_the_outputs_are_those_of_temper_rightsize(ask):
    table = ask("rightsize", "--fail-on-change")
    assert table.returncode == 1
    assert "shop/web/app x2" in table.stdout
    rows = list(csv.DictReader(io.StringIO(ask("rightsize", "--output", "csv").stdout)))
    assert {row["owner"] for row in rows} >= {"Deployment/web", "StatefulSet/db"}
    assert "| shop/web/proxy x1 |" in ask("rightsize", "--output", "markdown").stdout
    patches = list(yaml.safe_load_all(ask("rightsize", "--output", "patch").stdout))
    assert {patch["kind"] for patch in patches if patch} >= {"Deployment", "CronJob"}


def test_choices_change_the_advice_and_hours_are_asked_of_the_agents(ask, fleet):
    _, rows = reported(ask, "--margin", "2", "--hours", "3")

    assert rows["CronJob/tidy", "app"]["recommended"]["cpu_request_millis"] in range(200, 230)
    (asked, _) = [query for _, path, query in fleet.asked if path.endswith("/proxy/rightsize")]
    assert asked == {"demand": "1", "hours": "3"}


def an_object(name, **parts):
    return {"metadata": {"name": name, "namespace": "shop"}, **parts}


def test_what_is_around_a_workload_decides(ask, fleet):
    web = {"kind": "Deployment", "name": "web"}
    target = {"type": "Utilization", "averageUtilization": 60}
    metric = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    scaler = an_object("scaler", spec={"scaleTargetRef": web, "metrics": [metric]})
    updater = an_object("sizer", spec={"targetRef": {"kind": "StatefulSet", "name": "db"}})
    observer = {"targetRef": {"kind": "CronJob", "name": "tidy"}}
    observing = an_object("looker", spec={**observer, "updatePolicy": {"updateMode": "Off"}})
    quota = an_object("tight", status={"hard": {"requests.cpu": "3"}, "used": {"cpu": "3"}})
    autoscaling = "/apis/autoscaling/v2/horizontalpodautoscalers"
    fleet.answers[autoscaling] = in_pages([scaler])
    vpas = "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"
    fleet.answers[vpas] = in_pages([updater, observing])
    fleet.answers["/api/v1/resourcequotas"] = in_pages([quota])

    _, rows = reported(ask)

    assert rows["Deployment/web", "app"]["recommended"]["cpu_request_millis"] == 500
    told = "\n".join(rows["Deployment/web", "app"]["reasons"])
    assert "the HPA scaler aims at 60 % of the CPU request: the request stays" in told
    assert rows["StatefulSet/db", "app"]["managed_by"] == "the VPA sizer (mode Auto)"
    assert any(
        "the VPA looker (mode Off) exists, and sets nothing" in reason
        for reason in rows["CronJob/tidy", "app"]["reasons"]
    )
    patches = ask("rightsize", "--output", "patch").stdout
    assert "the VPA sizer (mode Auto) sets the requests" in patches
    assert "name: db" not in patches


def test_what_may_not_be_listed_is_told(ask, fleet):
    for path in ("/apis/autoscaling/v2/horizontalpodautoscalers", "/api/v1/pods"):
        fleet.answers[path] = 403, {"kind": "Status", "message": "no"}

    report, _ = reported(ask)

    assert any("HorizontalPodAutoscalers are not known here" in note for note in report["notes"])
    assert any("init containers, native sidecars" in note for note in report["notes"])


PROGRAM = "import pathlib, time; pathlib.Path('/proc/self/comm').write_text('{}'); time.sleep(900)"
SETTINGS = """
run_directory = "{folder}/run"
state_directory = "{folder}/state"
[server]
listen = "{address}:{port}"
[scheduler]
enforce = false
[observe]
period_s = 1.0
budget_cpu_ratio = 1.0
[[workloads]]
name = "sleepy"
process = "{name}"
tier = "normal"
cpu_request = "500m"
"""


def own_address():
    """Return an address of this machine that an API server passes requests on to."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        return probe.getsockname()[0]


@pytest.fixture
def real_agent(cluster, node, tmp_path):
    """Run an agent on this machine, and make the pod that stands for it."""
    address, port = own_address(), free_port()
    if not address or address.startswith("127."):
        pytest.skip("this machine has no address beside the loopback")
    name = f"rs{port}"
    path = tmp_path / "agent.toml"
    path.write_text(SETTINGS.format(folder=tmp_path, address=address, port=port, name=name))
    program = subprocess.Popen(["python3", "-c", PROGRAM.format(name)])
    with (tmp_path / "log").open("w") as log:
        running = subprocess.Popen([TEMPER, "agent", "--settings", str(path)], stderr=log)
    made = pod(f"agent-{node}", node, "temper", labels=LABELS)
    made["spec"]["containers"][0]["ports"] = [{"containerPort": port}]
    cluster.make(made)
    ready = [{"type": "Ready", "status": "True"}]
    status = {"phase": "Running", "conditions": ready, "podIP": address}
    cluster.patch(made, {"status": {**status, "podIPs": [{"ip": address}]}}, "/status")
    yield node
    running.send_signal(signal.SIGTERM)
    program.kill()
    program.wait()
    assert running.wait(PATIENCE_S) == 0, (tmp_path / "log").read_text()


def test_a_real_agent_answers_through_the_real_api_server(cluster, real_agent, other_node):
    kubeconfig = cluster.directory / "kubeconfig"
    end = time.monotonic() + PATIENCE_S
    rows = []
    while not rows and time.monotonic() < end:
        done = here("k8s", "rightsize", "--output", "json", kubeconfig=kubeconfig)
        report = json.loads(done.stdout) if done.returncode == 0 else {}
        rows = [row for row in report.get("containers", ()) if row["pod"] == "sleepy"]
        time.sleep(0.5)

    assert rows, done.stderr
    assert rows[0]["current"]["cpu_request_millis"] == 500
    away = {each["node"]: each["why"] for each in report["away"]}
    assert away[other_node] == "no agent runs there"
    assert real_agent not in away
