"""An agent as a user runs it, for tests: a real process in a directory of its own."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2

from tests.own_host import ENVIRONMENT, OWN_RUN
from tests.patience import PATIENCE_S
from tests.signals import ignoring

TEMPER = str(Path(sys.executable).with_name("temper"))


class RunningAgent:
    """An agent in a directory of its own; with *looks* false it has to hear of everything.

    It observes only, unless *enforces* has it run an engine where the kernel can. With *own_run* it
    has a /run of its own, which takes root.
    """

    def __init__(
        self,
        directory,
        *options,
        settings="",
        looks=True,
        ignored=(),
        enforces=False,
        own_run=False,
    ):
        self.directory = directory
        self.path = directory / "agent.toml"
        period_s, poll_s, file_poll_s = (0.5, 0.2, 1.0) if looks else (60, 3600, 3600)
        self.path.write_text(
            f'run_directory = "{directory}/run"\nstate_directory = "{directory}"\n'
            f'[server]\nlisten = "127.0.0.1:0"\n[safe_mode]\npoll_s = {file_poll_s}\n'
            f"[observe]\nperiod_s = {period_s}\n[pods]\npoll_s = {poll_s}\n{settings}"
        )
        options = options if enforces else ("--observe-only", *options)
        under, environment = (OWN_RUN, ENVIRONMENT) if own_run else ((), None)
        command = [*under, TEMPER, "agent", "--settings", str(self.path), *options]
        self.log = (directory / "log").open("w")
        with ignoring(ignored):
            self.process = subprocess.Popen(command, stderr=self.log, env=environment)
        self.socket = directory / "run" / "agent.sock"
        transport = httpx2.HTTPTransport(uds=str(self.socket))
        self.client = httpx2.Client(
            transport=transport, base_url="http://agent", timeout=PATIENCE_S
        )

    def get(self, path):
        return self.client.get(path)

    def wait_for(self, condition, what):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            assert self.process.poll() is None, (self.directory / "log").read_text()
            # httpx2 leaks its socket where there is nothing to connect to.
            if self.socket.exists() and (found := condition()):
                return found
            time.sleep(0.1)
        raise AssertionError(f"no {what}: {(self.directory / 'log').read_text()}")

    def observation(self):
        answer = self.get("/observe")
        return answer.json() if answer.status_code == 200 else None

    def stop(self, number=signal.SIGTERM):
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(timeout=PATIENCE_S)
        finally:
            self.process.kill()  # one that hangs outlives no test
            self.process.wait()
            self.log.close()

    def events(self):
        lines = (self.directory / "log").read_text().splitlines()
        return [json.loads(line)["event"] for line in lines]


def events_with(agent, kind, times=1):
    """Return all events once there are so many of *kind*."""
    events = agent.get("/events").json()["events"]
    return events if [event["kind"] for event in events].count(kind) >= times else None


def explanation(agent, pod):
    answer = agent.get(f"/explain?pod={pod}")
    return answer.json() if answer.status_code == 200 else {}


def pod_object(name, priority):
    container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "500m"}}}
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}"},
        "spec": {"priority": priority, "containers": [container]},
        "status": {"phase": "Running"},
    }
