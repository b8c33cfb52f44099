import pytest

from tests.browser import chromium
from tests.kubernetes.fleet.yard import fleet, prometheus_of_agents, rights, three_agents
from tests.patience import PATIENCE_S

__all__ = ["fleet", "prometheus_of_agents", "rights", "three_agents"]


@pytest.fixture(scope="module")
def browser():
    """Return a browser. Its event loop runs in this thread, so it ends with the file."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser):
    """Return a page that must write no error to its console."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda line: line.type == "error" and errors.append(line.text))
    page.errors = errors
    yield page
    context.close()
    assert errors == []
