"""The agent as it runs in a cluster: a real process against a real API server."""

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.control_plane.cluster import pod, wait_for_value, wait_until
from tests.own_host import ENVIRONMENT, OWN_RUN

TEMPER = str(Path(sys.executable).with_name("temper"))


class Agent:
    """One that finds the API server through its environment, as in a pod."""

    def __init__(self, directory, node, kubeconfig):
        self.directory = directory
        path = directory / "agent.toml"
        path.write_text(
            f'run_directory = "{directory}"\nstate_directory = "{directory}"\n'
            f'[pods]\nsource = "kubernetes"\npoll_s = 0.5\n'
            f'[plugins.kubernetes]\nkubeconfig = "{kubeconfig}"\nstale_after_s = 1.0\n'
            f"write_every_s = 0.5\n[observe]\nperiod_s = 0.5\n"
            '[server]\nlisten = "127.0.0.1:0"\n[scheduler]\nenforce = false\n'
        )
        self.log = (directory / "log").open("w")
        self.process = subprocess.Popen(
            [*OWN_RUN, TEMPER, "agent", "--settings", str(path)],
            stderr=self.log,
            env={**ENVIRONMENT, "NODE_NAME": node},
        )
        transport = httpx2.HTTPTransport(uds=f"{directory}/agent.sock")
        self.client = httpx2.Client(transport=transport, base_url="http://agent", timeout=10)

    def until(self, condition, what, seconds=60.0):
        with self.telling():
            return wait_until(condition, what, seconds)

    def goes_on(self, read, wanted, what):
        """Wait for a value, however long that takes, while there is progress towards it."""
        with self.telling():
            wait_for_value(read, wanted, what)

    @contextmanager
    def telling(self):
        """Show the log where something is not as it should be."""
        try:
            yield
        except AssertionError as error:
            log = (self.directory / "log").read_text()[-2000:]
            raise AssertionError(f"{error}: {log}") from error

    def get(self, path):
        if not (self.directory / "agent.sock").exists():
            return {}
        answer = self.client.get(path)
        return answer.json() if answer.status_code == 200 else {}

    def names(self):
        return {each["pod"] for each in self.get("/explain").get("pods", ())}

    def defects(self):
        return " ".join(self.get("/observe").get("defects", ()))

    def metric(self, name):
        lines = self.client.get("/metrics").text.splitlines()
        return next((float(line.split()[-1]) for line in lines if line.startswith(name)), None)

    def stop(self):
        self.client.close()
        self.process.terminate()
        code = self.process.wait(20)
        self.log.close()
        return code


@pytest.fixture
def kubeconfig(tmp_path, way, cluster, token_file):
    """A kubeconfig of the agent's service account, by the way that can be cut."""
    path = tmp_path / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "current-context": "a",
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "clusters": [
                    {
                        "name": "a",
                        "cluster": {
                            "server": f"https://127.0.0.1:{way.port}",
                            "certificate-authority": str(cluster.ca),
                        },
                    }
                ],
                "users": [{"name": "a", "user": {"tokenFile": str(token_file)}}],
            }
        )
    )
    return path


@pytest.fixture
def start(tmp_path, node, kubeconfig):
    agents = []

    def launch():
        agents.append(Agent(tmp_path, node, kubeconfig))
        return agents[-1]

    yield launch
    for agent in agents:
        if agent.process.poll() is None:
            agent.stop()


def test_the_agent_lives_with_the_cluster_and_without_it(cluster, node, way, start):
    cluster.run(pod("early", node, "shop", cpu="100m"))
    agent = start()
    agent.until(lambda: "shop/early" in agent.names(), "the pod")
    key = "temper.codes/agent-status"
    said = agent.until(lambda: cluster.annotations(node).get(key), "the annotation")
    mode = agent.get("/observe")["mode"]

    way.cut()
    agent.until(lambda: "does not answer" in agent.defects(), "staleness in /observe")
    agent.until(lambda: "the kill switch" in agent.defects(), "the watch of the node in it")
    agent.until(lambda: agent.metric("temper_pods_age_seconds") > 1.0, "the age of the pods")
    is_up = agent.metric('temper_kubernetes_watch_up{resource="pods"')
    still_known = agent.names()
    cluster.run(pod("late", node, "shop", cpu="100m"))
    way.mend()
    agent.until(lambda: "shop/late" in agent.names(), "the pod that came meanwhile", 60)
    agent.until(lambda: "does not answer" not in agent.defects(), "no staleness")
    code = agent.stop()

    assert said.partition(":")[0] == mode
    assert "shop/early" in still_known
    assert is_up == 0.0
    assert code == 0
    assert cluster.annotations(node) == {}


def test_the_kill_switch_is_honoured_within_a_second_and_at_start(cluster, node, start):
    cluster.annotate(node, safe_mode_requested="true")
    agent = start()
    asked = agent.until(lambda: agent.get("/safe-mode").get("requests"), "the request at start")

    cluster.annotate(node, safe_mode_requested=None)
    agent.until(lambda: not agent.get("/safe-mode")["requests"], "the release", 1.0)
    cluster.annotate(node, safe_mode_requested="true")
    agent.until(lambda: agent.get("/safe-mode")["requests"], "the request", 1.0)

    assert set(asked) == {"kubernetes"}


PRIORITIES = {"critical": 1_000_000, "high": 100_000, "normal": 0, "low": -100, "background": -1000}


def test_250_pods_of_five_tiers_are_what_the_annotations_say(cluster, node, start):
    for tier, value in PRIORITIES.items():
        cluster.make(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": f"temper-{tier}"},
                "value": value,
            }
        )
    tiers = [tier for tier in PRIORITIES for _ in range(50)]
    batch = [
        pod(f"p{number}", node, "shop", cpu="10m", priority_class=f"temper-{tier}")
        for number, tier in enumerate(tiers)
    ]
    agent = start()
    agent.until(lambda: cluster.annotations(node).get("temper.codes/agent-status"), "the agent")
    before = tiers_in(cluster.annotations(node))

    for document in batch:
        cluster.run(document)
    agent.goes_on(lambda: added(cluster, node, before), dict.fromkeys(PRIORITIES, (50, 500)), "all")
    for document in batch[:25]:
        cluster.delete(document)
    half = {**dict.fromkeys(PRIORITIES, (50, 500)), "critical": (25, 250)}
    agent.goes_on(lambda: added(cluster, node, before), half, "half of the critical ones")
    for document in batch[25:]:
        cluster.delete(document)

    agent.goes_on(lambda: added(cluster, node, before), dict.fromkeys(PRIORITIES, (0, 0)), "none")


def tiers_in(annotations):
    """Return (pods, millicores) by tier; this machine may have pods of its own."""
    keys = {tier: f"temper.codes/tier-{tier}" for tier in PRIORITIES}
    return {
        tier: (int(annotations[f"{key}-pods"]), int(annotations[f"{key}-cpu-millis"]))
        for tier, key in keys.items()
    }


def added(cluster, node, before):
    now = tiers_in(cluster.annotations(node))
    return {t: (now[t][0] - before[t][0], now[t][1] - before[t][1]) for t in PRIORITIES}


def test_an_agent_whose_node_is_not_in_the_cluster_says_so_and_stays_ready(cluster, node, start):
    cluster.without_node(node)

    agent = start()
    agent.until(lambda: f"the cluster has no node '{node}'" in agent.defects(), "the defect")
    ready = agent.get("/readyz")
    cluster.node(node)
    agent.until(lambda: "no node" not in agent.defects(), "the end of the defect")

    assert ready["ready"] is True
    assert agent.stop() == 0
