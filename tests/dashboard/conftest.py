import subprocess
import sys

import pytest

from tests.browser import chromium
from tests.dashboard.dashboard_agent import PROGRAM, DashboardAgent
from tests.patience import PATIENCE_S


@pytest.fixture(scope="module")
def program():
    with subprocess.Popen([sys.executable, "-c", PROGRAM]) as running:
        yield
        running.kill()


@pytest.fixture(scope="module")
def agent(program, tmp_path_factory):  # noqa: ARG001 - it has to run
    """Return an agent that observes this machine and the program."""
    folder = tmp_path_factory.mktemp("dashboard")
    (folder / "profiles").mkdir()
    agent = DashboardAgent(folder, f'[profiles]\ndirectory = "{folder}/profiles"')
    agent.start()
    yield agent
    agent.stop()


@pytest.fixture(scope="module")
def browser():
    """Return a browser. Its event loop runs in this thread, so it ends with the file."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser):
    """Return a page that must write no error to its console."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: line.type == "error" and errors.append(line.text))
    page.errors = errors
    yield page
    context.close()
    assert errors == []
