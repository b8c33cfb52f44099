"""Runs in the guest as root: ``python tests/kernel/page --engine PATH --port PORT --token TOKEN``.

An agent enforces a plan for the pods of the demonstration, and serves its page on the network card
of the guest. The state of the kernel's scheduler is written to ``state`` in the shared directory,
again and again, until ``end`` is there.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "examples/demo"))

import agent
import kernel
from agent import Pace
from node import Node
from report import Report

LOOK_S = 0.5
PACE = Pace(enforcing_s=1500.0, loading_s=1200.0, look_s=5.0, ask_s=2.0)
"""The browser and the emulator share a machine that may be busy."""
CALL_S = 60.0
BUSYBOX = "/bin/busybox"
ADDRESS, CARD = "10.0.2.15/24", "eth0"
TOKEN = agent.DIRECTORY / "token"


def set_up_card() -> None:
    """Give the card the address that the emulator forwards connections to."""
    subprocess.run([BUSYBOX, "ip", "addr", "add", ADDRESS, "dev", CARD], check=True)
    subprocess.run([BUSYBOX, "ip", "link", "set", CARD, "up"], check=True)


def serve_on_card(port: int, token: str) -> None:
    """Have the agent listen on the card too, take *token*, and be patient with its plugins."""
    TOKEN.write_text(token)
    TOKEN.chmod(0o600)
    own = f'listen = "{agent.ADDRESS}"'
    every = f'listen = "0.0.0.0:{port}"\ntoken_file = "{TOKEN}"'
    text = agent.SETTINGS.read_text().replace(own, every)
    agent.SETTINGS.write_text(f"{text}\n[plugin_host]\ndeadline_s = {CALL_S}\n")


def show_state(share: Path) -> None:
    """Write the state of the scheduler until the host has seen enough."""
    while not (share / "end").exists():
        (share / "state").write_text(kernel.state())
        time.sleep(LOOK_S)


def main() -> None:
    """Serve the page. Exit with 1 where something was not as claimed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True)
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--token", required=True)
    options = parser.parse_args()
    share, report = options.report.parent, Report(options.report)
    set_up_card()
    agent.ADDRESS = f"127.0.0.1:{options.port}"
    with Node(report, options.engine, PACE) as node:
        serve_on_card(options.port, options.token)
        node.attach()
        node.agent.settled()
        (share / "ready").write_text("")
        show_state(share)
        code = node.agent.stop()
        state = kernel.state()
        report.claim("stopped", code == 0 and state == "disabled", f"exit code {code}, {state}")
    sys.exit(report.exit_code)


main()
