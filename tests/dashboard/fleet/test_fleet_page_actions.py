"""Actions on the page of a cluster in a real browser, with two real agents of this machine.

The API server, which lists their pods, is made. tests/kubernetes/fleet has the real one.
"""

import signal
import subprocess
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import urlsplit

import pytest

from tests.browser import grave
from tests.dashboard.dashboard_agent import TEMPER, free_port, until
from tests.dashboard.dashboard_agent import TOKEN as OF_AGENTS
from tests.dashboard.fleet.made_fleet import NODES, PODS, TOKEN
from tests.dashboard.fleet.test_fleet_actions import agents, pod_at
from tests.dashboard.test_page_actions import enter
from tests.kube_client.made_server import MadeServer, listed, node
from tests.patience import PATIENCE_S

__all__ = ["agents"]

CONFIG = """
clusters: [{{name: c, cluster: {{server: '{server}'}}}}]
users: []
contexts: [{{name: x, context: {{cluster: c}}}}]
current-context: x
"""


@pytest.fixture(scope="module")
def address(agents, tmp_path_factory):
    """The address of a server with actions, as a process."""
    folder, port = tmp_path_factory.mktemp("server"), free_port()
    api = MadeServer()
    pods = [pod_at(name, each.host, each.port) for name, each in agents.items()]
    api.answers[PODS] = listed(*pods)
    api.answers[NODES] = listed(node("n1"), node("n2"))
    token, config = folder / "token", folder / "kubeconfig"
    token.write_text(TOKEN)
    config.write_text(CONFIG.format(server=api.url))
    options = {
        "--listen": f"127.0.0.1:{port}",
        "--token-file": token,
        "--kubeconfig": config,
        "--every": 1,
        "--reach": "pod",
    }
    given = [str(word) for pair in options.items() for word in pair]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([TEMPER, "dashboard", "serve", *given, "--actions"], stderr=log)
    address = f"http://127.0.0.1:{port}/"
    until(lambda: answers(address), "the server answers")
    yield address
    server.send_signal(signal.SIGTERM)
    assert server.wait(PATIENCE_S) == 0, (folder / "log").read_text()
    api.close()


def answers(address):
    try:
        with urllib.request.urlopen(f"{address}healthz", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, ConnectionError):
        return False


def log_in(page):
    page.get_by_role("textbox", name="Token").fill(TOKEN)
    page.get_by_role("button", name="Enter").click()


@pytest.fixture
def entered(page, address):
    """The page after the login, with a token of the agents."""
    page.goto(address)
    log_in(page)
    page.get_by_role("heading", name="Nodes", exact=True).wait_for()
    enter(page, OF_AGENTS)
    return page


class Neighbour(BaseHTTPRequestHandler):
    """Another server of the host, which keeps the cookies that browsers send it."""

    cookies: ClassVar[set[str]] = set()

    def do_GET(self):
        self.cookies.add(self.headers.get("cookie", ""))
        self.send_response(200)
        self.end_headers()


@pytest.fixture
def neighbour():
    """The address of another server of the same host."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Neighbour) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_server_at_another_port_gets_no_session(entered, address, neighbour):
    entered.context.new_page().goto(neighbour)
    (cookie,) = filter(None, Neighbour.cookies)
    request = urllib.request.Request(f"{address}fleet/nodes", headers={"cookie": cookie})

    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(request)


def test_a_tab_of_its_own_shows_the_session_and_its_end(entered, address):
    other = entered.context.new_page()
    other.goto(f"{address}node/n1/")
    other.get_by_role("heading", name="Now", exact=True).wait_for()
    entered.get_by_role("button", name="Leave").click()

    other.get_by_role("textbox", name="Token").wait_for()
    entered.get_by_role("textbox", name="Token").wait_for()
    # Chromium logs each answer with status 401.
    assert all("401" in error for error in entered.errors)
    entered.errors.clear()


def test_a_cookie_without_its_key_leads_to_the_login_and_stays(entered):
    """The cookie may be of another cluster's page behind the same proxy."""
    kept = entered.context.cookies()
    entered.evaluate("localStorage.clear()")
    entered.reload()

    entered.get_by_role("textbox", name="Token").wait_for()
    assert entered.context.cookies() == kept
    assert all("401" in error for error in entered.errors)
    entered.errors.clear()


@pytest.mark.parametrize("path", ["/", "/node/"])
def test_a_cookie_of_another_server_leads_to_the_login_and_past_it(page, address, path):
    """The page cannot delete one of another path."""
    name = f"temper_session_{urlsplit(address).port}"
    cookie = {"name": name, "value": "foreign", "domain": "127.0.0.1", "path": path}
    page.context.add_cookies([cookie])
    page.goto(f"{address}node/n1/#/events")
    log_in(page)

    page.get_by_role("heading", name="Events", exact=True).wait_for()
    assert page.url == f"{address}node/n1/#/events"
    assert all("401" in error for error in page.errors)
    page.errors.clear()


def test_a_login_whose_cookie_the_browser_does_not_keep_says_so(page, address):
    def without_cookie(route):
        answer = route.fetch()
        page.context.clear_cookies()
        route.fulfill(status=answer.status, json=answer.json(), headers={})

    page.route("**/login", without_cookie)
    page.goto(address)
    log_in(page)

    page.get_by_text("The browser keeps no cookie of this page").wait_for()
    assert all("401" in error for error in page.errors)
    page.errors.clear()


def test_the_source_of_a_panel_is_shown_as_text(entered):
    entered.get_by_role("link", name="/fleet/nodes").first.click()

    entered.get_by_text('"cluster"').wait_for()


def answered(page):
    return page.get_by_role("list", name="What the agents answered").get_by_role("listitem")


def test_profiles_of_a_selection_are_reloaded_after_a_question(entered, agents):
    broken = agents["n2"].folder / "profiles" / "broken.toml"
    broken.write_text("id =")
    for name in agents:
        entered.get_by_role("checkbox", name=f"Choose {name}").check()
    entered.get_by_role("button", name="Reload the profiles of 2 nodes").click()
    dialog = entered.get_by_role("dialog", name="Reload the profiles of 2 nodes?")
    named, serious = dialog.locator(".names").inner_text(), grave(entered)
    dialog.get_by_role("button", name="Reload", exact=True).click()
    answered(entered).filter(has_text=f"not loaded: {broken}").wait_for()
    broken.unlink()

    assert (named, serious) == ("n1, n2", [])
    assert answered(entered).count() == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_trace_of_a_node_is_captured_after_a_question_and_seen_there(
    entered, address, agents, scheme
):
    entered.emulate_media(color_scheme=scheme)
    entered.set_viewport_size({"width": 400, "height": 800})
    before = len(agents["n1"].read("traces")["traces"])
    entered.goto(f"{address}#/node/n1")
    entered.get_by_role("button", name="Capture a trace of n1").click()
    dialog = entered.get_by_role("dialog", name="Capture a trace of one node?")
    dialog.get_by_role("option", name="shop").wait_for(state="attached")
    serious = grave(entered)
    dialog.get_by_role("button", name="Cancel").click()
    dialog.wait_for(state="detached")
    cancelled = len(agents["n1"].read("traces")["traces"])
    entered.get_by_role("button", name="Capture a trace of n1").click()
    dialog.get_by_label("Seconds").fill("0.3")
    dialog.get_by_role("button", name="Capture", exact=True).click()
    answered(entered).filter(has_text="has begun").wait_for()
    traces = agents["n1"].read("traces")["traces"]
    entered.get_by_role("link", name="The traces of n1").click()
    entered.get_by_role("heading", name="Traces", exact=True).wait_for()
    entered.get_by_role("cell", name="token ops").first.wait_for()

    assert (serious, cancelled) == ([], before)
    assert len(traces) == before + 1
    assert {each["by"] for each in traces} == {"token ops"}
    assert agents["n2"].read("traces")["traces"] == []
    assert entered.evaluate("document.documentElement.scrollWidth") == 400


def test_nothing_is_offered_without_a_token_of_the_agents(entered, address):
    entered.get_by_role("button", name="Forget the token").click()
    entered.goto(f"{address}#/node/n1")
    capture = entered.get_by_role("button", name="Capture a trace of n1")
    capture.wait_for()

    assert capture.is_disabled()
    assert entered.get_by_role("button", name="Reload the profiles of n1").is_disabled()
