import socket
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import httpx2
import pytest
from attrs import frozen

from temper_core.server.agent_server import AgentServer
from temper_core.settings.models import ServerSettings
from tests.patience import PATIENCE_S

TOKEN = "0123456789abcdef-the-secret"


def load_fakes() -> ModuleType:
    if "temper_fake_view" not in sys.modules:
        spec = spec_from_file_location("temper_fake_view", Path(__file__).with_name("fake_view.py"))
        sys.modules["temper_fake_view"] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules["temper_fake_view"])
    return sys.modules["temper_fake_view"]


@frozen
class RunningAgent:
    """A server on real sockets, and a client for each of them."""

    server: AgentServer
    tcp: httpx2.Client
    unix: httpx2.Client
    settings: ServerSettings

    def close(self) -> None:
        self.tcp.close()
        self.unix.close()
        self.server.stop()

    def connect(self) -> socket.socket:
        address = self.server.address
        return socket.create_connection((address.host, address.port), timeout=PATIENCE_S)

    def connect_locally(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(10)
        connection.connect(self.settings.socket)
        return connection


@pytest.fixture(scope="session")
def fakes() -> ModuleType:
    return load_fakes()


@pytest.fixture(scope="module")
def lasting_view(fakes):
    return fakes.FakeView()


@pytest.fixture
def view(fakes, lasting_view):
    """The view that the module's server has, as new."""
    vars(lasting_view).clear()
    vars(lasting_view).update(vars(fakes.FakeView()))
    yield lasting_view
    lasting_view.release.set()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


def start_server(
    view, folder: Path, token_file: Path | None, hosts: tuple[str, ...] = (), **options: object
) -> RunningAgent:
    path = folder / "run" / "agent.sock"
    settings = ServerSettings("127.0.0.1:0", str(path), str(token_file or ""), hosts)
    server = AgentServer(view, settings, **options)
    server.start()
    unencrypted = httpx2.HTTPTransport(verify=False)
    local = httpx2.HTTPTransport(uds=str(path), verify=False)
    return RunningAgent(
        server,
        httpx2.Client(
            base_url=f"http://{server.address}", transport=unencrypted, timeout=PATIENCE_S
        ),
        httpx2.Client(base_url="http://agent", transport=local, timeout=PATIENCE_S),
        settings,
    )


@pytest.fixture
def start(view, tmp_path: Path) -> Iterator[Callable[..., RunningAgent]]:
    """Start a server on *view*; it is stopped when the test ends."""
    running: list[RunningAgent] = []

    def start_one(token_file: Path | None = None, **options: object) -> RunningAgent:
        running.append(start_server(view, tmp_path, token_file, **options))
        return running[-1]

    yield start_one
    for agent in running:
        view.release.set()
        agent.close()


@pytest.fixture(scope="module")
def lasting_agent(lasting_view, tmp_path_factory) -> Iterator[RunningAgent]:
    running = start_server(lasting_view, tmp_path_factory.mktemp("lasting"), None)
    yield running
    running.close()


@pytest.fixture
def agent(view, lasting_agent) -> RunningAgent:
    """The module's server, whose *view* is as new."""
    assert view.last is not None
    return lasting_agent


@pytest.fixture
def server_threads() -> Callable[[], list[str]]:
    """Name the server's threads that are alive."""

    def names() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name.startswith("temper-")]

    return names
