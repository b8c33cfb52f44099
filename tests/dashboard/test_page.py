"""The page in a real browser, on a real agent."""

import pytest
from playwright.sync_api import expect

from tests.browser import grave
from tests.dashboard.dashboard_agent import HOSTILE_NAME, DashboardAgent, until

VIEWS = {
    "": "Now",
    "layers": "Layers: planned and real",
    "pods": "Pods",
    "pod//shop": "Why it is there",
    "threads": "Busiest threads",
    "lint": "Broken promises",
    "events": "Events",
    "traces": "Traces",
    "rightsizing": "Recommended requests and limits",
    "power": "Power",
    "profiles": "Profiles of pods",
    "training": "Results of trainings",
    "plugins": "Plugins",
}
FIGURES = {
    "at": [1.8e9, 1.8e9 + 5],
    "cpu_used": [1.0, 2.0],
    "pods_cpu_used": [0.5, 0.6],
    "cpu_pressure": [0.1, 0.2],
    "violations": [0, 0],
    "overhead": [0.01, 0.02],
}


BROKEN_PROMISE = {
    "id": "1",
    "invariant": "smt_collision",
    "severity": "error",
    "subject": "shop",
    "message": "a sibling of its core runs a thread of another tier",
    "evidence": {"cpu": 3},
    "fix": "Request whole cores, or give the pod the tier critical.",
    "since": 1.8e9,
    "age_s": 60.0,
    "plugin": "linter",
}
CUT_TABLES = """
    () => [...document.querySelectorAll(".scroll")]
      .filter((place) => place.scrollWidth > place.clientWidth)
      .map((place) => place.getAttribute("aria-label"))
"""


def open_view(page, agent, view, heading=None):
    page.goto(f"{agent.address}#/{view}")
    page.get_by_role("heading", name=heading or VIEWS[view], exact=True).wait_for()
    page.get_by_text("Reading …").first.wait_for(state="detached")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_opens_by_its_link_and_is_accessible(page, agent, view, scheme):
    page.emulate_media(color_scheme=scheme)
    open_view(page, agent, view)

    assert grave(page) == []


def test_every_view_is_in_the_list_and_names_its_source(page, agent):
    open_view(page, agent, "")
    links = page.get_by_role("navigation").get_by_role("link")

    addresses = {
        address.removeprefix("#/")
        for address in (link.get_attribute("href") for link in links.all())
    }

    served = agent.read("openapi.json")["paths"]
    assert addresses == {view for view in VIEWS if not view.startswith("pod/")}
    for view in addresses:
        open_view(page, agent, view)
        sources = page.locator(".source a")
        assert sources.count() > 0, view
        for source in sources.all():
            path, _, _query = source.get_attribute("href").partition("?")
            assert f"/{path}" in served, view


def test_the_node_is_shown_as_the_agent_observes_it(page, agent):
    open_view(page, agent, "")
    seen = agent.read("observe")

    assert page.get_by_role("status").inner_text().startswith("Only observing")
    assert page.locator(".cpu").count() == seen["machine"]["cpus"]
    assert page.get_by_text(f"{seen['machine']['cpus']} CPUs", exact=True).count() == 1


def test_threads_of_a_pod_are_shown_by_name_whatever_it_contains(page, agent):
    open_view(page, agent, "pods")
    page.get_by_role("link", name="shop", exact=True).click()
    page.get_by_role("cell", name="worker-1", exact=True).wait_for()
    page.get_by_text("workload rule 'shop'").first.wait_for()

    assert page.get_by_role("cell", name=HOSTILE_NAME, exact=True).count() == 1
    assert page.locator("img").count() == 0


def test_a_pod_that_is_not_there_is_named(page, agent):
    page.goto(f"{agent.address}#/pod/no%2Fwhere/%3Cb%3E")

    page.get_by_role("alert").filter(has_text="The pod no/where/<b> is not on this node").wait_for()


@pytest.mark.parametrize("late", ["observe", "rightsize", "explain"])
def test_the_parts_of_a_pod_keep_their_order_whichever_answer_is_late(page, agent, late):
    open_view(page, agent, "threads")

    def answer_late(route):
        page.wait_for_timeout(700)
        route.continue_()

    page.route(f"**/{late}?*", answer_late)
    page.evaluate("location.hash = '#/pod//shop'")
    for heading in ("Why it is there", "Threads", "Recommended requests and limits"):
        page.get_by_role("heading", name=heading, exact=True).wait_for()

    headings = page.locator("main h2").all_inner_texts()
    page.unroute_all(behavior="ignoreErrors")
    assert headings[0] == "shop"
    assert headings[1] == "Why it is there"
    assert headings.index("Threads") < headings.index("Recommended requests and limits")


@pytest.mark.parametrize("view", ["nowhere/%E0%A4%A", "pod", "pod/no-name"])
def test_an_unknown_view_is_the_node(page, agent, view):
    open_view(page, agent, view, "Now")


def test_a_table_is_sorted_and_filtered_by_keyboard(page, agent):
    open_view(page, agent, "threads")
    names = page.locator("tbody tr td:first-child")
    page.get_by_label("Filter").fill("worker-")
    expect(names).to_have_count(2)

    page.get_by_role("button", name="Thread", exact=True).focus()
    page.keyboard.press("Enter")
    ascending = names.all_inner_texts()
    page.keyboard.press("Enter")
    descending = names.all_inner_texts()

    assert ascending == ["worker-1", "worker-2"]
    assert descending == ["worker-2", "worker-1"]


def test_the_page_follows_the_agent(page, agent):
    open_view(page, agent, "")
    window = page.locator(".facts dd").first
    before = window.inner_text()

    expect(window).not_to_have_text(before, use_inner_text=True)


def test_an_agent_that_stops_is_named_and_one_that_is_back_is_followed(
    browser,
    program,  # noqa: ARG001 - it has to run
    tmp_path,
):
    agent = DashboardAgent(tmp_path)
    agent.start()
    page = browser.new_page()
    try:
        page.goto(agent.address)
        page.get_by_role("status").filter(has_text="Only observing").wait_for()
        agent.stop()
        page.get_by_role("status").filter(has_text="The agent does not answer").wait_for()
        agent.start()
        page.get_by_role("status").filter(has_text="Only observing").wait_for()
    finally:
        page.close()
        agent.stop()


def test_an_agent_slower_than_its_looks_is_still_followed(page, agent):
    page.add_init_script("""
        const answered = window.fetch;
        window.fetch = async (...request) => {
          await new Promise((resolve) => setTimeout(resolve, 2500));
          return answered(...request);
        };
    """)
    page.goto(agent.address)
    window = page.locator(".facts dd").first
    before = window.inner_text()

    expect(window).not_to_have_text(before, use_inner_text=True)


def test_hidden_tabs_leave_their_connections_to_the_one_that_is_shown(browser, agent):
    context = browser.new_context()
    context.add_init_script("Object.defineProperty(document, 'hidden', {get: () => window.isAway})")
    try:
        for _ in range(6):
            page = context.new_page()
            page.goto(agent.address)
            page.get_by_role("status").filter(has_text="Only observing").wait_for()
            page.evaluate("""
                window.isAway = true;
                document.dispatchEvent(new Event("visibilitychange"));
            """)
        shown = context.new_page()
        shown.goto(agent.address)
        shown.get_by_role("status").filter(has_text="Only observing").wait_for()
    finally:
        context.close()


def test_without_a_stream_the_page_asks(page, agent):
    page.route("**/dashboard/snapshots", lambda route: route.fulfill(status=503))
    open_view(page, agent, "")
    window = page.locator(".facts dd").first
    before = window.inner_text()

    expect(window).not_to_have_text(before, use_inner_text=True)

    assert page.get_by_role("status").inner_text().startswith("Only observing")
    page.goto("about:blank")
    # Chromium logs each answer with status 503.
    assert all("503" in error for error in page.errors)
    page.errors.clear()


@pytest.mark.parametrize("missing", ["machine", "pressure", "threads", "violations"])
def test_an_answer_that_cannot_be_shown_is_named_until_the_next_that_can(page, agent, missing):
    answer = agent.read("observe")
    page.route("**/observe", lambda route: route.fulfill(json={**answer, missing: None}))
    page.goto(agent.address)
    page.get_by_role("alert").filter(has_text="This page cannot show").wait_for()

    page.unroute("**/observe")

    page.get_by_role("heading", name="CPUs by core").wait_for()
    assert page.get_by_role("alert").count() == 0


@pytest.mark.parametrize("mode", ["constructor", "__proto__", "newer", 7, None])
def test_a_mode_that_the_page_does_not_know_breaks_nothing(page, agent, mode):
    answer = {**agent.read("observe"), "mode": mode}
    page.route("**/dashboard/snapshots", lambda route: route.fulfill(status=503))
    page.route("**/observe", lambda route: route.fulfill(json=answer))
    page.goto(agent.address)

    page.get_by_role("heading", name="CPUs by core").wait_for()
    assert page.get_by_role("status").inner_text().startswith("Waiting for the first observation")
    page.goto("about:blank")
    assert all("503" in error for error in page.errors)
    page.errors.clear()


@pytest.mark.parametrize("field", ["node", "detail"])
def test_an_object_in_the_form_of_a_node_of_the_page_makes_no_element(page, agent, field):
    markup = {"__html": "<form class='foreign'></form>"}
    node = {"__b": 1, "type": "div", "props": {"dangerouslySetInnerHTML": markup}}
    answer = {**agent.read("observe"), field: node, "defects": [node]}
    page.route("**/dashboard/snapshots", lambda route: route.fulfill(status=503))
    page.route("**/observe", lambda route: route.fulfill(json=answer))
    page.goto(agent.address)

    page.get_by_role("heading", name="CPUs by core").wait_for()

    assert page.locator(".foreign").count() == 0
    page.goto("about:blank")
    assert all("503" in error for error in page.errors)
    page.errors.clear()


def test_an_answer_of_nothing_is_named(page, agent):
    page.route(
        "**/observe", lambda route: route.fulfill(body="null", content_type="application/json")
    )
    page.goto(agent.address)

    page.get_by_text("The agent has nothing to show yet.").first.wait_for()
    expect(page.locator("body")).not_to_contain_text("Reading …", use_inner_text=True)


def test_checks_are_sorted_by_severity(page, agent):
    states = ("ok", "warning", "failed", "unknown")
    rows = [
        {"plugin": "p", "name": f"is {state}", "state": state, "detail": "", "remedy": ""}
        for state in states
    ]
    page.route("**/checks", lambda route: route.fulfill(json={"checks": rows}))
    open_view(page, agent, "")
    table = page.get_by_role("region", name="Checks of plugins").get_by_role("table")

    shown = table.locator("tbody td:first-child").all_inner_texts()

    assert shown == ["failed", "unknown", "warning", "ok"]


def test_what_is_not_judged_is_apart_from_what_is_kept(page, agent):
    document = agent.read("violations")
    open_view(page, agent, "lint")
    unjudged = {each["invariant"] for each in document["unjudged"]}
    kept = page.get_by_role("region", name="Kept: ")
    apart = page.get_by_role("region", name=f"Not judged: {len(unjudged)}", exact=True)

    assert "smt_collision" in unjudged
    assert set(apart.locator("li code").all_inner_texts()) == unjudged
    assert unjudged.isdisjoint(kept.locator("li code").all_inner_texts())
    assert apart.get_by_text("the node does not enforce: observe_only").count() == 1


def test_identified_and_realized_savings_are_apart(page, agent):
    row = {
        "namespace": "shop",
        "pod": "web",
        "container": "app",
        "verdict": "shared",
        "hot_threads": [],
        "reasons": ["enough"],
        "confidence": "high",
        "learned_s": 3600,
        "current": {"cpu_request_millis": 3000, "memory_request_bytes": 3 << 30},
        "recommended": {"cpu_request_millis": 1000, "memory_request_bytes": 1 << 30},
        "used": {"reclaimed_core_s": 7200, "freed_core_s": 1800},
    }
    unset = {**row, "pod": "new", "current": {}, "used": {}}
    answer = {
        "window_s": 21600,
        "price_settings": {"core_hour": 0.05, "gib_hour": 0.005},
        "notes": [],
        "containers": [row, unset],
    }
    page.route("**/rightsize?*", lambda route: route.fulfill(json=answer))
    open_view(page, agent, "rightsizing")
    identified = page.get_by_role("region", name="Identified savings: an estimate").inner_text()
    realized = page.get_by_role("region", name="Realized savings: as measured").inner_text()

    assert "2.00 cores" in identified
    assert "2.0 GiB" in identified
    assert "80.30" in identified
    assert "2.00 core-hours" in realized
    assert "0.50 core-hours" in realized


def test_what_needs_more_rights_is_named_with_commands(page, agent):
    answer = agent.read("observe?top=1000")
    answer["pods"] = [{**answer["pods"][0], "namespace": "shop", "pod": "web-1"}]
    page.route("**/observe?top=1000", lambda route: route.fulfill(json=answer))
    page.route("**/explain?*", lambda route: route.fulfill(status=404, json={"error": "no pod"}))
    page.goto(f"{agent.address}#/pod/shop/web-1")

    page.get_by_text("kubectl -n shop logs web-1 --all-containers").wait_for()
    page.get_by_text("kubectl -n shop events --for pod/web-1").wait_for()
    page.goto("about:blank")  # the page asks no more
    # Chromium logs each answer with status 404.
    assert all("404" in error for error in page.errors)
    page.errors.clear()


def test_long_text_keeps_a_readable_width_in_a_narrow_window(page, agent):
    page.set_viewport_size({"width": 320, "height": 700})
    open_view(page, agent, "")
    remedy = page.get_by_role("region", name="Checks of plugins").locator("td.long").first

    assert remedy.bounding_box()["width"] >= 200


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_row_shows_all_of_its_cells_in_a_narrow_window(page, agent, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 400, "height": 800})
    broken = {**agent.read("violations"), "violations": [BROKEN_PROMISE]}
    page.route("**/violations", lambda route: route.fulfill(json=broken))

    cut = {}
    for view in VIEWS:
        open_view(page, agent, view)
        cut[view] = page.evaluate(CUT_TABLES)

    assert cut == {view: [] for view in VIEWS}
    open_view(page, agent, "lint")
    remedy = page.get_by_role("cell").filter(has_text=BROKEN_PROMISE["fix"])
    label = "getComputedStyle(cell, '::before').content"
    assert remedy.evaluate(f"cell => {label}") == '"What to do: " / ""'
    assert remedy.bounding_box()["width"] > 300
    assert grave(page) == []


def test_a_table_is_sorted_in_a_narrow_window_too(page, agent):
    page.set_viewport_size({"width": 400, "height": 800})
    open_view(page, agent, "threads")
    page.get_by_label("Filter").fill("worker-")
    until(lambda: page.locator("tbody tr").count() == 2, "two threads are left")

    page.get_by_role("columnheader", name="Thread").get_by_role("button").click()
    page.get_by_role("columnheader", name="Thread").get_by_role("button").click()

    names = page.get_by_role("row").get_by_role("cell", name="worker-")
    assert names.all_inner_texts() == ["worker-2", "worker-1"]


def test_a_name_that_turns_the_text_does_not_turn_the_number_beside_it(page, agent):
    answer = agent.read("observe")
    answer["threads"] = [{**answer["threads"][0], "comm": "\u202eworker", "cpu_used": 0.08}]
    page.route("**/observe", lambda route: route.fulfill(json=answer))
    open_view(page, agent, "")
    isolated = page.locator(".cpu li bdi")

    assert isolated.inner_text() == "\u202eworker"


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_fits_into_a_narrow_window(page, agent, view):
    page.set_viewport_size({"width": 320, "height": 700})
    if not view:
        page.route("**/dashboard/history*", lambda route: route.fulfill(json=FIGURES))
    open_view(page, agent, view)

    assert page.evaluate("document.documentElement.scrollWidth") == 320
