"""The cost of the page of a cluster: memory and CPU time of its server with many agents.

    python bench/fleet_page.py [--nodes N] [--pods N]

The API server and the agents behind it are made, and run in this process.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx2

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
TEMPER = str(Path(sys.executable).with_name("temper"))
TOKEN = "0123456789abcdef"  # noqa: S105 - of a server that only this program asks
AGENTS = "/api/v1/namespaces/temper/pods"
ROUNDS = 5
SETTLE_S = 3.0
TICKS = 100
POD = {
    "namespace": "shop",
    "tier": "high",
    "profile": "web",
    "cpu_used": 0.5,
    "run_delay": 0.1,
    "throttled_ratio": 0.0,
    "memory_bytes": 100_000_000,
    "threads": 20,
}


def main() -> None:
    """Print the figures as a line of JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=1000)
    options.add_argument("--pods", type=int, default=100)
    given = options.parse_args()
    from tests.kube_client.made_server import MadeServer  # noqa: PLC0415 - found by the path above

    made = MadeServer()
    try:
        fill(made, given.nodes, given.pods)
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measured(made.url, Path(folder), given.nodes)))
    finally:
        made.close()


def fill(made: Any, nodes: int, pods: int) -> None:  # noqa: ANN401 - tests are not typed
    """Give the made API server *nodes* with an agent each that tells of *pods*."""
    from tests.kube_client.made_server import agent, listed, node  # noqa: PLC0415

    names = [f"n{number:05}" for number in range(nodes)]
    rows = [{**POD, "pod": f"web-7c9f-{number}"} for number in range(pods)]
    observed = {"mode": "enforcing", "machine": {"cpus": 64}, "violations": [], "pods": rows}
    made.answers[AGENTS] = listed(*map(agent, names))
    made.answers["/api/v1/nodes"] = listed(*map(node, names))
    for name in names:
        made.answers[f"{AGENTS}/temper-agent-{name}:9100/proxy/observe"] = observed


def measured(url: str, folder: Path, nodes: int) -> dict[str, float]:
    """Run the server against the API server at *url*. Return its figures."""
    server, address = started(url, folder)
    try:
        time.sleep(SETTLE_S)
        started_s = cpu_s(server.pid)
        time.sleep(SETTLE_S)
        idle_mb, before_s = memory_mb(server.pid), cpu_s(server.pid)
        with httpx2.Client(base_url=address, timeout=300, trust_env=False) as client:
            begun_session = client.post("/login", json={"token": TOKEN}).raise_for_status()
            client.headers["temper-session"] = begun_session.json()["key"]
            began = time.monotonic()
            found = len(client.get("/fleet/nodes").json()["nodes"])
            first_s, cpu = time.monotonic() - began, cpu_s(server.pid) - before_s
            assert found == nodes, found  # noqa: S101 - a measurement of less would mislead
            for _ in range(ROUNDS):
                time.sleep(SETTLE_S)
                client.get("/fleet/nodes")
        return {
            "idle_mb": idle_mb,
            "idle_cpu_s": round(before_s - started_s, 2),
            "mb": memory_mb(server.pid),
            "first_round_s": round(first_s, 2),
            "first_round_cpu_s": round(cpu, 2),
        }
    finally:
        server.terminate()
        server.wait()


def started(url: str, folder: Path) -> "tuple[subprocess.Popen[bytes], str]":
    """Start the server, and return it with its address."""
    from tests.dashboard.dashboard_agent import free_port  # noqa: PLC0415

    (folder / "token").write_text(TOKEN)
    kubeconfig = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
        "clusters": [{"name": "it", "cluster": {"server": url}}],
        "users": [{"name": "me", "user": {}}],
    }
    (folder / "kubeconfig").write_text(json.dumps(kubeconfig))
    place = f"127.0.0.1:{free_port()}"
    words = ["--listen", place, "--token-file", str(folder / "token"), "--log-level", "warning"]
    words += ["--kubeconfig", str(folder / "kubeconfig")]
    return subprocess.Popen([TEMPER, "dashboard", "serve", *words]), f"http://{place}"


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    (line,) = (
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmRSS:")
    )
    return round(int(line.split()[1]) * 1024 / 1e6, 1)


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    main()
