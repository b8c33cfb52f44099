"""Fleets of thousands, and nodes that say odd things of themselves: anybody may write there."""

import json

import pytest

from temper_kube.proxied import REVIEWS
from tests.kube_client.made_server import agent, in_pages, listed, node

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/temper/pods"
ODD = ["²", "٣", "9" * 5000, "-1", "1e3", "", "NaN"]


def fleet_of(server, nodes, agents=None):
    server.answers[NODES] = in_pages(nodes)
    names = [each["metadata"]["name"] for each in nodes] if agents is None else agents
    server.answers[PODS] = in_pages([agent(name) for name in names])


def test_thousands_of_nodes_are_asked_for_in_pages_and_each_is_told_once(made, ask):
    fleet_of(made, [node(f"n{n:04}", agent_status="enforcing") for n in range(3000)])

    done = ask("status")

    lines = done.stdout.splitlines()
    assert len({line.split()[0] for line in lines[1:-1]}) == 3000
    assert lines[-1] == "3000 nodes: 3000 enforcing"
    assert len([each for each in made.asked if each[1] == NODES]) == 12
    assert done.returncode == 0


def test_pages_that_took_too_long_are_asked_for_again_all_at_once(made, ask):
    nodes = [node(f"n{n:04}", agent_status="enforcing") for n in range(600)]
    fleet_of(made, nodes)
    paged, gone = made.answers[NODES], (410, {"kind": "Status", "message": "too old"})
    made.answers[NODES] = lambda query: gone if query.get("continue") == "500" else paged(query)

    told = json.loads(ask("status", "-o", "json").stdout)

    assert [each["name"] for each in told["nodes"]] == [f"n{n:04}" for n in range(600)]


def test_what_is_wrong_with_thousands_alike_is_one_finding(made, ask):
    odd = {"agent_status": "safe_mode:crash_loop", "agent_message": "five failures"}
    fleet_of(made, [node(f"n{n:04}", **odd) for n in range(1000)])

    told = json.loads(ask("doctor", "-o", "json", "--no-kubelets").stdout)

    found = [each for each in told["findings"] if each["check"] == "crash_loop"]
    assert [len(each["nodes"]) for each in found] == [1000]


@pytest.mark.parametrize("number", ODD)
def test_numbers_that_are_none_are_no_reason_to_show_nothing(made, ask, number):
    said = {
        "config_generation": number,
        "tier_critical_pods": number,
        "tier_low_cpu_millis": number,
        "tiers_updated": number,
    }
    fleet_of(made, [node("odd", agent_status="enforcing", **said)])

    people, machines = ask("status"), json.loads(ask("status", "-o", "json").stdout)

    assert people.stdout.splitlines()[1].startswith("odd")
    assert machines["nodes"][0]["generation"] is None
    assert machines["nodes"][0]["tiers"]["critical"]["pods"] is None


@pytest.mark.parametrize("key", ["agent_status", "agent_message", "restore_left"])
@pytest.mark.parametrize("command", [("status",), ("doctor", "--no-kubelets")])
def test_what_a_node_says_at_length_does_not_fill_the_tables(made, ask, key, command):
    said = {"agent_status": "safe_mode:odd", "restored": "x", key: "safe_mode:" + "x" * 250_000}
    fleet_of(made, [node("odd", **said), node("fine", agent_status="enforcing")])

    done = ask(*command)

    assert len(done.stdout) + len(done.stderr) < 10_000
    assert "odd" in done.stdout


def test_what_a_node_says_does_not_steer_the_terminal(made, ask):
    sneaky = "\x1b[2J\x1b[H\nall is well\r"
    said = {"agent_status": f"safe_mode:{sneaky}", "agent_message": sneaky}
    fleet_of(made, [node("odd", restored="x", restore_left=sneaky, **said)])

    shown = [ask("status"), ask("doctor", "--no-kubelets")]

    for each in shown:
        assert not {"\x1b", "\r"} & set(each.stdout)
        assert "\nall is well" not in each.stdout


def test_what_a_node_says_it_has_left_does_not_steer_the_terminal_either(made, ask):
    fleet_of(made, [node("odd", agent_status="enforcing")])
    listing = made.answers[NODES]
    made.answers[f"{NODES}/odd"] = {}

    def answered(query):
        if "limit" in query:
            return listing(query)
        asked = next(each for each in reversed(made.bodies) if each)["metadata"]["annotations"]
        value = asked["temper.codes/restore-requested"]
        return listed(node("odd", restore_requested=value, restored="x", restore_left="\x1b[2J"))

    made.answers[NODES] = answered

    done = ask("restore", "odd", "--timeout", "20")

    assert done.stdout.startswith("odd: restored, except for")
    assert "\x1b" not in done.stdout


def test_kubelets_that_do_not_answer_are_told_in_a_few_lines(made, ask):
    fleet_of(made, [node(f"n{n:03}", agent_status="enforcing") for n in range(300)])
    for number in range(300):
        refused = (503, {"kind": "Status", "message": f"dial tcp 10.0.0.{number}: no route"})
        made.answers[f"{NODES}/n{number:03}/proxy/configz"] = refused

    told = json.loads(ask("doctor", "-o", "json").stdout)["unknown"]

    asked = [each for each in told if each["what"].startswith("the kubelets")]
    assert len(asked) == 4
    assert asked[-1]["what"].endswith("and 292 more")


def test_a_fleets_kubelets_are_asked_for_so_long_and_no_longer(made, ask, monkeypatch):
    monkeypatch.setattr("temper_plugin_kubernetes.operators.kubelets.ALL_S", -1.0)
    fleet_of(made, [node(f"n{n:03}", agent_status="enforcing") for n in range(50)])

    told = json.loads(ask("doctor", "-o", "json").stdout)["unknown"]

    why = next(each["why"] for each in told if each["what"].startswith("the kubelets"))
    assert why.startswith("not reached within")
    assert not [each for each in made.asked if each[1].endswith("configz")]


def test_a_kubelet_speaks_for_itself_alone(made, ask):
    fleet_of(made, [node(name, agent_status="enforcing") for name in ("n1", "n2")])
    forged = 'User "you" cannot escalate resource "clusterroles" in API group "rbac"'
    made.answers[f"{NODES}/n1/proxy/configz"] = 403, {"message": forged}
    made.answers[f"{NODES}/n2/proxy/configz"] = {"kubeletconfig": {"cpuManagerPolicy": "static"}}

    told = json.loads(ask("doctor", "-o", "json").stdout)

    assert ("static_cpu_manager", ["n2"]) in [(f["check"], f["nodes"]) for f in told["findings"]]
    assert f"no answer of the kubelet: 403: {forged}" in [each["why"] for each in told["unknown"]]


def test_kubelets_are_not_asked_without_the_right(made, ask):
    fleet_of(made, [node("n1", agent_status="enforcing")])
    made.answers[REVIEWS] = {"status": {"allowed": False}}

    told = json.loads(ask("doctor", "-o", "json").stdout)

    assert "lacks the right to get nodes/proxy" in " ".join(each["why"] for each in told["unknown"])
    assert not [each for each in made.asked if each[1].endswith("configz")]


def test_documents_for_machines_have_the_keys_that_are_documented(made, ask):
    fleet_of(made, [node("one", agent_status="enforcing")])

    status = json.loads(ask("status", "-o", "json").stdout)
    doctor = json.loads(ask("doctor", "-o", "json", "--no-kubelets").stdout)
    restore = json.loads(ask("restore", "one", "--release", "-o", "json").stdout)

    assert set(status) == {"schema_version", "nodes_in_all", "standings", "nodes", "unknown"}
    assert set(status["nodes"][0]) == {
        "name", "kernel", "is_ready", "standing", "mode", "reason", "message", "generation",
        "tiers", "age_s", "restore", "agent",
    }  # fmt: skip
    assert set(status["nodes"][0]["agent"]) == {
        "pod", "namespace", "state", "is_ready", "restarts", "version", "is_canary",
    }  # fmt: skip
    assert set(doctor) == {"schema_version", "is_clean", "findings", "unknown"}
    assert set(doctor["findings"][0]) == {"check", "severity", "detail", "remedy", "nodes"}
    assert restore == {
        "schema_version": 1,
        "nodes": [{"node": "one", "state": "not_requested", "detail": ""}],
    }


def test_an_agent_is_a_pod_of_tempers_own_namespace(made, ask):
    real = agent("one")
    real["status"] = {
        "phase": "Running",
        "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
    }
    forged = agent("one")
    forged["metadata"]["namespace"] = "evil"
    made.answers[NODES] = listed(node("one", agent_status="enforcing"))
    made.answers[PODS] = listed(real)
    made.answers["/api/v1/pods"] = made.answers["/api/v1/namespaces/evil/pods"] = listed(forged)

    status, doctor = ask("status"), ask("doctor", "--no-kubelets")

    assert (status.returncode, status.stdout.splitlines()[-1]) == (1, "1 node: 1 agent failing")
    assert "the agent's pod does not run (1 node: one)" in doctor.stdout
    assert ask("status", "--namespace", "evil").returncode == 0


def test_restoring_in_a_namespace_that_does_not_exist_changes_no_node(made, ask):
    made.answers[NODES] = listed(node("one", agent_status="enforcing"))
    made.answers["/api/v1/namespaces/other/pods"] = listed()

    done = ask("restore", "--all-nodes", "--namespace", "other")

    assert (done.returncode, done.stderr) == (
        2,
        "temper: there is no namespace other: name Temper's with --namespace\n",
    )
    assert {method for method, _, _ in made.asked} == {"GET"}


def test_a_kubelet_is_read_to_a_bound(made, ask):
    made.answers[NODES] = listed(node("large"), node("small"))
    made.answers[PODS] = listed()
    settings = {"cpuManagerPolicy": "static", "failCgroupV1": False}
    made.answers[f"{NODES}/small/proxy/configz"] = {"kubeletconfig": settings}
    made.answers[f"{NODES}/large/proxy/configz"] = {"kubeletconfig": {"x": "x" * 300_000}}

    told = json.loads(ask("doctor", "-o", "json").stdout)

    found = {each["check"]: each["nodes"] for each in told["findings"]}
    assert (found["static_cpu_manager"], found["cgroup_v2"]) == (["small"], ["small"])
    (why,) = [each["why"] for each in told["unknown"] if "of large" in each["what"]]
    assert "larger than" in why
