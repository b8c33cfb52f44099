"""Actions of the page: they need a token, a confirmation, and are audited."""

import pytest

from tests.dashboard.dashboard_agent import TOKEN, DashboardAgent, until
from tests.own_host import NO_OWN_HOSTS, has_own_hosts


def enter(page, token):
    page.get_by_role("button", name="Enter a token to act").click()
    page.get_by_role("textbox", name="Token").fill(token)
    page.get_by_role("button", name="Use it").click()


@pytest.fixture
def signed_in(page, agent):
    page.goto(f"{agent.address}#/events")
    page.get_by_role("button", name="Enter a token to act").wait_for()
    enter(page, TOKEN)
    return page


def request_safe_mode(page, reason):
    page.get_by_role("button", name="Request safe mode").click()
    page.get_by_label("Reason").fill(reason)
    page.get_by_role("dialog").get_by_role("button", name="Request safe mode").click()


def test_nothing_can_be_done_without_a_token(page, agent):
    page.goto(agent.address)
    safe_mode = page.get_by_role("button", name="Request safe mode")
    safe_mode.wait_for()

    assert safe_mode.is_disabled()
    page.goto(f"{agent.address}#/traces")
    assert page.get_by_role("button", name="Capture a trace").is_disabled()


def test_a_wrong_token_does_nothing_and_says_so(page, agent):
    page.goto(agent.address)
    enter(page, "not-the-right-token")

    request_safe_mode(page, "test")
    page.get_by_role("alert").filter(has_text="token").wait_for()

    assert agent.read("safe-mode")["requests"] == {}
    # Chromium logs each answer with status 401.
    assert all("401" in error for error in page.errors)
    page.errors.clear()


def test_safe_mode_is_requested_and_withdrawn_and_audited(signed_in, agent):
    request_safe_mode(signed_in, "canary <b>looks</b> wrong")
    signed_in.get_by_role("button", name="Withdraw the request for safe mode").wait_for()
    standing = agent.read("safe-mode")["requests"]
    signed_in.get_by_role("button", name="Withdraw the request for safe mode").click()
    signed_in.get_by_role("dialog").get_by_role("button", name="Withdraw", exact=True).click()
    signed_in.get_by_role("button", name="Request safe mode").wait_for()

    assert standing["dashboard-user"]["reason"] == "canary <b>looks</b> wrong"
    assert agent.read("safe-mode")["requests"] == {}
    signed_in.get_by_label("Only actions").check()
    signed_in.get_by_role("cell", name="token ops").first.wait_for()


def test_escape_answers_no(signed_in, agent):
    signed_in.get_by_role("button", name="Request safe mode").click()
    signed_in.get_by_role("dialog").wait_for()
    signed_in.keyboard.press("Escape")
    signed_in.get_by_role("dialog").wait_for(state="detached")

    assert agent.read("safe-mode")["requests"] == {}


def test_a_forgotten_token_is_gone(signed_in):
    signed_in.get_by_role("button", name="Forget the token").click()

    assert signed_in.get_by_role("button", name="Request safe mode").is_disabled()
    assert signed_in.evaluate("[...Object.values(localStorage), document.cookie].join('')") == ""
    assert signed_in.evaluate("Object.values(sessionStorage).join('')") == ""


def test_a_token_expires(page, agent):
    page.clock.install()
    page.goto(agent.address)
    enter(page, TOKEN)
    page.get_by_role("button", name="Forget the token").wait_for()
    page.clock.fast_forward(15 * 60 * 1000 + 1000)

    page.get_by_role("button", name="Enter a token to act").wait_for()


@pytest.mark.skipif(not has_own_hosts(), reason=NO_OWN_HOSTS)
def test_a_trace_is_captured_downloaded_and_deleted(signed_in, agent):
    signed_in.get_by_role("link", name="Traces").click()
    signed_in.get_by_role("button", name="Capture a trace").click()
    signed_in.get_by_label("Seconds").fill("0.5")
    signed_in.get_by_role("dialog").get_by_role("button", name="Capture").click()
    finished = signed_in.get_by_role("button", name="Download")
    (trace,) = until(lambda: ended(agent.read("traces")["traces"]), "the end of the capture")
    if trace["state"] == "failed":
        pytest.skip(f"no capture is possible here: {trace['reason']}")
    finished.wait_for()

    with signed_in.expect_download() as download:
        finished.click()
    size = download.value.path().stat().st_size
    signed_in.get_by_role("button", name="Delete").click()
    signed_in.get_by_role("dialog").get_by_role("button", name="Delete").click()
    signed_in.get_by_text("There is no trace.").wait_for()

    assert size == trace["bytes"]
    assert agent.read("traces")["traces"] == []


def ended(traces):
    return [trace for trace in traces if trace["state"] in {"finished", "failed"}]


def test_a_page_without_actions_offers_none(page, program, tmp_path):  # noqa: ARG001 - it has to run
    agent = DashboardAgent(tmp_path, "[plugins.dashboard]\nactions = false")
    agent.start()
    try:
        page.goto(f"{agent.address}#/traces")
        page.get_by_role("heading", name="Traces").wait_for()
        page.get_by_text("There is no trace.").wait_for()

        assert page.get_by_role("button").count() == 0
    finally:
        page.close()
        agent.stop()
