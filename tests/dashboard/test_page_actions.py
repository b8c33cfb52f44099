"""Actions of the page: they need a token, a confirmation, and are audited."""

import subprocess

import pytest

from tests.browser import grave
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


def test_a_trace_of_one_pod_is_asked_for_by_its_name(signed_in):
    asked = []

    def refuse(route):
        asked.append(route.request.post_data_json)
        route.fulfill(status=409, json={"error": "another capture runs"})

    signed_in.route("**/trace", refuse)
    signed_in.get_by_role("link", name="Traces").click()
    signed_in.get_by_role("button", name="Capture a trace").click()
    signed_in.get_by_role("combobox", name="Pod").select_option("shop")
    signed_in.get_by_role("dialog").get_by_role("button", name="Capture").click()
    signed_in.get_by_role("alert").filter(has_text="another capture runs").wait_for()

    assert asked == [{"seconds": 5, "pod": "shop"}]
    # Chromium logs each answer with status 409.
    assert all("409" in error for error in signed_in.errors)
    signed_in.errors.clear()


TUNED = """
schema_version = 1
id = "tuned"
[[thread_groups]]
name = "rest"
"""


def begin_trial(page, profile):
    page.get_by_role("link", name="Profiles").click()
    page.get_by_role("button", name="Begin a trial").click()
    page.get_by_label("Profile (TOML)").fill(profile)
    page.get_by_role("listbox", name="Pods").select_option("shop")
    page.get_by_role("dialog").get_by_role("button", name="Begin").click()


def test_a_trial_is_begun_and_ended_and_audited(signed_in, agent):
    begin_trial(signed_in, TUNED)
    end = signed_in.get_by_role("button", name="End", exact=True)
    end.wait_for()
    (standing,) = agent.read("trials")["trials"]
    end.click()
    signed_in.get_by_role("dialog").get_by_role("button", name="End the trial").click()
    signed_in.get_by_text("No profile is on trial.").wait_for()

    assert (standing["profile"], standing["pods"]) == ("tuned", ["shop"])
    assert agent.read("trials")["trials"] == []
    signed_in.get_by_role("link", name="Events").click()
    signed_in.get_by_label("Only actions").check()
    signed_in.get_by_role("cell", name="token ops").first.wait_for()


def test_a_profile_that_is_none_begins_nothing_and_the_reason_is_shown(signed_in, agent):
    begin_trial(signed_in, "not a profile")
    signed_in.get_by_role("alert").filter(has_text="profile").wait_for()

    assert agent.read("trials")["trials"] == []
    # Chromium logs each answer with status 400.
    assert all("400" in error for error in signed_in.errors)
    signed_in.errors.clear()


def reload_profiles(page):
    page.get_by_role("link", name="Profiles", exact=True).click()
    page.get_by_role("button", name="Reload the profiles").click()
    page.get_by_role("dialog").get_by_role("button", name="Reload", exact=True).click()


def test_profiles_are_reloaded_and_what_is_broken_is_named_and_audited(signed_in, agent):
    reload_profiles(signed_in)
    signed_in.get_by_text("profiles are loaded. None has changed.").wait_for()
    broken = agent.folder / "profiles" / "broken.toml"
    broken.write_text("id =")
    try:
        reload_profiles(signed_in)
        signed_in.get_by_role("alert").filter(has_text=str(broken)).wait_for()
    finally:
        broken.unlink()

    signed_in.get_by_role("link", name="Events").click()
    signed_in.get_by_label("Only actions").check()
    signed_in.get_by_role("cell", name="POST /profiles/reload").first.wait_for()


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


def test_an_agent_without_a_token_says_how_to_make_one(page, program, tmp_path):  # noqa: ARG001 - it has to run
    agent = DashboardAgent(tmp_path, has_token=False)
    agent.start()
    try:
        page.goto(agent.address)
        page.get_by_role("button", name="Enter a token to act").click()
        told = page.get_by_role("dialog", name="This agent has no token")
        told.wait_for()
        words = told.inner_text()
        serious = grave(page)
        told.get_by_role("button", name="Close").click()
        told.wait_for(state="detached")

        assert "no [server] token_file is set" in words
        assert "openssl rand -hex 32" in words
        assert 'token_file = "/etc/temper/token"' in words
        assert "agent.token.create=true" in words
        assert told.get_by_role("textbox").count() == 0
        assert serious == []
    finally:
        page.close()
        agent.stop()


def test_the_commands_for_a_token_make_one_that_acts(page, program, tmp_path):  # noqa: ARG001 - it has to run
    folder = tmp_path / "it's here"
    folder.mkdir()
    agent = DashboardAgent(folder)
    agent.start()
    token = folder / "token"
    token.unlink()
    try:
        page.goto(agent.address)
        page.get_by_role("button", name="Enter a token to act").click()
        commands = page.get_by_role("dialog").locator("pre").inner_text()
        page.get_by_role("button", name="Close").click()
        subprocess.run(["sh", "-ec", commands], check=True)
        enter(page, token.read_text())
        request_safe_mode(page, "test")
        page.get_by_role("button", name="Withdraw the request for safe mode").wait_for()

        assert token.stat().st_mode & 0o077 == 0
        assert list(agent.read("safe-mode")["requests"]) == ["dashboard-user"]
    finally:
        page.close()
        agent.stop()


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
