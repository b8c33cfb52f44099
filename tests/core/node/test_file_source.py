import json
import threading
import time

import pytest
from structlog.testing import capture_logs

from temper_core.errors import MachineError
from temper_core.node import file_source
from temper_core.node.podlist_file import read_pod_file
from temper_core.node.sources import builtin_pod_sources
from tests.core.node.trees import make_cgroup
from tests.podlists import NODE, make_podlist

PATIENCE_S = 30.0
UID = "8f1c2d3e-4a5b-6c7d-8e9f-0a1b2c3d4e5f"


def pod_list(*names, uid=UID, node=NODE):
    return {
        "kind": "List",
        "items": [
            {
                "kind": "Pod",
                "metadata": {"name": name, "uid": f"{uid}{number or ''}"},
                "spec": {"nodeName": node, "containers": [{"name": "c"}]},
            }
            for number, name in enumerate(names)
        ],
    }


@pytest.fixture
def listed(host, tmp_path):
    """Write the list, and open the source that reads it."""

    class Listed:
        path = tmp_path / "pods.json"

        def write(self, document):
            self.path.write_text(document if isinstance(document, str) else json.dumps(document))

        def open(self, node=""):
            (source,) = [each for each in builtin_pod_sources() if each.name == "file"]
            return source.open(host.context(file=str(self.path), node=node))

    return Listed()


@pytest.fixture(autouse=True)
def waited_for(monkeypatch):
    """Have each list read within the call, on a slow machine too."""
    monkeypatch.setattr(file_source, "WAIT_S", PATIENCE_S)


@pytest.fixture
def large(monkeypatch):
    """Have each list read for as long as *large* is not set, as one of 100 MB may."""
    is_read = threading.Event()

    def reads(*arguments, **options):
        assert is_read.wait(PATIENCE_S)
        return read_pod_file(*arguments, **options)

    monkeypatch.setattr(file_source, "WAIT_S", 0.0)
    monkeypatch.setattr(file_source, "read_pod_file", reads)
    yield is_read
    is_read.set()


def until_read(source):
    """Return the pods as soon as nothing is read any more."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            pods = source.pods()
        except MachineError:
            pods = None
        if pods is not None and source.stale() is None:
            return pods
        time.sleep(0.01)
    raise AssertionError("the list is still being read")


def names(pods):
    return [pod.name for pod in pods]


def test_a_list_is_read_again_only_when_it_changes(listed):
    listed.write(pod_list("a"))
    source = listed.open()
    first = source.pods()
    again = source.pods()
    listed.write(pod_list("a", "b"))

    changed = source.pods()

    assert again is first
    assert (names(first), names(changed)) == (["a"], ["a", "b"])


def test_a_large_list_of_this_node_is_read_whole(listed):
    listed.write(make_podlist(250, seed=2))

    assert len(listed.open(node=NODE).pods()) > 200
    assert listed.open(node="another").pods() == ()


def test_a_bad_version_leaves_the_last_good_one_and_is_logged_once(listed):
    listed.write(pod_list("a"))
    source = listed.open()
    good = source.pods()
    listed.write('{"kind": "List", "items": [{"kind": "Pod"}]}')

    was_stale = source.stale()
    with capture_logs() as logs:
        during = [source.pods(), source.pods()]
    stale = source.stale()
    listed.write(pod_list("b"))

    assert during == [good, good]
    assert [entry["event"] for entry in logs] == ["pod_list_refused"]
    assert "items[0].metadata.name" in " ".join(logs[0]["problems"])
    assert names(source.pods()) == ["b"]
    assert (was_stale, source.stale()) == (None, None)
    assert stale.age_s >= 0.0
    assert "items[0].metadata.name" in stale.reason


def test_a_pod_that_is_left_out_is_logged(listed):
    served = {"uid": "6a1e", "creationTimestamp": "2026-03-02T08:15:04Z", "name": "odd"}
    odd = {"metadata": {**served, "annotations": {"kubernetes.io/config.mirror": "!"}}}
    good = pod_list("a")

    listed.write({**good, "items": [odd, *good["items"]]})
    with capture_logs() as logs:
        found = names(listed.open().pods())

    assert found == ["a"]
    assert [entry["event"] for entry in logs] == ["pod_left_out"]


def test_a_list_that_is_taken_away_leaves_the_last_good_one(listed):
    listed.write(pod_list("a"))
    source = listed.open()
    good = source.pods()
    listed.path.unlink()

    with capture_logs() as logs:
        kept = [source.pods(), source.pods()]

    assert kept == [good, good]
    assert len(logs) == 1


@pytest.mark.parametrize("content", [None, "{", '{"kind": "List", "items": [3]}'])
def test_without_any_good_version_the_machine_cannot_tell(listed, content):
    if content is not None:
        listed.write(content)
    source = listed.open()

    with pytest.raises(MachineError, match=r"pods\.json: "):
        source.pods()

    listed.write(pod_list("a"))
    assert names(source.pods()) == ["a"]


def test_pods_are_joined_with_their_cgroups_as_these_come_and_go(listed, host):
    listed.write(pod_list("a"))
    source = listed.open()
    before = source.pods()
    path = f"kubepods/burstable/pod{UID}"
    directory = make_cgroup(host.cgroups, path)

    joined = source.pods()
    again = source.pods()
    directory.rmdir()

    assert [pod.cgroups for pod in (*before, *joined)] == [(), (f"{path}/",)]
    assert again is joined
    assert source.pods() == before


def test_a_host_without_cgroups_can_still_read_its_list(listed, host):
    (host.cgroups / "cgroup.controllers").unlink()
    listed.write(pod_list("a"))

    assert names(listed.open().pods()) == ["a"]


def test_a_closed_source_reads_its_file_again(listed):
    listed.write(pod_list("a"))
    source = listed.open()
    before = source.pods()

    source.close()

    assert source.pods() == before


def test_a_list_that_takes_longer_than_a_call_may_is_read_meanwhile(listed, large):
    listed.write(pod_list("a"))
    source = listed.open()

    for _ in range(2):
        with pytest.raises(MachineError, match=r"pods\.json: is being read, for \d+ s by now"):
            source.pods()
    large.set()

    assert names(until_read(source)) == ["a"]


def test_the_last_version_stays_in_force_while_the_next_is_read(listed, large):
    large.set()
    listed.write(pod_list("a"))
    source = listed.open()
    first = until_read(source)
    large.clear()
    listed.write(pod_list("a", "b"))

    during = [source.pods(), source.pods()]
    stale = source.stale()
    listed.write(pod_list("a", "b", "c"))
    large.set()

    assert during == [first, first]
    assert "is being read" in stale.reason
    assert names(until_read(source)) == ["a", "b", "c"]
