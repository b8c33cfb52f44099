import gzip
import json

import pytest

from temper_core.plan import ProfileCatalogue, decide
from temper_core.profiles.documents import parse_profile
from temper_core.records.profiles import LoadedProfile
from temper_core.records.steering import Steering
from temper_core.rehearsal.reader import Recording
from temper_core.rehearsal.recording_format import recording_document
from temper_core.rehearsal.writer import RecordingWriter
from temper_core.settings import Settings
from temper_core.testing import make_machine, make_pod, make_snapshot, make_thread

PROFILE = """
id = "shop"
fingerprint = { images = ["*/web:*"] }
[[thread_groups]]
name = "front"
treatment = "latency"
match = [{ comm_prefix = "front" }]
[[thread_groups]]
name = "rest"
"""
MACHINE = make_machine(8)


@pytest.fixture
def catalogue():
    return ProfileCatalogue(
        (LoadedProfile(parse_profile(PROFILE, "shop.toml"), "shop.toml", True),)
    )


@pytest.fixture
def web():
    return make_pod("web", priority=200_000, cgroups=("pods/web/",), cpu_request_millis=2000)


@pytest.fixture
def plan_of(catalogue):
    def plan(*pods, steered=True):
        steering = Steering() if steered else None
        return decide(pods, catalogue, MACHINE, Settings(), steering=steering)

    return plan


@pytest.fixture
def look_of():
    """Return a function that makes the snapshot of a look, five seconds after the one before."""

    def look(plan, number, *threads, **changes):
        threads = threads or (make_thread("front-1", cgroup="pods/web/", tid=7),)
        moment = {"at": 1_750_000_000.0 + 5 * number, "monotonic_s": 3600.0 + 5 * number}
        return make_snapshot(*threads, machine=MACHINE, plan=plan, **moment, **changes)

    return look


@pytest.fixture
def write(tmp_path, catalogue):
    """Return a function that records snapshots into a file, and returns its path."""

    def record(*snapshots, name="node.rec", settings=None, max_bytes=1 << 26):
        path = tmp_path / name
        writer = RecordingWriter(path, max_bytes, source="agent")
        for snapshot in snapshots:
            writer.add(recording_document(snapshot, settings or Settings(), catalogue))
        writer.close("the test has ended")
        return path

    return record


@pytest.fixture
def lines_of():
    def read(path):
        raw = path.read_bytes()
        text = gzip.decompress(raw) if path.suffix == ".gz" else raw
        return [json.loads(line) for line in text.splitlines()]

    return read


@pytest.fixture
def read_all():
    """Return a function that reads a recording to its end."""

    def read(path):
        recording = Recording(path)
        return recording.head, list(recording.moments())

    return read
