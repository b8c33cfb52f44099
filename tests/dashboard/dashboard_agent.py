"""A real agent with a real program of several threads, for tests of the page."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from attrs import define, field

from tests.own_host import ENVIRONMENT, OWN_RUN, has_own_hosts
from tests.patience import PATIENCE_S

TEMPER = str(Path(sys.executable).with_name("temper"))
TOKEN = "0123456789abcdef"
PROCESS = "dash-shop"
HOSTILE_NAME = "<img src=x>"
PROGRAM = f"""
import ctypes, threading, time
libc = ctypes.CDLL(None)
def be(name):
    libc.prctl(15, name.encode(), 0, 0, 0)
def work(name):
    be(name)
    while True:
        end = time.thread_time() + 0.01
        while time.thread_time() < end: pass
        time.sleep(0.05)
for name in ("worker-1", "worker-2", {HOSTILE_NAME!r}):
    threading.Thread(target=work, args=(name,), daemon=True).start()
be({PROCESS!r})
time.sleep(3600)
"""
SETTINGS = """
{head}
run_directory = "{folder}/run"
state_directory = "{folder}/state"
[server]
listen = "{host}:{port}"
{token}
[scheduler]
enforce = false
[observe]
period_s = 1.0
budget_cpu_ratio = 1.0
[[workloads]]
name = "shop"
process = "{process}"
tier = "high"
cpu_request = "500m"
{more}
"""


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def until(is_so, why: str):
    """Return the first true answer of *is_so*."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if answer := is_so():
            return answer
        time.sleep(0.2)
    raise AssertionError(f"{why} did not happen in {PATIENCE_S:g} s")


@define
class DashboardAgent:
    """An agent in a folder of its own. It can be stopped and started again on the same port."""

    folder: Path
    more: str = ""
    head: str = ""
    host: str = "127.0.0.1"
    has_token: bool = True
    port: int = field(factory=free_port)
    _process: subprocess.Popen | None = None

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.port}/"

    def start(self) -> None:
        """Start it, and wait for a window in which the program ran."""
        token = self.folder / "token"
        token.write_text(f"ops: {TOKEN}\n")
        token.chmod(0o600)
        settings = self.folder / "agent.toml"
        text = SETTINGS.format(
            folder=self.folder,
            host=self.host,
            port=self.port,
            process=PROCESS,
            head=self.head,
            token=f'token_file = "{token}"' if self.has_token else "",
            more=self.more,
        )
        settings.write_text(text)
        command = (TEMPER, "agent", "--settings", str(settings))
        before, environment = (OWN_RUN, ENVIRONMENT) if has_own_hosts() else ((), None)
        with (self.folder / "log").open("a") as log:
            self._process = subprocess.Popen([*before, *command], stderr=log, env=environment)
        until(self._sees_threads, "a window with the threads of the program")

    def stop(self) -> None:
        """End it as a service manager does."""
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(PATIENCE_S) == 0, (self.folder / "log").read_text()

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.wait()

    def read(self, path: str):
        with urllib.request.urlopen(self.address + path, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def _sees_threads(self) -> bool:
        try:
            names = {thread["comm"] for thread in self.read("observe?top=1000")["threads"]}
        except (urllib.error.URLError, ConnectionError):
            return False
        return {"worker-1", "worker-2", HOSTILE_NAME} <= names
