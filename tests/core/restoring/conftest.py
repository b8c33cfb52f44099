import socket

import attrs
import pytest

from temper_core.scheduler.host.roots import Roots
from temper_core.settings import load


class Host:
    """A host in a folder: where Temper keeps what, and what it may have left there."""

    def __init__(self, folder):
        self.folder = folder
        self.run, self.state = folder / "run/temper", folder / "lib/temper"
        self.path = folder / "agent.toml"
        self.path.write_text(
            f'[server]\nsocket = "{self.run}/agent.sock"\n'
            f'[safe_mode]\nfile = "{self.state}/safe-mode"\nstate = "{self.state}/requests.json"\n'
            f'[scheduler]\nsteering_pin = "{folder}/bpf/temper/hints"\nstop_deadline_s = 1.0\n'
        )
        names = [each.name for each in attrs.fields(Roots)]
        roots = {name: folder / name for name in names if name != "proc"}
        self.roots = Roots(**{**roots, "run": self.run, "node": self.run})

    @property
    def settings(self):
        return load(self.path).settings

    def put(self, path, text="x"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def put_socket(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with socket.socket(socket.AF_UNIX) as ended:
            ended.bind(str(path))
        return path

    def left_by_a_killed_agent(self):
        """Make everything that an agent can leave, and return it."""
        return [
            self.put(self.run / "agent.lock", "123\n"),
            self.put_socket(self.run / "agent.sock"),
            self.put(self.run / "engine-7.json", "[]"),
            self.put(self.run / "engine-8.gate"),
            self.put(self.run / "engine.pid", "123 456\n"),
            self.put(self.run / "engine-next.pid", "124 456\n"),
            self.put(self.state / "requests.json", "{}"),
            self.put(self.state / "requests.json.new", "{"),
            self.put(self.state / "events.jsonl", "{}\n"),
            self.put(self.state / "events.jsonl.new"),
            self.put(self.state / "safe-mode.4711"),
        ]

    def everything(self):
        return sorted(str(path) for path in self.folder.rglob("*") if path != self.path)


@pytest.fixture
def made(tmp_path):
    return Host(tmp_path)
