"""Actions on chosen nodes, by a real browser, a real API server and three real agents."""

import pytest
from attrs import frozen

from tests.browser import grave
from tests.dashboard.dashboard_agent import TOKEN as OF_AGENTS
from tests.dashboard.dashboard_agent import free_port, until
from tests.dashboard.test_page_actions import enter as enter_token
from tests.kubernetes.fleet.test_fleet_page import enter
from tests.kubernetes.fleet.yard import serving

REASON = "canary <b>looks</b> wrong"


@frozen
class Acting:
    """A server with actions, at the pods' addresses."""

    address: str
    log: object
    agents: dict


@pytest.fixture(scope="module")
def acting(three_agents, rights):  # noqa: ARG001 - the account has to be there
    port = free_port()
    with serving(three_agents, port, "--reach=pod", "--actions") as log:
        yield Acting(f"http://127.0.0.1:{port}/", log, three_agents.agents)


@pytest.fixture
def entered(page, acting):
    enter(page, acting.address)
    page.get_by_role("heading", name="Nodes", exact=True).wait_for()
    return page


def standing(acting):
    """Return the reasons of the page's requests by node."""
    requests = {name: each.read("safe-mode")["requests"] for name, each in acting.agents.items()}
    return {
        name: stands["dashboard-user"]["reason"]
        for name, stands in requests.items()
        if "dashboard-user" in stands
    }


def choose(page, *nodes):
    for node in nodes:
        page.get_by_role("checkbox", name=f"Choose {node}").check()


def answered(page):
    return page.get_by_role("list", name="What the agents answered").get_by_role("listitem")


def test_nothing_can_be_done_without_a_token_of_the_agents(entered, acting):
    choose(entered, next(iter(acting.agents)))
    buttons = entered.get_by_role("button", name="safe mode").all()

    assert buttons
    assert all(button.is_disabled() for button in buttons)


def test_safe_mode_of_two_of_three_nodes_is_requested_confirmed_and_withdrawn(entered, acting):
    first, second, _ = acting.agents
    enter_token(entered, OF_AGENTS)
    choose(entered, first, second)
    entered.get_by_role("button", name="Request safe mode of 2 nodes").click()
    dialog = entered.get_by_role("dialog")
    named = dialog.inner_text()
    serious = grave(entered)
    before = standing(acting)
    dialog.get_by_label("Reason").fill(REASON)
    dialog.get_by_role("button", name="Request safe mode").click()
    until(lambda: answered(entered).count() == 2, "both agents have answered")
    stood = standing(acting)
    entered.get_by_role("button", name="Withdraw it from 2 nodes").click()
    dialog.get_by_role("button", name="Withdraw", exact=True).click()
    answered(entered).filter(has_text="withdrawn").nth(1).wait_for()

    assert first in named
    assert second in named
    assert (before, serious) == ({}, [])
    assert stood == {first: REASON, second: REASON}
    assert standing(acting) == {}
    assert acting.log.read_text().count("safe_mode_asked") == 2
    assert OF_AGENTS not in acting.log.read_text()


def test_cancelling_does_nothing(entered, acting):
    enter_token(entered, OF_AGENTS)
    choose(entered, next(iter(acting.agents)))
    entered.get_by_role("button", name="Request safe mode of").click()
    entered.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    entered.get_by_role("dialog").wait_for(state="detached")

    assert standing(acting) == {}


def test_a_wrong_token_changes_nothing_and_says_so_for_the_node(entered, acting):
    node = next(iter(acting.agents))
    enter_token(entered, "not-the-right-token")
    entered.goto(f"{acting.address}#/node/{node}")
    entered.get_by_role("button", name=f"Request safe mode of {node}").click()
    entered.get_by_label("Reason").fill("test")
    entered.get_by_role("dialog").get_by_role("button", name="Request safe mode").click()
    answered(entered).filter(has_text="failed: acting needs the bearer token").wait_for()

    assert standing(acting) == {}


def test_profiles_of_all_nodes_are_reloaded(entered, acting):
    enter_token(entered, OF_AGENTS)
    choose(entered, *acting.agents)
    entered.get_by_role("button", name="Reload the profiles of 3 nodes").click()
    entered.get_by_role("dialog").get_by_role("button", name="Reload", exact=True).click()
    answered(entered).filter(has_text="profiles are loaded").nth(2).wait_for()

    assert answered(entered).count() == 3
    assert "profile_reload_asked" in acting.log.read_text()


def test_a_trace_of_one_node_is_captured_there_alone(entered, acting):
    node, *others = acting.agents
    enter_token(entered, OF_AGENTS)
    entered.goto(f"{acting.address}#/node/{node}")
    entered.get_by_role("button", name=f"Capture a trace of {node}").click()
    dialog = entered.get_by_role("dialog")
    dialog.get_by_label("Seconds").fill("0.3")
    dialog.get_by_role("button", name="Capture", exact=True).click()
    answered(entered).filter(has_text="has begun").wait_for()

    assert len(acting.agents[node].read("traces")["traces"]) == 1
    assert all(acting.agents[name].read("traces")["traces"] == [] for name in others)
