import resource
import socket
import threading
from contextlib import ExitStack, closing, suppress

import pytest

from temper_core.agent import systemd_notifier
from temper_core.agent.systemd_notifier import SystemdNotifier

PATIENCE_S = 60.0


@pytest.fixture
def manager(tmp_path, monkeypatch):
    """A service manager's socket, which reads nothing by itself."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"{tmp_path}/notify")
        manager.settimeout(PATIENCE_S)
        monkeypatch.setenv("NOTIFY_SOCKET", manager.getsockname())
        yield manager


@pytest.fixture
def notified():
    """Make what reports to that socket."""
    with ExitStack() as made:
        yield lambda: made.enter_context(closing(SystemdNotifier()))


def flood(manager):
    """Fill the queue, as any user of the host may."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as user, suppress(BlockingIOError):
        user.setblocking(False)
        while True:
            user.sendto(b"flood", manager.getsockname())


def drained(manager):
    manager.setblocking(False)
    heard = []
    with suppress(BlockingIOError):
        while True:
            heard.append(manager.recv(100))
    manager.settimeout(PATIENCE_S)
    return heard


def test_a_report_waits_for_its_turn_in_a_queue_that_a_user_fills(manager, monkeypatch, notified):
    monkeypatch.setattr(systemd_notifier, "WAIT_S", PATIENCE_S)
    notifier = notified()
    flood(manager)
    reporting = threading.Thread(target=notifier.ready, daemon=True)
    reporting.start()
    reporting.join(1.0)  # a report that does not wait has failed by then

    heard = b"flood"
    while heard == b"flood":
        heard = manager.recv(100)

    assert heard == b"READY=1"
    reporting.join(PATIENCE_S)


def test_a_start_that_found_no_place_is_reported_with_a_later_turn(manager, monkeypatch, notified):
    monkeypatch.setattr(systemd_notifier, "REST_S", 0.0)
    notifier = notified()
    flood(manager)
    notifier.ready()
    notifier.alive()
    assert set(drained(manager)) == {b"flood"}

    notifier.alive()
    notifier.alive()

    assert drained(manager) == [b"READY=1\nWATCHDOG=1", b"WATCHDOG=1"]


def test_turns_are_reported_while_no_descriptor_is_left(manager, notified):
    notifier = notified()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        notifier.alive()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    assert drained(manager) == [b"WATCHDOG=1"]


@pytest.mark.parametrize("address", ["", "notify", "vsock:2:1", "/" + "x" * 200, "@" + "x" * 200])
def test_an_address_that_leads_nowhere_is_no_error(monkeypatch, address, notified):
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notifier = notified()

    notifier.ready()
    notifier.alive()
    notifier.stopping()
