"""``temper k8s status`` against a real API server: a fleet in every state it can be in."""

import json
from pathlib import Path

import pytest

from tests.kube_client.made_server import agent, listed, node
from tests.kubernetes.tools.conftest import told_by_an_agent

FULL = {"pods": (2, 1, 9, 0, 4), "millis": (3000, 500, 1250, 0, 40)}


@pytest.fixture
def states(fleet):
    """Thirteen nodes, one in each state that there is."""

    def has(name, status, generation=0, *, message="", seconds=5, agent=None, **node):
        told = told_by_an_agent(status, generation, message=message, seconds=seconds, **FULL)
        fleet.node(name, {**told, **node.pop("annotations", {})}, **node)
        fleet.agent(name, **(agent or {}))

    has("enforcing-1", "enforcing", 7, labels={"zone": "a"})
    has("enforcing-2", "enforcing", 12, agent={"restarts": 3}, is_ready=False)
    has("canary", "enforcing", 3, agent={"is_canary": True, "tag": "1.1.0-rc1"})
    has("reloading", "reloading", 8)
    has("observing", "observe_only:no_sched_ext", info={"kernelVersion": "5.15.0-1084-azure"})
    has("asked", "safe_mode:requested", labels={"zone": "a"})
    has("crash-loop", "safe_mode:crash_loop", message="five failures within an hour")
    has("stale", "enforcing", 7, seconds=7300)
    has("broken", "enforcing", 7, agent={"waiting": "CrashLoopBackOff", "restarts": 41})
    restoring = {"temper.codes/restore-requested": "uninstall"}
    has("restoring", "safe_mode:requested", annotations=restoring)
    fleet.node("gone", told_by_an_agent("enforcing", 7, seconds=30, **FULL))
    fleet.node("bare")
    fleet.node("starting")
    fleet.agent("starting", is_ready=False)
    return fleet


TABLE = Path(__file__).with_name("fleet.txt").read_text()


def words(text):
    """Compare tables without their ages, which pass while a test runs."""
    lines = []
    for line in text.splitlines():
        cells = line.split()
        lines.append(
            [("AGE" if cell[:-1].isdigit() and cell[-1] == "s" else cell) for cell in cells]
        )
    return lines


@pytest.mark.usefixtures("states")
def test_every_state_is_told_in_the_table_the_worst_first(k8s):
    done = k8s("status")

    assert words(done.stdout) == words(TABLE)
    assert done.stderr == ""
    assert done.returncode == 1


@pytest.mark.usefixtures("states")
def test_machines_are_told_the_same(k8s):
    told = json.loads(k8s("status", "--output", "json").stdout)

    by_name = {each["name"]: each for each in told["nodes"]}
    assert told["nodes_in_all"] == 13
    assert told["standings"]["enforcing"] == 3
    assert by_name["crash-loop"]["message"] == "five failures within an hour"
    assert by_name["enforcing-2"]["tiers"]["critical"] == {"pods": 2, "cpu_millis": 3000}
    assert 7300 <= by_name["stale"]["age_s"] < 7400
    assert (by_name["bare"]["standing"], by_name["bare"]["agent"]) == ("no_agent", None)
    assert by_name["restoring"]["restore"]["requested"] == "uninstall"
    agent = by_name["canary"]["agent"]
    assert (agent["is_canary"], agent["version"]) == (True, "1.1.0-rc1")


@pytest.mark.usefixtures("states")
def test_a_selector_and_what_enforces_can_be_left_out(k8s):
    some = k8s("status", "--selector", "zone=a", "--not-enforcing")

    rows = [line.split()[0] for line in some.stdout.splitlines()]
    assert rows == ["NODE", "asked", "2"]
    assert some.returncode == 0
    assert some.stdout.endswith("2 nodes: 1 enforcing, 1 in safe mode on request\n")


def test_a_selector_that_is_none_is_refused_in_one_line(k8s):
    done = k8s("status", "--selector", "a in b")

    assert done.returncode == 3
    assert done.stderr.startswith("temper: the API server refuses with status 400: unable to parse")
    assert done.stderr.count("\n") == 1


@pytest.mark.usefixtures("states")
def test_without_the_right_to_list_pods_nodes_are_told_and_agents_are_not_missed(k8s, cluster):
    cluster.make(role_of("node-reader", ["nodes"], ["list"]))
    cluster.make(binding_of("node-reader", "nobody"))

    done = k8s("status", kubeconfig=cluster.directory / "kubeconfig.nobody")
    cluster.delete(binding_of("node-reader", "nobody"))

    gone = next(line for line in done.stdout.splitlines() if line.startswith("gone"))
    assert gone.split()[-3:] == ["?", "-", "-"]
    assert done.stderr == (
        "not known: the agents' pods: forbidden: nobody lacks the right to list pods in the "
        "namespace temper\n"
    )


def role_of(name, resources, verbs):
    rule = {"apiGroups": [""], "resources": resources, "verbs": verbs}
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    return {**kind, "metadata": {"name": name}, "rules": [rule]}


def binding_of(role, user):
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "apiGroup": group, "name": user}],
    }


@pytest.mark.parametrize(
    ("updated", "standing", "told"),
    [
        ("2099-01-01T00:00:00Z", "stale", " ahead"),
        ("2025-01-01T00:00:00Z", "stale", " old"),
        ("2025-01-01T00:00:00", "stale", "no time"),
        ("yesterday", "stale", "no time"),
    ],
)
def test_numbers_of_another_time_are_stale(made, ask, updated, standing, told):
    said = {"agent_status": "enforcing", "agent_mode": "enforcing", "tiers_updated": updated}
    made.answers["/api/v1/nodes"] = listed(node("n1", **said))
    made.answers["/api/v1/namespaces/temper/pods"] = listed(agent("n1"))

    (row,) = json.loads(ask("status", "--output", "json").stdout)["nodes"]

    assert row["standing"] == standing
    assert told in ask("status").stdout
