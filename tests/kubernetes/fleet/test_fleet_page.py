"""The page of a cluster in a real browser: three real agents behind a real API server."""

import httpx2
import pytest
from playwright.sync_api import expect

from tests.browser import grave
from tests.dashboard.dashboard_agent import HOSTILE_NAME, until
from tests.dashboard.test_page import VIEWS
from tests.kubernetes.fleet.yard import TOKEN

FLEET_VIEWS = {"": "Nodes", "pods": "Pods"}


def enter(page, address, token=TOKEN):
    page.goto(address)
    page.get_by_role("textbox", name="Token").fill(token)
    page.get_by_role("button", name="Enter").click()


@pytest.fixture
def entered(page, fleet):
    """The page after the login."""
    enter(page, fleet.address)
    page.get_by_role("heading", name="Nodes", exact=True).wait_for()
    return page


def row_of(page, node):
    return page.get_by_role("row").filter(has_text=node)


def open_view(page, address, heading):
    page.goto(address)
    page.get_by_role("heading", name=heading, exact=True).wait_for()
    page.get_by_text("Reading …").first.wait_for(state="detached")


def test_a_wrong_token_does_not_enter(page, fleet):
    enter(page, fleet.address, "not the right token")
    page.get_by_role("alert").filter(has_text="the token is wrong").wait_for()

    assert page.context.cookies() == []
    # Chromium logs each answer with status 403.
    assert all("403" in error for error in page.errors)
    page.errors.clear()


def test_the_token_is_in_no_address_and_half_of_the_session_in_no_script(entered, fleet):
    (cookie,) = entered.context.cookies()

    assert entered.url == fleet.address
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert TOKEN not in cookie["value"]
    kept = entered.evaluate("document.cookie + Object.values(localStorage).join()")
    assert TOKEN not in kept
    assert cookie["value"] not in kept


def test_all_nodes_are_shown_as_their_agents_tell(entered, fleet):
    for name, agent in fleet.agents.items():
        row = row_of(entered, name)
        row.get_by_text("answers", exact=True).wait_for()
        cpus = agent.read("observe")["machine"]["cpus"]
        assert row.get_by_text(f"of {cpus}").count() == 1
        assert row.get_by_text("only observing").count() == 1
    assert entered.get_by_role("status").inner_text().startswith(f"{len(fleet.agents)} nodes")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", [*FLEET_VIEWS, "node"])
def test_a_view_of_the_fleet_is_accessible_and_fits(entered, fleet, view, scheme):
    name = next(iter(fleet.agents))
    entered.emulate_media(color_scheme=scheme)
    where = f"node/{name}" if view == "node" else view
    open_view(entered, f"{fleet.address}#/{where}", FLEET_VIEWS.get(view, name))

    assert grave(entered) == []
    entered.set_viewport_size({"width": 320, "height": 700})
    # Charts take the new width after the page.
    expect(entered.locator("html")).to_have_js_property("scrollWidth", 320)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_login_is_accessible(page, fleet, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto(fleet.address)
    page.get_by_role("textbox", name="Token").wait_for()

    assert grave(page) == []


def test_pods_of_all_nodes_are_found_by_words_and_lead_to_their_page(entered, fleet):
    entered.get_by_role("link", name="Pods of all nodes").click()
    name = next(iter(fleet.agents))
    entered.get_by_role("searchbox").fill(f"shop {name}")
    rows = entered.locator("tbody tr")
    expect(rows).to_have_count(1)

    assert name in rows.inner_text()
    rows.get_by_role("link", name="shop").click()
    entered.get_by_role("cell", name=HOSTILE_NAME, exact=True).wait_for()
    assert entered.locator("img").count() == 0


def test_the_history_of_a_node_comes_from_the_prometheus_that_scrapes_it(entered, fleet):
    name = next(iter(fleet.agents))
    entered.goto(f"{fleet.address}#/node/{name}")
    entered.get_by_role("heading", name="History", exact=True).wait_for()
    entered.get_by_role("combobox").select_option("1")
    chart = entered.get_by_role("img", name="Share of time in which a task waited")

    until(lambda: _has_value(entered, chart), "a value of the Prometheus")
    background = entered.get_by_role("img", name="CPU time of background work")
    assert background.locator("canvas").count() == 1
    assert grave(entered) == []


def _has_value(page, chart):
    page.reload()
    chart.or_(page.get_by_text("The Prometheus has nothing")).wait_for()
    return chart.count() and "%" in chart.get_attribute("aria-label")


@pytest.mark.parametrize("view", VIEWS)
def test_the_page_of_a_node_is_shown_for_reading_only(entered, fleet, view):
    name = next(iter(fleet.agents))
    open_view(entered, f"{fleet.address}node/{name}/#/{view}", VIEWS[view])

    assert entered.get_by_role("button", name="Request safe mode").count() == 0
    assert entered.get_by_role("button", name="Enter a token to act").count() == 0
    assert entered.get_by_role("heading", name=name).count() == 1
    assert entered.get_by_role("alert").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_the_page_of_a_node_behind_the_fleet_is_accessible_and_fits(entered, fleet, view, scheme):
    name = next(iter(fleet.agents))
    entered.emulate_media(color_scheme=scheme)
    open_view(entered, f"{fleet.address}node/{name}/#/{view}", VIEWS[view])

    assert grave(entered) == []
    entered.set_viewport_size({"width": 320, "height": 700})
    # Charts take the new width after the page.
    expect(entered.locator("html")).to_have_js_property("scrollWidth", 320)


def test_the_page_of_a_node_follows_its_agent(entered, fleet):
    name = next(iter(fleet.agents))
    open_view(entered, f"{fleet.address}node/{name}/", "Now")
    window = entered.locator(".facts dd").first
    before = window.inner_text()

    expect(window).not_to_have_text(before, use_inner_text=True)
    entered.get_by_role("link", name="All nodes").click()
    entered.get_by_role("heading", name="Nodes", exact=True).wait_for()


def test_a_link_to_a_node_leads_there_after_the_login(page, fleet):
    name = next(iter(fleet.agents))
    enter(page, f"{fleet.address}node/{name}/#/pods")

    page.get_by_role("link", name="shop", exact=True).wait_for()


def test_whoever_leaves_has_to_enter_again(entered, fleet):
    (cookie,) = entered.context.cookies()
    (key,) = entered.evaluate("Object.values(localStorage)")
    entered.get_by_role("button", name="Leave").click()
    entered.get_by_role("textbox", name="Token").wait_for()

    given = {"Cookie": f"{cookie['name']}={cookie['value']}", "temper-session": key}
    assert httpx2.get(f"{fleet.address}fleet/nodes", headers=given).status_code == 401


def test_an_agent_that_is_killed_is_away_since_then_and_the_others_answer(entered, fleet):
    killed, *others = fleet.agents
    node_page = entered.context.new_page()
    open_view(node_page, f"{fleet.address}node/{killed}/", "Now")
    fleet.agents[killed].kill()
    row = row_of(entered, killed)

    row.get_by_text("away", exact=True).wait_for()
    assert "does not answer" in row.inner_text()
    since = row.locator("td time").first.inner_text()
    node_page.get_by_role("status").filter(has_text=f"The agent is away since {since}").wait_for()
    for name in others:
        row_of(entered, name).get_by_text("answers", exact=True).wait_for()
    assert ", 1 away" in entered.get_by_role("status").inner_text()
    fleet.agents[killed].start()
    row.get_by_text("answers", exact=True).wait_for()
    node_page.get_by_role("status").filter(has_text="Only observing").wait_for()
