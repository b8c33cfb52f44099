"""The page of an agent that enforces in a guest, in a real browser."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from attrs import frozen
from playwright.sync_api import Page

from tests.browser import grave
from tests.dashboard.conftest import browser, page
from tests.dashboard.dashboard_agent import TOKEN, free_port
from tests.dashboard.test_page import VIEWS
from tests.dashboard.test_page_actions import enter, request_safe_mode
from tests.kernel.guest import CHECKOUT, PYTHON, Walked, assert_held, walk_in_guest

__all__ = ["browser", "page"]

PROGRAM = Path(__file__).parent / "page"
PICTURES = CHECKOUT / "build/enforcing-page"
CPUS = 4
GUEST_S, ATTACHED_S = 3600, 1500.0
ANSWER_S = 300.0
"""The emulator is slow, and shares this machine with the browser."""
LOOK_S = 0.2
OPENED = {**VIEWS, "pod/shop/payments": VIEWS["pod//shop"]}
del OPENED["pod//shop"]
CLAIMS = {
    "attached": "the kernel runs the engine: enabled, its own operations, one attach more",
    "proven": "the agent says that it enforces, with the engine and the first generation",
    "stopped": "a stop ends with exit code 0 and the stock scheduler",
}


@frozen
class Guest:
    """A guest whose agent enforces, and serves its page at ``address``."""

    address: str
    share: Path
    walked: Future[Walked]

    def read(self, path: str) -> httpx2.Response:
        """Return what the agent answers."""
        return httpx2.get(f"{self.address}{path}", timeout=ANSWER_S).raise_for_status()

    def until(self, is_so: Callable[[], object], within_s: float, what: str) -> None:
        """Wait until *is_so*. Fail if the guest ends before that."""
        end = time.monotonic() + within_s
        while not is_so():
            if self.walked.done():
                pytest.fail(f"{what}: the guest has ended\n{self.walked.result().output}")
            assert time.monotonic() < end, what
            time.sleep(LOOK_S)

    def until_scheduler_is(self, state: str) -> None:
        """Wait until the kernel's scheduler is in *state*."""
        file = self.share / "state"
        self.until(lambda: file.read_text() == state, ATTACHED_S, f"the scheduler is {state}")

    def end(self) -> Walked:
        """Have the agent stop. Return what became of the guest."""
        (self.share / "end").write_text("")
        return self.walked.result()


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    share, port = tmp_path_factory.mktemp("page"), free_port()
    machine = ("--cpus", str(CPUS), "--timeout", str(GUEST_S), "--network", str(port))
    program = (*PYTHON, PROGRAM, "--port", str(port), "--token", TOKEN)
    with ThreadPoolExecutor(1) as pool:
        walked = pool.submit(walk_in_guest, share, machine, program)
        booted = Guest(f"http://127.0.0.1:{port}/", share, walked)
        try:
            booted.until((share / "ready").exists, ATTACHED_S, "the agent enforces")
            yield booted
        finally:
            booted.end()


@pytest.fixture
def shown(page: Page, guest: Guest) -> Page:
    """The page of the guest's agent."""
    page.set_default_timeout(ANSWER_S * 1000)
    page.goto(guest.address)
    page.get_by_role("status").filter(has_text="Enforcing").wait_for()
    return page


def open_view(page: Page, guest: Guest, view: str) -> None:
    page.goto(f"{guest.address}#/{view}")
    page.get_by_role("heading", name=OPENED[view], exact=True).wait_for()
    page.get_by_text("Reading …").first.wait_for(state="detached")


def test_the_node_is_shown_as_the_engine_runs_it(shown: Page, guest: Guest):
    owned = shown.get_by_text("Owned:").inner_text()
    engine = shown.locator(".facts").inner_text()
    seen = guest.read("observe").json()
    PICTURES.mkdir(parents=True, exist_ok=True)
    shown.screenshot(path=PICTURES / "node.png", full_page=True)

    owners = [layer["name"] for layer in seen["layers"] if layer["cpus"]]
    assert owners
    assert all(f"{name} " in owned for name in owners)
    assert seen["engine"] in engine
    assert "plan 1" in engine
    assert shown.locator(".cpu").count() == CPUS


def test_the_layers_of_the_plan_are_beside_those_of_the_engine(shown: Page, guest: Guest):
    open_view(shown, guest, "layers")
    planned = guest.read("plan").json()["layers"]
    table = shown.get_by_role("table", name="Layers in the order in which they match")
    rows = table.locator("tbody tr").all_inner_texts()
    shown.get_by_text("The bytes that the engine received").click()
    shown.locator("pre").filter(has_text="matches").wait_for()
    shown.screenshot(path=PICTURES / "layers.png", full_page=True)

    assert len(rows) == len(planned)
    assert all(layer["name"] in row for layer, row in zip(planned, rows, strict=True))
    assert shown.locator("pre").inner_text() == guest.read("config").text


def test_a_pod_is_shown_in_the_layer_of_its_tier(shown: Page, guest: Guest):
    open_view(shown, guest, "pod/shop/payments")
    why = guest.read("explain?pod=shop/payments").json()
    shown.screenshot(path=PICTURES / "pod.png", full_page=True)

    layers = {thread["layer"] for thread in why["threads"]}
    assert layers
    assert all(shown.get_by_text(layer, exact=True).count() > 0 for layer in layers)


@pytest.mark.parametrize("view", OPENED)
def test_a_view_of_an_enforcing_agent_is_accessible(shown: Page, guest: Guest, view: str):
    open_view(shown, guest, view)

    assert grave(shown) == []


def test_safe_mode_by_the_page_gives_the_node_to_the_stock_scheduler_and_back(
    shown: Page, guest: Guest
):
    guest.until_scheduler_is("enabled")
    enter(shown, TOKEN)
    request_safe_mode(shown, "a look at the stock scheduler")
    shown.get_by_role("status").filter(has_text="Safe mode: the stock scheduler runs").wait_for()
    guest.until_scheduler_is("disabled")
    shown.screenshot(path=PICTURES / "safe-mode.png")
    shown.get_by_role("button", name="Withdraw the request for safe mode").click()
    shown.get_by_role("dialog").get_by_role("button", name="Withdraw", exact=True).click()
    guest.until_scheduler_is("enabled")
    shown.get_by_role("status").filter(has_text="Enforcing").wait_for()

    acted = [event for event in guest.read("events").json()["events"] if event["outcome"]]
    assert [event["outcome"] for event in acted] == ["done", "done"]


def test_the_agent_enforced_and_stops_in_order(guest: Guest):
    walked = guest.end()

    for claim in CLAIMS:
        assert_held(claim, CLAIMS, walked)
