"""Every file that the agent or a command reads, with something hostile in its place.

Nothing may hang, take much memory, keep a descriptor or raise what is not a Temper error. For safe
mode every doubt is a request.
"""

import json
import os
import signal
import tracemalloc
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from temper_core.cli.remembered import recall
from temper_core.errors import MachineError, TemperError
from temper_core.events.event_file import EventFile
from temper_core.node.podlist_file import read_pod_file
from temper_core.profiles.files import ProfileFiles, read_profile
from temper_core.restoring.orphans import find_orphans
from temper_core.safe_mode.host_file import SafeModeFile
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.safe_mode.state_file import StateFile
from temper_core.scheduler.host.agent_lock import agent_lock
from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.host.running_agents import lock_holder
from temper_core.scheduler.preflight.node_checks import own_engine
from temper_core.server.token_file import read_tokens
from temper_core.settings import load

LONGEST_S = 20.0
MOST_BYTES = 24 * 1024 * 1024
GIB = 1 << 30
WATCH = 1
"""Descriptors that requests keep for the watch of the host's file."""


def loop(path):
    path.symlink_to(path.name)


def sparse(path):
    with path.open("wb") as file:
        file.truncate(3 * GIB)


def text(content):
    return lambda path: path.write_text(content)


KINDS = {
    "fifo": os.mkfifo,
    "directory": os.mkdir,
    "link-loop": loop,
    "broken-link": lambda path: path.symlink_to("nowhere"),
    "endless-device": lambda path: path.symlink_to("/dev/zero"),
    "sparse-3-gib": sparse,
    "no-utf-8": lambda path: path.write_bytes(b"\xff\xfe\x00\n" * 100),
    "deep-json": text("[" * 200_000),
    "deep-toml": text("a = " + "[" * 200_000),
    "deep-object": text('{"requests":' * 100_000),
    "one-long-line": text("x" * 3_000_000),
    "empty": text(""),
    "unknown-schema-version": text('{"schema_version": 2, "requests": {}}'),
    "schema-version-of-another-type": text('{"schema_version": "1", "requests": {}}'),
    "requests-of-another-type": text('{"schema_version": 1, "requests": []}'),
    "request-of-another-type": text('{"schema_version": 1, "requests": {"a": 1}}'),
    "since-of-another-type": text('{"requests": {"a": {"reason": "", "since": "now"}}}'),
    "since-infinite": text('{"requests": {"a": {"reason": "", "since": Infinity}}}'),
    "null": text("null"),
}


def lock(path):
    with agent_lock(path.parent):
        pass


READERS = {
    "safe-mode": lambda path: SafeModeFile(path).lines(),
    "safe-mode-request": lambda path: SafeModeFile(path).request(),
    "safe-mode-added": lambda path: SafeModeFile(path).add("cli", "why"),
    "safe-mode-removed": lambda path: SafeModeFile(path).remove("cli"),
    "safe-mode-requests.json": lambda path: StateFile(path).read(),
    "events.jsonl": lambda path: EventFile(path).read(),
    "token": read_tokens,
    "agent.toml": load,
    "profile.toml": read_profile,
    "profiles": lambda path: ProfileFiles(path.parent).look(),
    "pods.json": read_pod_file,
    "engine.pid": lambda path: own_engine(Roots(run=path.parent)),
    "engine-next.pid": lambda path: find_orphans(Roots(run=path.parent)),
    "agent.lock": lock,
    "lock-holder": lambda path: lock_holder(Roots(node=path.parent)),
}
NAMES = {
    "safe-mode-request": "safe-mode",
    "safe-mode-added": "safe-mode",
    "safe-mode-removed": "safe-mode",
    "profiles": "one.toml",
    "lock-holder": "agent.lock",
}


@contextmanager
def bounded(*, kept=0):
    """Fail if the body hangs, takes much memory or keeps other than *kept* descriptors."""

    def hangs(*_):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors + kept


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_no_reader_hangs_or_takes_much(tmp_path, reader, kind):
    path = tmp_path / NAMES.get(reader, reader)
    KINDS[kind](path)

    with bounded(), suppress(TemperError, OSError):
        READERS[reader](path)


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_kept_for_the_next_start_holds_it_up(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "temper-agent").mkdir()
    KINDS[kind](tmp_path / "temper-agent/help")

    with bounded():
        assert recall("help") is None


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_has_the_name_of_the_hosts_file_requests_safe_mode(tmp_path, kind):
    KINDS[kind](tmp_path / "safe-mode")

    with bounded(kept=WATCH):
        requests = SafeModeRequests(tmp_path / "safe-mode", tmp_path / "requests.json")

    assert set(requests.active()) == {"file"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_that_leaves_a_doubt_requests_safe_mode_until_it_is_withdrawn(tmp_path, kind):
    state = tmp_path / "requests.json"
    KINDS[kind](state)
    with bounded(kept=WATCH):
        requests = SafeModeRequests(tmp_path / "safe-mode", state)
    standing = requests.active()

    requests.withdraw("unreadable-state")

    assert list(standing) == ["unreadable-state"]
    assert standing["unreadable-state"].reason.isprintable()
    if kind != "directory":  # that is never removed, and the log has it
        assert SafeModeRequests(tmp_path / "safe-mode", state).active() == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_is_kept_whatever_stands_in_the_place_of_the_new_file(tmp_path, kind):
    state = tmp_path / "requests.json"
    KINDS[kind](tmp_path / "requests.json.new")

    with bounded(kept=WATCH):
        requests = SafeModeRequests(tmp_path / "safe-mode", state)
        requests.add("cli", "why")

    assert "cli" in requests.active()
    is_kept = kind != "directory"
    assert state.exists() == is_kept
    assert (requests.defect == "") == is_kept


@pytest.mark.parametrize("kind", ["fifo", "directory", "link-loop", "endless-device"])
def test_a_lock_that_is_no_file_is_an_error_and_never_an_agent_without_a_lock(tmp_path, kind):
    KINDS[kind](tmp_path / "agent.lock")

    with pytest.raises(MachineError, match="is not a regular file"), agent_lock(tmp_path):
        pass


def test_adding_and_removing_loses_no_line_of_a_file_beyond_the_bound(tmp_path):
    file = SafeModeFile(tmp_path / "safe-mode")
    file.add("alice", "why")
    with file.path.open("a") as lines:
        lines.write("another's line\n" * 10_000)
    before = file.path.read_bytes()

    note, removed = file.add("bob", "why"), file.remove("alice")

    assert "is larger than 65536 bytes" in note
    assert not removed
    assert file.path.read_bytes() == before


def test_a_state_of_another_version_names_the_version(tmp_path):
    path = tmp_path / "requests.json"
    path.write_text(json.dumps({"schema_version": 7, "requests": {}}))

    [request] = StateFile(path).read().values()

    assert "schema_version" in request.reason
    assert "7" in request.reason


def test_a_state_in_a_directory_that_is_a_file_holds_no_request(tmp_path):
    (tmp_path / "place").write_text("")

    assert StateFile(Path(tmp_path / "place/requests.json")).read() == {}
