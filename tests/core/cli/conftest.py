import json
import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from attrs import frozen
from click.testing import CliRunner, Result

from temper_core.cli.safe_mode_outcome import Host
from temper_core.scheduler.host.roots import Roots
from temper_core.server.agent_server import AgentServer
from temper_core.settings import Settings, load
from temper_core.settings.models import ServerSettings


def load_beside(name: str, path: Path):
    """Import a module that lies beside tests, which importlib mode does not find by itself."""
    if name not in sys.modules:
        spec = spec_from_file_location(name, path)
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def load_fakes():
    return load_beside("temper_fake_view", Path(__file__).parents[1] / "server" / "fake_view.py")


@frozen
class Node:
    """A node's settings file, and what it names."""

    folder: Path

    @property
    def settings_path(self) -> Path:
        return self.folder / "agent.toml"

    @property
    def socket(self) -> Path:
        return self.folder / "agent.sock"

    @property
    def file(self) -> Path:
        return self.folder / "state" / "safe-mode"

    @property
    def state(self) -> Path:
        return self.folder / "requests.json"

    @property
    def settings(self) -> Settings:
        return load(self.settings_path).settings

    def write_settings(self, listen: str = "", token_file: str = "", socket: str = "") -> None:
        quoted = json.dumps
        self.settings_path.write_text(
            f"run_directory = {quoted(str(self.folder / 'run'))}\n"
            f"[server]\nlisten = {quoted(listen)}\nsocket = {quoted(socket or str(self.socket))}\n"
            f"token_file = {quoted(token_file)}\n"
            f"[safe_mode]\nfile = {quoted(str(self.file))}\nstate = {quoted(str(self.state))}\n"
            "poll_s = 0.1\n"
        )


@pytest.fixture(scope="module")
def lasting_view():
    return load_fakes().FakeView()


@pytest.fixture(scope="module")
def lasting_agent(lasting_view, tmp_path_factory) -> Iterator[ServerSettings]:
    settings = ServerSettings("", str(tmp_path_factory.mktemp("lasting") / "agent.sock"))
    server = AgentServer(lasting_view, settings)
    server.start()
    yield settings
    server.stop()


@pytest.fixture
def view(lasting_view):
    """The view that the module's agent has, as new."""
    vars(lasting_view).clear()
    vars(lasting_view).update(vars(load_fakes().FakeView()))
    return lasting_view


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    made.write_settings()
    return made


@pytest.fixture
def agent(view, node: Node, lasting_agent: ServerSettings) -> ServerSettings:
    """The module's agent, on a local socket only, which the node's settings name."""
    assert view.last is not None
    node.write_settings(socket=lasting_agent.socket)
    return lasting_agent


@pytest.fixture
def tcp_agent(view, node: Node, tmp_path: Path) -> Iterator[AgentServer]:
    """An agent that the node's settings know by its TCP address only; it has a token."""
    token = tmp_path / "token"
    token.write_text("0123456789abcdef-the-secret")
    token.chmod(0o600)
    hidden = ServerSettings("127.0.0.1:0", str(tmp_path / "hidden.sock"), str(token))
    server = AgentServer(view, hidden)
    server.start()
    node.write_settings(str(server.address), str(token), str(tmp_path / "absent.sock"))
    yield server
    server.stop()


@pytest.fixture
def temper(node: Node) -> Callable[..., Result]:
    """Run a command of ``temper`` with the node's settings, on a host without other agents."""
    proc = node.folder / "proc"
    proc.mkdir()
    roots = Roots(proc=proc, sys=node.folder / "sys", node=node.folder / "run")
    host = Host(roots, usual=lambda: node.settings)

    def run(command: object, *arguments: str) -> Result:
        given = [*arguments, "--settings", str(node.settings_path)]
        return CliRunner().invoke(command, given, obj=host)

    return run
