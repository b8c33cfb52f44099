"""A real node in a virtual machine, with the chart's release on it, seen by its administrator."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import yaml

from tests.control_plane.cluster import wait_until
from tests.kubernetes.node.guest import Guest

ROOT = Path(__file__).parents[3]
KUBE = ROOT / "kube"
CHART = ROOT / "deploy/helm/temper"
REPORTS = ROOT / "build/node"
DRIVERS = ("cgroupfs", "systemd")
CPUS = 12  # six cores: enough for every tier to own one
NAMESPACE = "temper"
PYTHON = "/opt/temper/bin/python3"
"""Of the image."""
PREFIX = "temper.codes/"
# The emulator is some twenty times as slow as a machine: an engine loads for a minute.
ENFORCING_S = 420
NODE_EXEC_S = 60
SLOW = {
    "agent": {
        "settings": {
            "scheduler": {
                "start_deadline_s": 400.0,
                "loop_deadline_s": 600.0,
                "quiet_s": 1.0,
                "min_interval_s": 1.0,
            },
            "observe": {"budget_cpu_ratio": 0.5},
            "plugin_host": {"deadline_s": 60.0},
            "plugins": {"kubernetes": {"write_every_s": 1.0}},
        },
        "probes": {
            "startup": {"periodSeconds": 5, "timeoutSeconds": 20, "failureThreshold": 60},
            "liveness": {"periodSeconds": 30, "timeoutSeconds": 30, "failureThreshold": 10},
            "readiness": {"periodSeconds": 10, "timeoutSeconds": 20, "failureThreshold": 3},
        },
    },
    "image": {"pullPolicy": "Never"},
}


class RealNode:
    """The control plane and the guest of one cgroup driver, and what tests ask of both."""

    def __init__(self, directory, driver, archive, reference):
        self.directory, self.driver, self.reference = directory, driver, reference
        options = [f"--driver={driver}", f"--cpus={CPUS}", f"--image={archive}"]
        self._run(KUBE / "node-up", *options, directory, timeout=1800)
        self._guest = Guest(directory)
        self.bin = Path(self._run(KUBE / "build", "kubectl", "helm").strip())
        self.environment = {**os.environ, "KUBECONFIG": str(directory / "kubeconfig")}
        self.name = "localhost"
        (REPORTS / f"{driver}.json").unlink(missing_ok=True)

    def down(self):
        self._run(KUBE / "down", self.directory)

    def tell(self, claim, measured):
        """Keep what a test found for docs/kubernetes-node.md."""
        tell(self.driver, claim, measured)

    def kubectl(self, *arguments, given=None, timeout=180):
        return self._ask(self.bin / "kubectl", *arguments, given=given, timeout=timeout)

    def get(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def apply(self, *documents):
        return self.kubectl("apply", "-f", "-", given=yaml.safe_dump_all(documents))

    def annotations(self):
        """Return Temper's annotations of the node, without their prefix."""
        found = self.get("node", self.name)["metadata"]["annotations"]
        return {
            key.removeprefix(PREFIX): found[key] for key in sorted(found) if key.startswith(PREFIX)
        }

    def status(self):
        return self.annotations().get("agent-status", "")

    def restart_api(self, *options):
        self._run(KUBE / "restart", self.directory, *options)

    def helm(self, *arguments, timeout=300):
        return self._ask(self.bin / "helm", *arguments, timeout=timeout)

    def install(self, profiles):
        """Install the chart, or bring the release up to date."""
        values = self.directory / "values.yaml"
        agent = {**SLOW["agent"], "profiles": profiles}
        values.write_text(yaml.safe_dump({**SLOW, "agent": agent}))
        self.helm(
            *("upgrade", "--install", "temper", CHART, "--namespace", NAMESPACE),
            *("--create-namespace", "--values", values),
        )

    def agent_pod(self):
        """Return the agent's pod that is to stay, or None."""
        pods = self.get("pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/component=agent")["items"]
        staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return staying[0] if staying else None

    def enforcing(self, seconds=ENFORCING_S):
        """Wait until the agent says that it enforces and the kernel agrees; return the seconds."""
        began = time.monotonic()
        wait_until(self.is_enforcing, f"enforcing, not {self.told()}", seconds)
        return time.monotonic() - began

    def is_enforcing(self):
        time.sleep(1)
        return self.status() == "enforcing" and self.sched_ext() == "enabled"

    def told(self):
        """Return what there is to know of an agent that does not do as expected."""
        with suppress(subprocess.SubprocessError, AssertionError):
            said = self.annotations()
            return f"{said.get('agent-status')}: {said.get('agent-message')}"
        return "nothing"

    def temper(self, *arguments):
        """Run the temper command in the agent's own container."""
        return self.kubectl(
            *("exec", "-n", NAMESPACE, "daemonset/temper-agent", "--"),
            *("temper", *arguments, "--settings", "/etc/temper/agent.toml"),
        )

    def python(self, code):
        """Run a line of the agent's Python in its own container; return what it printed."""
        return self.kubectl(
            *("exec", "-n", NAMESPACE, "daemonset/temper-agent", "--"), PYTHON, "-c", code
        )

    def kubectl_temper(self, *arguments, timeout=300):
        """Run ``kubectl temper`` on this machine, with the real kubectl."""
        path = f"{self.bin}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        command = ("env", f"PATH={path}", "kubectl", "temper", *arguments)
        return self._ask(*command, timeout=timeout)

    def ask(self, path):
        """Ask the agent over the pod's network, from the node."""
        address = self.agent_pod()["status"]["podIP"]
        return self.exec(f"curl -sS --max-time 60 'http://{address}:9100{path}'")

    def observe(self):
        return json.loads(self.ask("/observe?top=500"))

    def explain(self, pod):
        return json.loads(self.ask(f"/explain?pod={pod}"))

    def metric(self, name):
        """Return the sum of a metric's samples."""
        lines = self.ask("/metrics").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    def exec(self, command, timeout=120):
        """Run a line of shell on the node as root; return what it printed."""
        command = (KUBE / "node-exec", "--timeout", timeout, self.directory, command)
        return self._ask(*command, timeout=timeout + NODE_EXEC_S)

    def sched_ext(self):
        return self.exec("cat /sys/kernel/sched_ext/state").strip()

    def engine(self):
        """Return the process id of the engine that is attached, or of none."""
        return self.exec("pgrep -o -x scx_layered || true").strip()

    def clock_ahead_s(self):
        """Return by how much the guest's clock is ahead of this machine's, to some tenths."""
        before = time.time()
        there = float(self.exec("date +%s.%N"))
        return there - (before + time.time()) / 2

    def when(self, state):
        """Begin to wait, on the node itself, for a state of sched_ext; it prints the time."""
        wait = f"until grep -qx {state} /sys/kernel/sched_ext/state; do sleep 0.05; done"
        return subprocess.Popen(
            [KUBE / "node-exec", "--timeout", "300", self.directory, f"{wait}; date +%s.%N"],
            stdout=subprocess.PIPE,
            text=True,
        )

    def _ask(self, *command, given=None, timeout=300):
        """Run a command that needs the node; raise GuestDied as soon as there is none."""
        words = [str(word) for word in command]
        return _printed(self._guest.run(words, given, timeout, self.environment))

    def _run(self, *command, timeout=300):
        """Run a command on this machine, whatever has become of the node."""
        words = [str(word) for word in command]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False)
        return _printed(ended)


def _printed(ended):
    assert ended.returncode == 0, f"{ended.args}: {ended.stdout}{ended.stderr}"
    return ended.stdout


def tell(driver, claim, measured):
    """Keep what was found on the node of that driver."""
    report = REPORTS / f"{driver}.json"
    report.parent.mkdir(parents=True, exist_ok=True)
    told = json.loads(report.read_text()) if report.exists() else {}
    report.write_text(json.dumps({**told, claim: measured}, indent=1))
