"""Three real agents of a real control plane, and the fleet server as a process."""

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from attrs import define, field

from tests.control_plane.cluster import ROOT, pod, unique
from tests.dashboard.dashboard_agent import PROGRAM, DashboardAgent, free_port, until
from tests.density.placement.yard import kubeconfig
from tests.kubernetes.tools.test_kubectl_rightsize import own_address
from tests.patience import PATIENCE_S
from tests.prometheus import program

TEMPER = str(Path(sys.executable).with_name("temper"))
RIGHTS = list(yaml.safe_load_all((ROOT / "plugins/dashboard/fleet-rbac.yaml").read_text()))
POD_RIGHTS = list(yaml.safe_load_all((ROOT / "plugins/dashboard/pod-rbac.yaml").read_text()))
PARTS = ("events", "manifest", "revisions", "logs")
LABELS = {"app.kubernetes.io/name": "temper", "app.kubernetes.io/component": "agent"}
TOKEN = "a token of the fleet's page"
ACCOUNT = "temper-dashboard"


@define
class Fleet:
    """Agents by the name of their node, the cluster, and the server's port."""

    cluster: object
    folder: Path
    agents: dict = field(factory=dict)
    port: int = field(factory=free_port)

    @property
    def address(self):
        return f"http://127.0.0.1:{self.port}/"

    def add_agent(self):
        """Run an agent on this machine for one more node. Return the node's name."""
        host = own_address()
        if not host or host.startswith("127."):
            pytest.skip("this machine has no address beside the loopback")
        name = unique("node")
        self.cluster.node(name)
        folder = self.folder / name
        folder.mkdir()
        agent = DashboardAgent(folder, head=f'node = "{name}"', host=host)
        agent.start()
        self.agents[name] = agent
        made = pod(f"agent-{name}", name, "temper", labels=LABELS)
        made["spec"]["containers"][0]["ports"] = [{"containerPort": agent.port}]
        self.cluster.make(made)
        ready = [{"type": "Ready", "status": "True"}]
        status = {"phase": "Running", "conditions": ready, "podIP": host}
        told = {"status": {**status, "podIPs": [{"ip": host}]}}
        self.cluster.patch(made, told, "/status")
        return name

    def remove(self):
        for name, agent in self.agents.items():
            agent.kill()
            self.cluster.without_node(name)


@pytest.fixture(scope="module")
def rights(cluster):
    """The account of the fleet server with its rights."""
    for document in (*RIGHTS, *POD_RIGHTS):
        cluster.make(document)


@pytest.fixture(scope="module")
def three_agents(cluster, tmp_path_factory):
    fleet = Fleet(cluster, tmp_path_factory.mktemp("fleet"))
    with subprocess.Popen([sys.executable, "-c", PROGRAM]) as program:
        try:
            for _ in range(3):
                fleet.add_agent()
            yield fleet
        finally:
            fleet.remove()
            program.kill()


@pytest.fixture(scope="module")
def prometheus_of_agents(three_agents):
    """The address of a real Prometheus that scrapes agents and server with the chart's labels."""
    folder, port = three_agents.folder, free_port()
    jobs = [
        {"targets": [f"{agent.host}:{agent.port}"], "labels": {"instance": name}}
        for name, agent in three_agents.agents.items()
    ]
    scraped = {"job_name": "temper-agent", "honor_labels": True, "static_configs": jobs}
    page = {"targets": [f"127.0.0.1:{three_agents.port}"]}
    own = {"job_name": "temper-dashboard", "static_configs": [page]}
    config = {"global": {"scrape_interval": "1s"}, "scrape_configs": [scraped, own]}
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    command = [
        program("prometheus"),
        f"--config.file={folder}/prometheus.yaml",
        f"--storage.tsdb.path={folder}/tsdb",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("w") as log:
        running = subprocess.Popen(command, stderr=log)
    yield f"http://127.0.0.1:{port}"
    running.kill()
    running.wait()


@pytest.fixture(scope="module")
def fleet(three_agents, rights, prometheus_of_agents):  # noqa: ARG001 - the account has to be there
    """The agents, and a server that is asked by the account's rights."""
    words = ["--prometheus", prometheus_of_agents, *(f"--pod-details={part}" for part in PARTS)]
    with serving(three_agents, three_agents.port, *words):
        yield three_agents


@contextmanager
def serving(fleet, port, *words):
    """Run a server at *port* with these options. Yield the path of its log."""
    folder = fleet.folder / str(port)
    folder.mkdir()
    account = kubeconfig(fleet.cluster, folder / "account", fleet.cluster.token(ACCOUNT))
    token, log = folder / "token", folder / "server.log"
    token.write_text(f"{TOKEN}\n")
    options = {
        "--listen": f"127.0.0.1:{port}",
        "--token-file": token,
        "--kubeconfig": account,
        "--every": 1,
    }
    given = [str(word) for pair in options.items() for word in pair]
    with log.open("w") as file:
        server = subprocess.Popen([TEMPER, "dashboard", "serve", *given, *words], stderr=file)
    until(lambda: _answers(f"http://127.0.0.1:{port}/"), "the server answers")
    yield log
    server.send_signal(signal.SIGTERM)
    assert server.wait(PATIENCE_S) == 0, log.read_text()


def _answers(address):
    try:
        with urllib.request.urlopen(f"{address}healthz", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, ConnectionError):
        return False
