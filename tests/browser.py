"""A headless Chromium for tests that look at pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.patience import PATIENCE_S

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# Page.wait_for_function has no place here: it evaluates text in the page from its second look on,
# and our pages forbid that by their Content Security Policy.
expect.set_options(timeout=PATIENCE_S * 1000)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a Chromium of the PATH. Skip the test if there is none."""
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if path is None:
        pytest.skip("no Chromium in the PATH: scripts/install-browser installs one as root")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


def grave(page: Page) -> list[tuple[str, str]]:
    """Return what axe finds that is serious, and landmarks that share a name."""
    return [
        (violation["id"], violation["nodes"][0]["html"])
        for violation in Axe().run(page).response["violations"]
        if violation["impact"] in {"serious", "critical"} or violation["id"] == "landmark-unique"
    ]
