"""An agent's server in a process of its own, to be attacked. Run as a program: ``SOCKET``."""

import sys

from temper_core.server.agent_server import AgentServer
from temper_core.settings.models import ServerSettings
from tests.core.server.fake_view import FakeView


def main(path: str) -> None:
    """Serve until the parent closes standard input. The first line has the address."""
    server = AgentServer(FakeView(), ServerSettings("127.0.0.1:0", path))
    server.start()
    sys.stdout.write(f"{server.address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
