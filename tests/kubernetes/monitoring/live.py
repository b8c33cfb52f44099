"""A real Prometheus that scrapes a real agent with pods, and what it answers."""

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import yaml

from tests.prometheus import program

TEMPER = str(Path(sys.executable).with_name("temper"))
NODE = "worker-3"
BUSY = """
import threading, time

def turn():
    while True:
        sum(range(3000))
        time.sleep(0.01)

for _ in range(3):
    threading.Thread(target=turn).start()
"""
OPERATORS = {
    "namespace": "temper",
    "pod": "temper-agent-x7k2p",
    "container": "agent",
    "endpoint": "metrics",
    "service": "temper-agent",
    "job": "temper-agent",
    "__meta_kubernetes_pod_label_temper_codes_track": "main",
}
"""Labels that the operator gives a target before the ServiceMonitor's own relabelings."""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Scene:
    """An agent that observes pods with busy threads, and whatever else was started for it."""

    def __init__(self, directory):
        self.directory = directory
        self.started = []
        self.clients = []
        self.pods = {}
        self.port = free_port()

    def agent(self):
        (self.directory / "agent.toml").write_text(
            f'run_directory = "{self.directory}"\nstate_directory = "{self.directory}"\n'
            f'node = "{NODE}"\n[pods]\nsource = "local"\nunits = false\npoll_s = 0.5\n'
            f"[observe]\nperiod_s = 0.5\nbudget_cpu_ratio = 0.5\n[plugins.tracer]\nedges = true\n"
            f'[server]\nlisten = "127.0.0.1:{self.port}"\n[scheduler]\nenforce = false\n'
        )
        self.start([TEMPER, "agent", "--settings", str(self.directory / "agent.toml")])

    def workload(self, tier):
        """Start a workload by a name that nobody else on this machine has; ``pods`` has it."""
        name = self.pods[tier] = f"{tier}-{self.port}"
        sized = ["--cpu-request", "100m", "--cpu-limit", "2"]
        options = ["--name", name, "--tier", tier, "--profile", "pytorch-training", *sized]
        self.start([TEMPER, "run", *options, sys.executable, "-c", BUSY])

    def prometheus(self, endpoint, groups, others=()):
        """Start a Prometheus that scrapes the agent as *endpoint* of a ServiceMonitor says.

        *others* are ports of further agents, by the names of their nodes.
        """
        port = free_port()
        (self.directory / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
        config = self.directory / "prometheus.yaml"
        config.write_text(yaml.safe_dump(self._config(endpoint, {NODE: self.port, **dict(others)})))
        self.start(
            [
                program("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={self.directory}/tsdb",
                f"--web.listen-address=127.0.0.1:{port}",
            ]
        )
        self.clients.append(Prometheus(port))
        return self.clients[-1]

    def _config(self, endpoint, ports):
        targets = [
            {
                "targets": [f"127.0.0.1:{port}"],
                "labels": {**OPERATORS, "__meta_kubernetes_pod_node_name": node},
            }
            for node, port in ports.items()
        ]
        job = {
            "job_name": "agents",
            "honor_labels": endpoint["honorLabels"],
            "metrics_path": endpoint["path"],
            "static_configs": targets,
            "relabel_configs": [_as_configured(each) for each in endpoint["relabelings"]],
        }
        return {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [job],
        }

    def start(self, command):
        log = (self.directory / f"log.{len(self.started)}").open("w")
        self.started.append((subprocess.Popen(command, stdout=log, stderr=log), log))

    def until(self, condition, what, seconds=60.0):
        """Return what *condition* gives as soon as it is true; else fail with all logs."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := condition():
                return found
            time.sleep(0.2)
        raise AssertionError(f"not within {seconds} s: {what}: {self._logs()}")

    def _logs(self):
        return "\n".join(path.read_text()[-1500:] for path in self.directory.glob("log.*"))

    def stop(self):
        for each in self.clients:
            each.client.close()
        for process, log in reversed(self.started):
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)
            log.close()


def _as_configured(relabeling):
    """Write a relabeling of the operator's as Prometheus' own settings have it."""
    return {re.sub("[A-Z]", lambda c: f"_{c[0].lower()}", k): v for k, v in relabeling.items()}


class Prometheus:
    """Its HTTP interface."""

    def __init__(self, port):
        self.client = httpx2.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False
        )

    def is_ready(self):
        try:
            return self.client.get("/-/ready").status_code == 200
        except httpx2.TransportError:
            return False

    def ask(self, query):
        """Return the series that *query* gives now; AssertionError with what is wrong with it."""
        answer = self.client.get("/api/v1/query", params={"query": query}).json()
        assert answer["status"] == "success", f"{query}: {answer['error']}"
        return answer["data"]["result"]

    def get(self, what):
        return self.client.get(f"/api/v1/{what}").json()["data"]
