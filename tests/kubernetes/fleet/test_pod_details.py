"""What the page of a cluster shows of a pod in a real browser, from a real API server."""

import pytest
from playwright.sync_api import expect

from tests.browser import grave
from tests.kubernetes.fleet.test_fleet_page import enter
from tests.kubernetes.fleet.workloads import HOSTILE, SECRET, kubelet, web_pod

LINES = [f"2026-11-28T04:18:22Z {HOSTILE}", "2026-11-28T04:18:23Z ready"]


@pytest.fixture
def opened(page, fleet, tmp_path):
    """The page of a pod on the first node, whose agent is made to know it."""
    name, agent = next(iter(fleet.agents.items()))
    web = web_pod(fleet.cluster, name)
    seen = agent.read("observe?top=1000")
    about = {"namespace": "default", "pod": web}
    seen["pods"] = [{**seen["pods"][0], **about}]
    seen["threads"] = [{**seen["threads"][0], **about, "container": "app"}]
    page.route("**/observe?top=1000", lambda route: route.fulfill(json=seen))
    page.route("**/explain?*", lambda route: route.fulfill(json=None))
    with kubelet(fleet.cluster, name, tmp_path, LINES):
        enter(page, f"{fleet.address}node/{name}/#/pod/default/{web}")
        page.get_by_role("cell", name="BackOff").wait_for()
        yield page


def panel(page, title):
    return page.get_by_role("region", name=title, exact=True).first


def show(page, title):
    panel(page, title).get_by_role("button", name="Show").click()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_events_logs_revisions_and_manifest_are_shown(opened, scheme):
    opened.emulate_media(color_scheme=scheme)
    assert opened.get_by_text(f"Back-off pulling image {HOSTILE}").count() == 1
    for title in ("Logs", "What changed between revisions", "Manifest"):
        show(opened, title)
    log = panel(opened, "Logs").locator("pre")
    log.wait_for()
    manifest = panel(opened, "Manifest").locator("pre")
    manifest.wait_for()
    changed = panel(opened, "What changed between revisions")
    changed.get_by_role("cell", name="registry.example/web:2").wait_for()

    assert log.inner_text() == "\n".join(LINES)
    assert '"value": "(hidden)"' in manifest.inner_text()
    assert SECRET not in opened.content()
    assert opened.locator("img").count() == 0
    assert grave(opened) == []
    opened.set_viewport_size({"width": 320, "height": 700})
    expect(opened.locator("html")).to_have_js_property("scrollWidth", 320)


def test_nothing_but_events_is_read_until_it_is_asked_for(opened):
    asked = []
    opened.on("request", lambda request: "/fleet/pod/" in request.url and asked.append(request.url))
    show(opened, "Manifest")
    panel(opened, "Manifest").locator("pre").wait_for()

    (only,) = asked
    assert "/fleet/pod/manifest?" in only
