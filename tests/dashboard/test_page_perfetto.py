"""A trace of the page opened in Perfetto: in the real UI, and in pages with the faults of a tab."""

import http.server
import re
import threading
from contextlib import contextmanager
from functools import partial

import pytest
from playwright.sync_api import expect

from tests.dashboard.dashboard_agent import TOKEN, DashboardAgent, until
from tests.own_host import NO_OWN_HOSTS, has_own_hosts
from tests.tracer.trace.trace_processor import ui_folder

LOAD_MS = 240_000
TRACE = {
    "id": "made-1",
    "node": "n",
    "state": "finished",
    "selection": "node",
    "backend": "bpf",
    "began_at": 1.8e9,
    "seconds": 1.0,
    "events": 1,
    "bytes": 5,
    "lost": 0,
    "by": "ops",
    "kind": "capture",
}
CONTENT = b"trace"
LISTENER = """
<!doctype html><title>stand-in</title><script>
// As Perfetto documents it: PONG to the opener's PING once the document is complete, then a trace.
function heard(event) {
  if (event.source !== window.opener || document.readyState !== "complete") return;
  if (event.data === "PING") return event.source.postMessage("PONG", event.origin);
  window.removeEventListener("message", heard);
  const { buffer, title, fileName } = event.data.perfetto;
  const text = new TextDecoder().decode(buffer);
  document.body.textContent = [text, title, fileName, event.origin].join(" ");
}
window.addEventListener("message", heard);
</script><body></body>
"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_arguments):
        """Say nothing."""


@contextmanager
def served(folder):
    """Serve the files of *folder* at another origin than the agent's, and yield its address."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def perfetto():
    with served(ui_folder()) as address:
        yield address


@pytest.fixture(scope="module")
def agent(program, perfetto, tmp_path_factory):  # noqa: ARG001 - it has to run
    """Return an agent whose page may open traces in the real UI."""
    agent = DashboardAgent(
        tmp_path_factory.mktemp("perfetto"), f'[plugins.dashboard]\nperfetto = "{perfetto}"'
    )
    agent.start()
    yield agent
    agent.stop()


@pytest.fixture
def standing_in(page, tmp_path):
    """Return what opens the page with one made trace and *html* in place of Perfetto."""
    with served(tmp_path) as address:

        def at(agent, html=LISTENER):
            (tmp_path / "index.html").write_text(html)
            settings = {"actions": True, "perfetto": address}
            page.route("**/dashboard/settings", lambda route: route.fulfill(json=settings))
            page.route("**/traces", lambda route: route.fulfill(json={"traces": [TRACE]}))
            page.route("**/trace/made-1", lambda route: route.fulfill(body=CONTENT))
            sign_in(page, agent)
            return address

        yield at


def sign_in(page, agent):
    page.goto(f"{agent.address}#/traces")
    page.get_by_role("button", name="Enter a token to act").click()
    page.get_by_role("textbox", name="Token").fill(TOKEN)
    page.get_by_role("button", name="Use it").click()


def ask_to_open(page):
    page.get_by_role("button", name="Open in Perfetto").click()
    return page.get_by_role("dialog")


def confirmed(page):
    return ask_to_open(page).get_by_role("button", name="Open", exact=True)


def opened(page):
    button = confirmed(page)
    with page.expect_popup() as popup:
        button.click()
    return popup.value


@pytest.mark.skipif(not has_own_hosts(), reason=NO_OWN_HOSTS)
def test_a_captured_trace_opens_in_the_real_ui(page, agent, perfetto):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    sign_in(page, agent)
    page.get_by_role("button", name="Capture a trace").click()
    page.get_by_label("Seconds").fill("0.5")
    page.get_by_role("dialog").get_by_role("button", name="Capture").click()
    (trace,) = until(lambda: ended(agent.read("traces")["traces"]), "the end of the capture")
    if trace["state"] == "failed":
        pytest.skip(f"no capture is possible here: {trace['reason']}")

    tab = opened(page)
    tab.set_default_timeout(LOAD_MS)

    assert tab.url.startswith(perfetto)
    tab.get_by_text("CPU 0 Scheduling").first.wait_for()
    assert f"Temper {trace['node']} {trace['id']}" in tab.title() + tab.inner_text("body")
    assert page.get_by_role("alert").count() == 0
    assert {re.match(r"https?://[^/]+/", url).group() for url in asked} == {agent.address}


def ended(traces):
    return [trace for trace in traces if trace["state"] in {"finished", "failed"}]


def test_the_tab_gets_the_trace_its_name_and_nothing_before_a_click(page, agent, standing_in):
    address = standing_in(agent)
    dialog = ask_to_open(page)
    said = dialog.inner_text()
    tabs_before = len(page.context.pages)
    page.get_by_role("button", name="Cancel").click()

    tab = opened(page)
    tab.get_by_text("trace Temper n made-1 made-1.pftrace").wait_for()

    assert address in said
    assert "names of threads and pods" in said
    assert tabs_before == 1
    assert tab.inner_text("body").endswith(agent.address.rstrip("/"))
    assert "authorization" not in tab.content()


def test_a_tab_that_listens_late_gets_the_trace(page, agent, standing_in):
    late = LISTENER.replace(
        'window.addEventListener("message", heard);',
        'setTimeout(() => window.addEventListener("message", heard), 1500);',
    )
    standing_in(agent, late)

    opened(page).get_by_text("trace Temper n made-1").wait_for()


def test_a_tab_that_is_closed_before_it_answers_is_named(page, agent, standing_in):
    standing_in(agent, "<!doctype html><title>silent</title>")

    opened(page).close()

    page.get_by_role("alert").filter(has_text="was closed before it had the trace").wait_for()


def test_a_page_that_is_no_perfetto_is_named_and_gets_nothing(page, agent, standing_in):
    page.clock.install()
    silent = "<script>addEventListener('message', ({data}) => document.title += data)</script>"
    address = standing_in(agent, silent)
    tab = opened(page)
    expect(tab).to_have_title(re.compile("PING"))
    seen = tab.title()

    page.clock.fast_forward(61_000)

    problem = page.get_by_role("alert").filter(has_text="does not answer")
    problem.wait_for()
    assert address.rstrip("/") in problem.inner_text()
    assert seen.replace("PING", "") == ""
    assert tab.is_closed() or until(tab.is_closed, "the end of the tab")


def test_a_blocked_tab_is_named(page, agent, standing_in):
    standing_in(agent)
    page.evaluate("window.open = () => null")

    confirmed(page).click()

    page.get_by_role("alert").filter(has_text="The browser opened no tab").wait_for()


def test_a_trace_that_is_gone_is_named_and_the_tab_closed(page, agent, standing_in):
    standing_in(agent)
    page.unroute("**/trace/made-1")
    page.route(
        "**/trace/made-1", lambda route: route.fulfill(status=404, json={"error": "no such trace"})
    )

    tab = opened(page)

    page.get_by_role("alert").filter(has_text="no such trace").wait_for()
    until(tab.is_closed, "the end of the tab")
    # Chromium logs each answer with status 404.
    assert all("404" in error for error in page.errors)
    page.errors.clear()


def test_without_the_setting_the_page_offers_no_perfetto(page, agent):
    page.route("**/traces", lambda route: route.fulfill(json={"traces": [TRACE]}))
    page.route("**/dashboard/settings", lambda route: route.fulfill(json={"actions": True}))
    sign_in(page, agent)
    page.get_by_role("button", name="Download").wait_for()

    assert page.get_by_role("button", name="Open in Perfetto").count() == 0
    assert page.get_by_text("[plugins.dashboard] perfetto").count() == 1


def test_the_policy_of_the_page_is_as_strict_as_without_perfetto(page, agent):
    policy = page.goto(agent.address).headers["content-security-policy"]

    assert policy == (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "object-src 'none'"
    )
