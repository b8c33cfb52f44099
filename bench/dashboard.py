"""The dashboard's cost: in the agent, without and with an open page, and in the browser.

    python bench/dashboard.py [--seconds S] [--pods N] [--threads N]

The page of a large node is that of a real agent with its pods and threads multiplied: a proxy
before the agent enlarges the answer of ``/observe``. Needs a Chromium: ``scripts/install-browser``.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from memory import AGENT, MB
from playwright.sync_api import CDPSession, Page, sync_playwright

PORT = 9198
ADDRESS = f"http://127.0.0.1:{PORT}/"
PATIENCE_S = 60
SETTLE_S = 12
UPDATES = 10
WORKLOAD = '[[workloads]]\nname = "bench"\nprocess = "python*"\ntier = "high"\n'
COUNTED = """count => new Promise((done) => {
  const source = new EventSource("dashboard/snapshots");
  let seen = -1;  // the newest snapshot comes at once
  source.addEventListener("snapshot", () => {
    seen += 1;
    if (seen < count) return;
    source.close();
    setTimeout(() => done(seen), 1000);
  });
})"""
"""Waits for so many new snapshots, and for the page to show the last."""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
TICKS_A_S = os.sysconf("SC_CLK_TCK")


@contextmanager
def running_agent(directory: Path, settings: str) -> Iterator[int]:
    """Run an agent. Yield its process id when it has observed a window."""
    path = directory / "agent.toml"
    path.write_text(
        f'run_directory = "{directory}/run"\nstate_directory = "{directory}/state"\n'
        f'[server]\nlisten = "127.0.0.1:{PORT}"\n{settings}'
    )
    command = [sys.executable, "-c", AGENT, "agent", "--observe-only", "--settings", str(path)]
    with (directory / "log").open("w") as log, subprocess.Popen(command, stderr=log) as agent:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not _has_window():
                if agent.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"bench: {(directory / 'log').read_text()[-2000:]}")
                time.sleep(0.5)
            yield agent.pid
        finally:
            agent.terminate()


def _has_window() -> bool:
    try:
        with urllib.request.urlopen(f"{ADDRESS}observe", timeout=10) as answer:  # noqa: S310 - http
            return bool(json.load(answer)["window_s"])
    except (OSError, urllib.error.URLError):
        return False


def cost(pid: int, seconds: float) -> dict[str, float]:
    """Return the CPU that *pid* uses over some seconds, of it the plugin's calls, and the peak."""
    time.sleep(SETTLE_S)
    before, began = _cpu_s(pid), time.monotonic()
    time.sleep(seconds)
    ratio = (_cpu_s(pid) - before) / (time.monotonic() - began)
    status = Path(f"/proc/{pid}/status").read_text()
    kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return {
        "cpu_percent": round(ratio * 100, 3),
        "calls_percent": round(_calls_ratio() * 100, 4),
        "peak_mb": round(int(kib) * 1024 / MB, 1),
    }


def _calls_ratio() -> float:
    """Return the share of a core that the agent charged to the plugin in the last window."""
    with urllib.request.urlopen(f"{ADDRESS}observe", timeout=10) as answer:  # noqa: S310 - http
        lines = json.load(answer)["overhead"]["cpu_ratio"]
    return sum(lines.get(f"instrument_dashboard_{side}", 0.0) for side in ("user", "kernel"))


def _cpu_s(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / TICKS_A_S


def enlarged(document: dict[str, Any], pods: int, threads: int) -> dict[str, Any]:
    """Return an observation with its first pod and its threads repeated under other names."""
    pod, seen = document["pods"][0], document["threads"]
    names = [f"pod-{number}" for number in range(pods)]
    document["pods"] = [{**pod, "namespace": "bench", "pod": name, "uid": name} for name in names]
    document["threads"] = [
        {
            **seen[number % len(seen)],
            "tid": number + 1,
            "comm": f"worker-{number}",
            "namespace": "bench",
            "pod": names[number % pods],
            "cpu_used": number % 97 / 1000,
        }
        for number in range(threads)
    ]
    return document


@contextmanager
def large_node(pods: int, threads: int) -> Iterator[str]:
    """Serve the agent's answers with the observation of a large node. Yield the address."""

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                with urllib.request.urlopen(ADDRESS + self.path[1:], timeout=90) as answer:  # noqa: S310 - http
                    kind = answer.headers["content-type"]
                    if kind.startswith("text/event-stream"):
                        self._pass_on(answer, kind)
                        return
                    body = answer.read()
            except urllib.error.HTTPError as error:
                self.send_error(error.code)
                return
            if self.path.startswith("/observe"):
                body = json.dumps(enlarged(json.loads(body), pods, threads)).encode()
            self._begin(kind, len(body))
            with suppress(BrokenPipeError):
                self.wfile.write(body)

        def _begin(self, kind: str, size: int | None = None) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            if size is not None:
                self.send_header("Content-Length", str(size))
            self.end_headers()

        def _pass_on(self, answer: Any, kind: str) -> None:  # noqa: ANN401 - http.client's
            self._begin(kind)
            with suppress(BrokenPipeError):  # the browser has ended it
                for line in answer:
                    self.wfile.write(line)
                    self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()


def script_ms(session: CDPSession) -> float:
    """Return the time that the page's scripts have run since the session's beginning."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "ScriptDuration")) * 1e3


def in_browser(address: str, view: str, rows: str) -> dict[str, float]:
    """Open a view. Return its first paint, the time to its rows, and the script time an update."""
    with opened() as page:
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        began = time.perf_counter()
        page.goto(f"{address}#/{view}")
        page.locator(rows).first.wait_for()
        rows_ms = (time.perf_counter() - began) * 1e3
        paint_ms = page.evaluate(PAINT)
        page.wait_for_timeout(SETTLE_S * 1000)
        before = script_ms(session)
        looks = page.evaluate(COUNTED, UPDATES)
        update_ms = (script_ms(session) - before) / looks
    return {
        "first_paint_ms": round(paint_ms),
        "rows_ms": round(rows_ms),
        "script_ms_an_update": round(update_ms, 1),
    }


@contextmanager
def opened() -> Iterator[Page]:
    """Start a browser. Yield a page in it."""
    path = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if path is None:
        raise SystemExit("bench: there is no Chromium: scripts/install-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1400, "height": 900})
        browser.close()


def measure(seconds: float, pods: int, threads: int) -> dict[str, Any]:
    """Return the cost in the agent by case, and that in the browser by view."""
    others = sorted({e.name for e in entry_points(group="temper.plugins")} - {"dashboard"})
    agent, browser = {}, {}
    with (
        tempfile.TemporaryDirectory() as name,
        running_agent(
            Path(name), f"[plugin_host]\nallow = {json.dumps(others)}\n{WORKLOAD}"
        ) as pid,
    ):
        agent["without the plugin"] = cost(pid, seconds)
    with tempfile.TemporaryDirectory() as name, running_agent(Path(name), WORKLOAD) as pid:
        agent["nobody looks"] = cost(pid, seconds)
        with opened() as page:
            page.goto(ADDRESS)
            agent["one page is open"] = cost(pid, seconds)
    with tempfile.TemporaryDirectory() as name:
        quick = f"[observe]\nperiod_s = 1.0\nbudget_cpu_ratio = 1.0\n{WORKLOAD}"
        with running_agent(Path(name), quick), large_node(pods, threads) as address:
            for view, rows in (("", ".cpu"), ("pods", "tbody tr"), ("threads", "tbody tr")):
                browser[view or "node"] = in_browser(address, view, rows)
    return {"agent": agent, "browser": browser, "pods": pods, "threads": threads}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The dashboard's cost.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pods", type=int, default=250)
    parser.add_argument("--threads", type=int, default=5_000)
    options = parser.parse_args()
    print(json.dumps(measure(options.seconds, options.pods, options.threads), indent=1))
