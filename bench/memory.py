"""Resident memory of an agent: alone, beside 1,000 threads, and with the pods of a full node.

    python bench/memory.py [--pods N] [--threads N] [--settle S]

Each case runs its own agent with every installed plugin. The figure is the kernel's
peak (``VmHWM``). Pods come from an API server in this process, and from a file. As root, if the
unified cgroup tree can be written, each pod has a cgroup with a process in it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from observe_tick import threads_running
from startup import podlist

UNIFIED = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
NODE = "worker-3"
MB = 1_000_000
AIMS_MB = {"1,000 threads": 48, "500 pods, API server": 64, "500 pods, file": 64}
PATIENCE_S = 60
AGENT = "import sys; sys.modules['greenlet'] = None; from temper_core.cli.entry import main; main()"
"""Runs ``temper``. structlog imports greenlet if it is there, which is so only for tests."""


class Pods(BaseHTTPRequestHandler):
    """Answers as an API server with one node's pods, which do not change."""

    protocol_version = "HTTP/1.1"
    answer = b"{}"

    def do_GET(self) -> None:
        """Return the list, or keep the watch open. There are no nodes."""
        if "watch=1" in self.path:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            time.sleep(PATIENCE_S * 10)
            return
        body = self.answer if "/pods" in self.path else b'{"metadata": {}, "items": []}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def api_server(pods: bytes, directory: Path) -> Iterator[str]:
    """Serve *pods*. Yield the settings of an agent that reads them."""
    handler = type("Handler", (Pods,), {"answer": pods})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kubeconfig = directory / "kubeconfig"
    named = {"name": "n"}
    kubeconfig.write_text(
        json.dumps(
            {
                "current-context": "n",
                "contexts": [{**named, "context": {"cluster": "n", "user": "n"}}],
                "clusters": [
                    {**named, "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
                ],
                "users": [{**named, "user": {}}],
            }
        )
    )
    try:
        yield (
            f'node = "{NODE}"\n[pods]\nsource = "kubernetes"\n[plugins.kubernetes]\n'
            f'kubeconfig = "{kubeconfig}"\nannotations = false\nevents = false\n'
        )
    finally:
        server.shutdown()


@contextmanager
def cgroups_of(uids: list[str]) -> Iterator[bool]:
    """Give each pod a cgroup with a process in it. Yield whether that is possible here."""
    root = next((path for path in UNIFIED if (path / "cgroup.procs").exists()), None)
    if root is None or os.geteuid() != 0:
        yield False
        return
    top = root / "kubepods" / "burstable"
    folders = [top / f"pod{uid}" / f"{number:064x}" for number, uid in enumerate(uids)]
    with ExitStack() as undo:
        undo.callback(_remove, top.parent, folders)
        for folder in folders:
            folder.mkdir(parents=True)
            sleeper = subprocess.Popen(["sleep", "infinity"])
            undo.callback(sleeper.wait)
            undo.callback(sleeper.kill)
            (folder / "cgroup.procs").write_text(str(sleeper.pid))
        yield True


def _remove(top: Path, folders: list[Path]) -> None:
    for folder in (*folders, *(folder.parent for folder in folders), top / "burstable", top):
        with suppress(OSError):
            folder.rmdir()


def peak_mb(directory: Path, settings: str, settle_s: float, is_ready: Callable[[], bool]) -> float:
    """Run an agent for *settle_s* seconds after it is ready. Return its peak."""
    path = directory / "agent.toml"
    path.write_text(
        f'{settings}[safe_mode]\nfile = "{directory}/safe-mode"\n'
        f'state = "{directory}/requests.json"\n'
        f'[server]\nlisten = "127.0.0.1:9199"\nsocket = "{directory}/agent.sock"\n'
    )
    command = [sys.executable, "-c", AGENT, "agent", "--observe-only", "--settings", str(path)]
    with (directory / "log").open("w") as log, subprocess.Popen(command, stderr=log) as agent:
        try:
            deadline = time.monotonic() + PATIENCE_S
            while not is_ready():
                if agent.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"bench: {(directory / 'log').read_text()[-2000:]}")
                time.sleep(0.5)
            end = time.monotonic() + settle_s
            while time.monotonic() < end:
                _scraped()
                time.sleep(5)
            status = Path(f"/proc/{agent.pid}/status").read_text()
        finally:
            agent.terminate()
    kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return round(int(kib) * 1024 / MB, 1)


def _scraped() -> str:
    try:
        with urllib.request.urlopen("http://127.0.0.1:9199/metrics", timeout=10) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def _pods_told() -> int:
    lines = _scraped().splitlines()
    counts = [line.rpartition(" ")[2] for line in lines if line.startswith("temper_tier_pods{")]
    return round(sum(map(float, counts)))


def measure(pods: int, threads: int, settle_s: float) -> dict[str, Any]:
    """Return the peak of each case, in MB, and its ratio to an agent alone."""
    text = podlist(pods)
    uids = [pod["metadata"]["uid"] for pod in json.loads(text)["items"]]
    peaks: dict[str, float] = {}

    def case(name: str, settings: str, least_pods: int = 0) -> None:
        def is_ready() -> bool:
            return "temper_" in _scraped() and _pods_told() >= least_pods

        peaks[name] = peak_mb(directory, settings, settle_s, is_ready)

    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        file = directory / "pods.json"
        file.write_text(text)
        case("alone, no plugins", "[plugin_host]\nallow = []\n")
        case("alone", "")
        with threads_running(threads, pause_s=1.0):
            case(f"{threads:,} threads", "")
        with cgroups_of(uids) as has_cgroups:
            least = pods // 2
            from_file = f'node = "{NODE}"\n[pods]\nsource = "file"\nfile = "{file}"\n'
            case(f"{pods} pods, file", from_file, least)
            with api_server(text.encode(), directory) as settings:
                case(f"{pods} pods, API server", settings, least)
    alone = peaks["alone"]
    rows = {
        name: {"peak_mb": peak, "ratio": round(peak / alone, 2), "aim_mb": AIMS_MB.get(name)}
        for name, peak in peaks.items()
    }
    return {"list_mb": round(len(text) / MB, 1), "pods_have_cgroups": has_cgroups, "cases": rows}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Peak resident memory of an agent.")
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1_000)
    parser.add_argument("--settle", type=float, default=20)
    options = parser.parse_args()
    print(json.dumps(measure(options.pods, options.threads, options.settle), indent=1))
