"""A real agent with an installed plugin: its state, its helpers, its lines, and what is left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from tests.machine_paths.watch import NOTES

TEMPER = str(Path(sys.executable).with_name("temper"))
NEVER_S = 60.0

PLUGIN = """
import time

from temper_core import HelperBounds, Instrument, OpenInstrument, hookimpl


class Fitter(OpenInstrument):
    def __init__(self, context):
        self._context = context
        # Past write(), which would have refused the first.
        (context.state.path / "large").write_bytes(b"x" * 100_000)
        time.sleep(0.01)
        (context.state.path / "model.json").write_bytes(b"x" * 1000)
        bounds = HelperBounds(memory_bytes=64 * 1024 * 1024)
        self._done = context.helper("fitter_work:train", 20, bounds)
        self._hanging = context.helper("fitter_work:hang", None, bounds)

    def section(self, snapshot):
        with self._context.charge("fit"):
            sum(range(200_000))
        try:
            return {"trained": self._done.result(), "hanging": self._hanging.pid}
        except TimeoutError:
            return None


@hookimpl
def temper_instruments():
    return [Instrument("fitter", Fitter, state_limit_bytes=50_000)]
"""

WORK = """
import time

def train(steps):
    return {"steps": steps}

def hang(_):
    while True:
        time.sleep(0.01)
"""


class Agent:
    """An agent in a directory of its own, with the plugin above."""

    def __init__(self, directory, plugins):
        self.directory = directory
        self.path = directory / "agent.toml"
        self.state = directory / "lib/temper"
        self.path.write_text(
            f'run_directory = "{directory}/run"\nstate_directory = "{self.state}"\n'
            '[server]\nlisten = "127.0.0.1:0"\n[scheduler]\nenforce = false\n'
            "[observe]\nperiod_s = 0.5\n[plugin_host]\nallow = ['fitter']\n"
        )
        self.log = (directory / "log").open("w")
        environment = {**os.environ, "PYTHONPATH": str(plugins)}
        self.process = subprocess.Popen(
            [TEMPER, "agent", "--settings", str(self.path)], stderr=self.log, env=environment
        )
        transport = httpx2.HTTPTransport(uds=str(directory / "run/agent.sock"))
        self.client = httpx2.Client(transport=transport, base_url="http://agent", timeout=30)

    def wait_for(self, path, is_there):
        deadline = time.monotonic() + NEVER_S
        while time.monotonic() < deadline:
            assert self.process.poll() is None, (self.directory / "log").read_text()
            if (self.directory / "run/agent.sock").exists():
                answer = self.client.get(path)
                if answer.status_code == 200 and (found := is_there(answer)):
                    return found
            time.sleep(0.1)
        raise AssertionError((self.directory / "log").read_text())

    def overhead(self):
        """Return the overhead once both helpers have been measured and the state trimmed."""

        def settled(answer):
            overhead = answer.json()["overhead"]
            cost = overhead["instruments"].get("fitter", {})
            is_settled = cost.get("helpers") == 1 and cost.get("state_bytes") == 1000
            return overhead if is_settled and cost["helper_memory_bytes"] else None

        return self.wait_for("/observe", settled)

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(timeout=NEVER_S)

    def close(self):
        self.client.close()
        self.process.kill()
        self.process.wait()
        self.log.close()


@pytest.fixture
def agent(tmp_path):
    plugins = tmp_path / "plugins"
    info = plugins / "fitter-1.0.dist-info"
    info.mkdir(parents=True)
    (plugins / "fitter_plugin.py").write_text(PLUGIN)
    (plugins / "fitter_work.py").write_text(WORK)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fitter\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[temper.plugins]\nfitter = fitter_plugin\n")
    found = Agent(tmp_path, plugins)
    yield found
    found.close()


def helpers_of(pid):
    """Return the living helper processes of an agent, by their parent or their launcher."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                command = (each / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            is_launcher = any(part.endswith(b"helper_launcher.py") for part in command)
            if is_launcher and str(pid).encode() in command:
                found.append(int(each.name))
    return found


def test_what_an_instrument_costs_is_shown_and_its_state_is_kept_within_its_bound(agent):
    overhead = agent.overhead()
    document = agent.wait_for("/observe", lambda answer: answer.json())
    metrics = agent.client.get("/metrics").text
    helpers = helpers_of(agent.process.pid)

    lines = {line for line in overhead["cpu_ratio"] if line.startswith("instrument_")}
    assert {"instrument_fitter_user", "instrument_fitter_fit_user"} <= lines
    assert overhead["instruments"]["fitter"]["state_limit_bytes"] == 50_000
    assert 'temper_instrument_state_bytes{instrument="fitter"} 1000' in metrics
    assert 'temper_overhead_cpu_ratio{part="instrument_fitter_fit_user"}' in metrics
    assert any("fitter: state directory: 1 of its oldest" in each for each in document["defects"])
    assert len(helpers) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_an_agent_ends_it_leaves_no_helper(agent, number):
    agent.overhead()
    before = helpers_of(agent.process.pid)

    agent.end(number)

    deadline = time.monotonic() + NEVER_S
    while helpers_of(agent.process.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(before) == 1


def test_a_restoration_removes_what_instruments_have_kept(agent):
    agent.overhead()
    agent.end(signal.SIGTERM)

    # To restore takes the lock of the node, which is the machine's.
    environment = {name: value for name, value in os.environ.items() if name != NOTES}
    done = subprocess.run(
        [TEMPER, "restore", "--settings", str(agent.path), "--output", "json"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    removed = json.loads(done.stdout)["removed"]
    assert str(agent.state / "instruments/fitter") in removed
    assert not agent.state.exists()
