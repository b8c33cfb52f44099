"""What the fleet server may do in a cluster, and that it needs all of it."""

import copy

import pytest

from temper_plugin_dashboard.fleet.asking import AgentDoor, Way
from temper_plugin_dashboard.fleet.survey import Survey
from tests.control_plane.cluster import access_by, unique
from tests.kubernetes.fleet.yard import RIGHTS

LISTED, ANSWERED, WITHOUT = "agents are listed", "agents answer", "nodes without one are known"
FAILS_WITHOUT = {
    "": set(),
    "pods": {LISTED, ANSWERED, WITHOUT},
    "pods/proxy": {ANSWERED},
    "nodes": {WITHOUT},
}


@pytest.fixture
def account(cluster):
    """Make an account with the server's rights but those on a resource; return its name."""

    def make(resource):
        name = unique("dashboard")
        for document in copy.deepcopy(RIGHTS):
            document["metadata"]["name"] = name
            for part in (document.get("roleRef"), *document.get("subjects", ())):
                if part:
                    part["name"] = name
            rules = document.get("rules", ())
            left = [rule for rule in rules if rule["resources"] != [resource]]
            if "rules" in document:
                document["rules"] = left
            cluster.make(document)
        return name

    return make


@pytest.mark.parametrize("resource", FAILS_WITHOUT)
def test_each_right_is_needed(three_agents, account, node, tmp_path, resource):
    cluster = three_agents.cluster
    token = tmp_path / "token"
    token.write_text(cluster.token(account(resource)))
    survey = Survey(AgentDoor(access_by(cluster.url, token, cluster.ca)), "temper")

    survey.take()

    states = {name: str(state.state) for name, state in survey.nodes.items()}
    works = {
        LISTED: not survey.problem,
        ANSWERED: {states.get(name) for name in three_agents.agents} == {"answers"},
        WITHOUT: node in states,
    }
    survey.close()
    assert {what for what in works if not works[what]} == FAILS_WITHOUT[resource]


def test_no_rule_has_more_than_one_resource_and_verb():
    rules = [rule for document in RIGHTS for rule in document.get("rules", ())]

    assert all(len(rule["resources"]) == len(rule["verbs"]) == 1 for rule in rules)
    assert {rule["resources"][0] for rule in rules} == set(FAILS_WITHOUT) - {""}


def test_agents_are_asked_at_the_address_of_their_pods_without_that_right(
    three_agents, account, tmp_path
):
    cluster = three_agents.cluster
    token = tmp_path / "token"
    token.write_text(cluster.token(account("pods/proxy")))
    survey = Survey(AgentDoor(access_by(cluster.url, token, cluster.ca), Way.POD), "temper")

    survey.take()

    survey.close()
    states = {survey.nodes[name].state for name in three_agents.agents}
    assert states == {"answers"}
