"""An agent that reads the NodeTwin of its node from a real API server, and tells what it did."""

import time
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
import yaml

from temper_core import CheckState
from temper_core.testing import MadeContext, make_snapshot
from temper_plugin_power.node.instrument import PowerNode
from temper_plugin_power.settings.node import NodeSettings
from tests.control_plane.cluster import PATCHES, ROOT, unique, wait_until
from tests.control_plane.severable import Severable
from tests.kubernetes.power.conftest import GROUP
from tests.power.node.rapl_tree import RaplTree

DOCUMENTS = yaml.safe_load_all((ROOT / "plugins/power/node-rbac.yaml").read_text())
ROLE = next(each for each in DOCUMENTS if each["kind"] == "ClusterRole")
RIGHTS = {("nodetwins", "get"), ("nodetwins/status", "patch")}
CAPPED, USUAL = 100.0, 150.0


class Agent:
    """The power instrument of an agent, on a made tree of RAPL."""

    def __init__(self, cluster, folder, *missing):
        self.cluster = cluster
        self.name = unique("node")
        self.tree = RaplTree(folder / "sys", packages=1)
        self.context = MadeContext(folder=folder, node=self.name)
        account = cluster.account_with_all_but(ROLE, *missing)
        kubeconfig = yaml.safe_load((cluster.directory / "kubeconfig").read_text())
        kubeconfig["users"][0]["user"] = {"token": cluster.token(account)}
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(kubeconfig))
        self.at_s = 0.0
        kept = [right for right in RIGHTS if right != missing]
        wait_until(
            lambda: all(cluster.may(account, verb, kind, "joulie.io") for kind, verb in kept),
            "the role counts",
        )

    def say(self, age_s=0, **cpu):
        """Write the NodeTwin as the operator does."""
        path, document = f"{GROUP}/nodetwins", {"kind": "NodeTwin", "apiVersion": GROUP[6:]}
        spec = {"nodeName": self.name, "profile": "eco", "cpu": cpu}
        if self.twin() is None:
            named = {"metadata": {"name": self.name}, "spec": spec}
            self.cluster.call("POST", path, {**document, **named})
        said_at = datetime.now(UTC) - timedelta(seconds=age_s)
        status = {"schedulableClass": "eco", "lastUpdated": said_at.isoformat()}
        own = f"{path}/{self.name}"
        self.cluster.call("PATCH", own, {"spec": {**spec, "cpu": cpu or None}}, **PATCHES)
        self.cluster.call("PATCH", f"{own}/status", {"status": status}, **PATCHES)

    def twin(self):
        answer = self.cluster.client.get(f"{GROUP}/nodetwins/{self.name}")
        return answer.json() if answer.status_code == 200 else None

    def told(self):
        return (self.twin()["status"].get("controlStatus") or {}).get("cpu", {})

    def open(self, **settings):
        return PowerNode.of(
            NodeSettings(
                actuate=True,
                interval="1s",
                twin_from_cluster=True,
                kubeconfig=str(self.kubeconfig),
                powercap_path=str(self.tree.powercap),
                **settings,
            ),
            self.context,
        )

    def look_until(self, node, is_so, what):
        """Let the instrument see windows until something is so."""

        def once():
            self.at_s += 5
            snapshot = make_snapshot(monotonic_s=self.at_s)
            node.section(snapshot)
            node.tell(snapshot)
            return is_so()

        return wait_until(once, what)


@pytest.fixture
def agent_of(cluster, tmp_path):
    return lambda *missing: Agent(cluster, tmp_path, *missing)


def test_a_cap_of_the_cluster_is_set_told_changed_and_given_back(agent_of):
    agent = agent_of()
    agent.say(packagePowerCapWatts=CAPPED)
    node = agent.open()

    agent.look_until(node, lambda: agent.told().get("result") == "applied", "the cap is told")
    during, told, status = agent.tree.limit_watts(), agent.told(), agent.twin()["status"]
    checks = {check.name: check.state for check in node.checks()}
    agent.say()
    agent.look_until(node, lambda: agent.told().get("result") == "none", "no cap is told")
    after = agent.tree.limit_watts()
    agent.say(packagePowerCapWatts=CAPPED)
    agent.look_until(node, lambda: agent.tree.limit_watts() == CAPPED, "the cap is set again")
    node.close()
    wait_until(lambda: agent.told()["message"] == "the agent stops", "the end is told")

    assert (during, after, agent.tree.limit_watts()) == (CAPPED, USUAL, USUAL)
    assert told["backend"] == "rapl"
    assert "read back 100.0 W" in told["message"]
    assert status["schedulableClass"] == "eco"
    assert checks["NodeTwin of the cluster"] is CheckState.OK


def test_a_status_that_is_told_already_is_not_written_again(agent_of):
    agent = agent_of()
    agent.say(packagePowerCapWatts=CAPPED)
    node = agent.open()
    agent.look_until(node, lambda: agent.told().get("result") == "applied", "the cap is told")
    written = agent.twin()["metadata"]["resourceVersion"]

    until = time.monotonic() + 3
    agent.look_until(node, lambda: time.monotonic() > until, "three more turns")

    assert agent.twin()["metadata"]["resourceVersion"] == written
    node.close()


def test_a_node_without_a_twin_is_not_capped_and_says_so(agent_of):
    agent = agent_of()
    node = agent.open()

    def message():
        return next(each.detail for each in node.checks() if each.name.startswith("NodeTwin"))

    agent.look_until(node, lambda: "the cluster has no NodeTwin" in message(), "it is told")
    node.close()

    assert agent.tree.limit_watts() == USUAL


def test_without_the_right_to_read_nothing_is_capped_and_doctor_names_the_right(agent_of):
    agent = agent_of("nodetwins", "get")
    agent.say(packagePowerCapWatts=CAPPED)
    node = agent.open()

    def problem():
        return next(each.detail for each in node.checks() if each.name.startswith("NodeTwin"))

    agent.look_until(node, lambda: "lacks the right to get nodetwins" in problem(), "it is told")
    node.close()

    assert agent.tree.limit_watts() == USUAL


def test_without_the_right_to_tell_caps_are_set_and_doctor_names_the_right(agent_of):
    agent = agent_of("nodetwins/status", "patch")
    agent.say(packagePowerCapWatts=CAPPED)
    node = agent.open()

    def problem():
        return next(each.detail for each in node.checks() if each.name.startswith("NodeTwin"))

    agent.look_until(node, lambda: "patch nodetwins/status" in problem(), "it is told")
    during = agent.tree.limit_watts()
    node.close()

    assert (during, agent.tree.limit_watts()) == (CAPPED, USUAL)


def test_no_right_is_given_that_nothing_here_needs():
    given = {
        (resource, verb)
        for rule in ROLE["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

    assert given == RIGHTS


def test_while_the_api_server_is_away_a_cap_stays_until_its_specification_is_too_old(
    agent_of, cluster
):
    agent = agent_of()
    url = urlsplit(cluster.url)
    way = Severable(url.hostname, url.port)
    kubeconfig = yaml.safe_load(agent.kubeconfig.read_text())
    kubeconfig["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{way.port}"
    agent.kubeconfig.write_text(yaml.safe_dump(kubeconfig))
    agent.say(packagePowerCapWatts=CAPPED)
    node = agent.open(spec_timeout="8s")
    agent.look_until(node, lambda: agent.tree.limit_watts() == CAPPED, "the cap is set")

    way.cut()
    until = time.monotonic() + 2
    agent.look_until(node, lambda: time.monotonic() > until, "the server is away")
    meanwhile = agent.tree.limit_watts()
    agent.look_until(node, lambda: agent.tree.limit_watts() == USUAL, "the cap is lifted")
    way.mend()
    agent.say(packagePowerCapWatts=CAPPED)
    agent.look_until(node, lambda: agent.tree.limit_watts() == CAPPED, "the cap is set again")
    node.close()
    way.close()

    assert meanwhile == CAPPED
