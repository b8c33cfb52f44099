"""Attacks on the agent's connections, each held against what an agent promises meanwhile.

``python -m tests.hostile.test_connections`` prints the figures of every attack.
"""

import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest
from attrs import define, field

from tests.hostile.connection_attacks import ATTACKS, SOURCES
from tests.patience import PATIENCE_S

PROBE_S = 5.0
"""The time that the chart gives a probe. The figures are held against it, the tests against
``PATIENCE_S``, because other tests take the processors too."""
LARGEST_GROWTH_BYTES = 96 * 1024 * 1024
LASTING_S = 1.5
SETTLING_S = 1.0
WISH = {"requested": True, "requester": "operator", "reason": "attacked"}


@define
class Outcome:
    """What was seen during an attack."""

    answered: int = 0
    failures: list[str] = field(factory=list)
    slowest_s: float = 0.0
    read: list[str] = field(factory=list)
    local_s: list[float] = field(factory=list)
    grown_bytes: int = 0


@contextmanager
def program(module, *arguments):
    """Run a module of this folder as a process."""
    command = [sys.executable, "-m", f"tests.hostile.{module}", *arguments]
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def resident_bytes(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM:"))
    return int(peak.split()[1]) * 1024


def probe(address, outcome, path, within_s):
    began = time.monotonic()
    try:
        status = httpx2.get(f"http://{address}{path}", timeout=within_s, verify=False).status_code
        failure = "" if status == 200 else str(status)
    except httpx2.HTTPError as error:
        failure = repr(error)
    outcome.slowest_s = max(outcome.slowest_s, time.monotonic() - began)
    if path == "/safe-mode":
        outcome.read.append(failure)
    elif failure:
        outcome.failures.append(failure)
    else:
        outcome.answered += 1


def ask_locally(path, outcome):
    began = time.monotonic()
    with httpx2.Client(
        transport=httpx2.HTTPTransport(uds=path, verify=False),
        base_url="http://agent",
        timeout=PATIENCE_S,
    ) as client:
        assert client.put("/safe-mode", json=WISH).status_code == 200
    outcome.local_s.append(time.monotonic() - began)


def attacked(name, sources, folder, lasting_s=LASTING_S, within_s=PATIENCE_S):
    """Attack a server of its own, and return what became of its promises."""
    outcome, path = Outcome(), str(folder / "agent.sock")
    with ExitStack() as stack:
        server = stack.enter_context(program("attacked_server", path))
        address = server.stdout.readline().strip()
        probe(address, Outcome(), "/healthz", PATIENCE_S)
        before = resident_bytes(server.pid)
        attacker = stack.enter_context(program("connection_attacks", name, address, *sources))
        time.sleep(SETTLING_S)
        until = time.monotonic() + lasting_s
        while time.monotonic() < until:
            for asked in ("/healthz", "/readyz", "/safe-mode"):
                probe(address, outcome, asked, within_s)
            ask_locally(path, outcome)
            time.sleep(0.1)
        outcome.grown_bytes = resident_bytes(server.pid) - before
        assert (server.poll(), attacker.poll()) == (None, None)
    return outcome


CASES = [
    *((name, ("127.0.0.1",)) for name in ATTACKS),
    *((name, SOURCES) for name in ("queued_requests", "queued_probes", "everything")),
]
"""The probes come from 127.0.0.1 too. That is harder for them than another source."""


@pytest.mark.parametrize(("name", "sources"), CASES)
def test_an_agent_under_attack_answers_probes_and_its_socket_within_its_memory(
    name, sources, tmp_path
):
    outcome = attacked(name, sources, tmp_path)

    assert outcome.failures == []
    assert outcome.answered >= 2
    assert max(outcome.local_s) < PATIENCE_S
    assert outcome.grown_bytes < LARGEST_GROWTH_BYTES


def main(names, folder):
    """Print a line per attack."""
    for name in names or ATTACKS:
        for sources in (("127.0.0.1",), SOURCES):
            outcome = attacked(name, sources, folder, 5.0, PROBE_S)
            refused = sum(map(bool, outcome.read))
            sys.stdout.write(
                f"{name:36} from {len(sources)}: probes {outcome.answered} answered, "
                f"{len(outcome.failures)} failed, slowest {outcome.slowest_s:.2f} s; reads "
                f"{len(outcome.read) - refused} of {len(outcome.read)}; safe mode by socket at "
                f"most {max(outcome.local_s):.2f} s; memory +{outcome.grown_bytes >> 20} MiB "
                f"{set(outcome.failures) or ''}\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:], Path("/tmp"))
