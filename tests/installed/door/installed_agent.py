"""A real agent from an environment of wheels, in directories of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx2

from tests.installed.wheels import run
from tests.machine_paths.watch import NOTES
from tests.patience import PATIENCE_S

TOKEN = "correct-horse-battery"
SETTINGS = """
node = "node-1"
run_directory = "{folder}/run"
state_directory = "{folder}/lib/temper"

[server]
listen = "127.0.0.1:{port}"
token_file = "{folder}/token"

[scheduler]
enforce = false

[observe]
period_s = 0.3

[plugin_host]
deadline_s = 1.0
allow = {allow}

[plugins.run-delay]
log_kib = 1
state_kib = 128
lamps = "{folder}/board"

[[workloads]]
name = "storefront"
process = "storefront"
tier = "high"
"""


class InstalledAgent:
    """An agent that observes only, and a process that is the pod ``storefront`` to it."""

    def __init__(self, environment, folder, allow):
        self.environment = environment
        self.folder = folder
        self.state = folder / "lib/temper"
        self.lamp = folder / "board/front/lamp"
        self.lamp.parent.mkdir(parents=True)
        self.lamp.write_text("dark")
        self.settings = folder / "agent.toml"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        token = folder / "token"
        token.write_text(f"ops: {TOKEN}\n")
        token.chmod(0o600)
        text = SETTINGS.format(folder=folder, port=self.port, allow=json.dumps(allow))
        self.settings.write_text(text)
        program = folder / "storefront"
        program.symlink_to(Path(sys.executable).resolve())
        self.workload = subprocess.Popen([program, "-S", "-c", "import time; time.sleep(3600)"])
        transport = httpx2.HTTPTransport(uds=str(folder / "run/agent.sock"))
        self.socket = httpx2.Client(transport=transport, base_url="http://agent", timeout=30)
        self.tcp = httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30)

    def start(self):
        command = [self.environment / "bin/temper", "agent", "--settings", self.settings]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [*map(str, command), "--observe-only"], stderr=log, cwd=self.folder
            )
        self.wait_for(self.observation, "observation")

    def wait_for(self, condition, what):
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log()
            if (self.folder / "run/agent.sock").exists() and (value := condition()):
                return value
            time.sleep(0.1)
        raise AssertionError(f"no {what}: {self.log()[-3000:]}")

    def observation(self):
        answer = self.socket.get("/observe")
        return answer.json() if answer.status_code == 200 else None

    def events(self, kind):
        return self.socket.get("/events", params={"kind": kind}).json()["events"]

    def plugins(self):
        plugins = self.socket.get("/plugins").json()
        return {plugin["name"]: plugin for plugin in plugins["plugins"]}

    def resident_mib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def temper(self, *arguments, check=True):
        """Run a command; those that restore take the lock of the node, which is the machine's."""
        environment = {name: value for name, value in os.environ.items() if name != NOTES}
        command = (self.environment / "bin/temper", *arguments, "--settings", self.settings)
        return run(*command, check=check, env=environment, cwd=self.folder)

    def log(self):
        return (self.folder / "log").read_text()

    def stop(self, number=signal.SIGTERM):
        """Return the exit status, and how long it took to stop."""
        begun = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE_S), time.monotonic() - begun
        finally:
            self.process.kill()
            self.process.wait()

    def close(self):
        self.stop()
        self.workload.kill()
        self.workload.wait()
        self.socket.close()
        self.tcp.close()


def is_gone(pid):
    """Whether a process has ended, reaped or not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def wait_until_gone(pids):
    deadline = time.monotonic() + PATIENCE_S
    while any(not is_gone(pid) for pid in pids):
        assert time.monotonic() < deadline, [pid for pid in pids if not is_gone(pid)]
        time.sleep(0.05)


def helpers_of(agent_pid):
    """Return the helper processes of an agent, and what they have forked."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            is_helper = any(part.endswith(b"helper_launcher.py") for part in command)
            if is_helper and str(agent_pid).encode() in command:
                pids.append(int(entry.name))
    return pids
