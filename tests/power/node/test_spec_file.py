"""The file with a node's caps: what it must be, and how old it is."""

import json
import os
from datetime import UTC, datetime

import pytest

from temper_core import DocumentError
from temper_plugin_power.node.spec_file import CapSpec, read_spec


def twin(node="n1", updated=None, kind="NodeTwin", **cpu):
    status = {"lastUpdated": updated} if updated else {}
    return {
        "kind": kind,
        "spec": {"nodeName": node, "profile": "eco", "cpu": cpu},
        "status": status,
    }


@pytest.fixture
def put(tmp_path):
    tmp_path.chmod(0o700)

    def write(document, name="twin.json"):
        path = tmp_path / name
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        path.chmod(0o600)
        return path

    return write


def test_watts_percent_and_the_time_of_the_operator_are_read(put):
    updated = "2026-11-26T08:15:04Z"
    path = put(twin(updated=updated, packagePowerCapWatts=120, packagePowerCapPctOfMax=60.5))

    at = datetime(2026, 11, 26, 8, 15, 4, tzinfo=UTC).timestamp()
    assert read_spec(path, "n1") == CapSpec(120.0, 60.5, at)


def test_without_a_time_the_file_was_said_when_it_was_written(put):
    path = put(twin())
    os.utime(path, (1000, 2000))

    assert read_spec(path, "n1") == CapSpec(None, None, 2000.0)


def test_yaml_is_read_by_its_name(put):
    text = "kind: NodeTwin\nspec:\n  nodeName: n1\n  cpu: {packagePowerCapPctOfMax: 60}\n"

    assert read_spec(put(text, "twin.yaml"), "n1").percent == 60.0


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (twin("n2"), "spec.nodeName: must be 'n1', the name of this node, not 'n2'"),
        (twin(kind="Node"), "kind: must be NodeTwin"),
        (twin(packagePowerCapWatts=0), "packagePowerCapWatts: must be a number from 1 to"),
        (twin(packagePowerCapWatts="120"), "packagePowerCapWatts: must be a number"),
        (twin(packagePowerCapWatts=True), "packagePowerCapWatts: must be a number"),
        (twin(packagePowerCapPctOfMax=100.1), "packagePowerCapPctOfMax: must be a number"),
        (twin(packagePowerCapPctOfMax=0), "packagePowerCapPctOfMax: must be a number"),
        (twin(packagePowerCapPctOfMax=float("nan")), "packagePowerCapPctOfMax: must be a number"),
        (twin(updated="yesterday"), "status.lastUpdated: must be a time of RFC 3339"),
        ([], "must be one NodeTwin"),
        ("{", "is not JSON"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(put, document, problem):
    with pytest.raises(DocumentError, match=problem.replace("(", r"\(")):
        read_spec(put(document), "n1")


def test_a_file_that_others_may_write_is_refused(put):
    path = put(twin())
    path.chmod(0o602)

    with pytest.raises(DocumentError, match="only root and the agent"):
        read_spec(path, "n1")


def test_a_file_that_others_may_replace_is_refused(put):
    path = put(twin())
    path.parent.chmod(0o777)

    with pytest.raises(DocumentError, match="only root and the agent"):
        read_spec(path, "n1")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another group")
def test_a_file_that_another_group_may_write_is_refused(put):
    path = put(twin())
    os.chown(path, 0, 65534)
    path.chmod(0o620)

    with pytest.raises(DocumentError, match="only root and the agent"):
        read_spec(path, "n1")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a link to another user")
def test_a_file_behind_a_link_that_another_user_may_change_is_refused(put, tmp_path):
    (tmp_path / "theirs").mkdir()
    link = tmp_path / "theirs/twin.json"
    link.symlink_to(put(twin()))
    os.chown(tmp_path / "theirs", 65534, 65534)
    (tmp_path / "twin-link.json").symlink_to(link)

    with pytest.raises(DocumentError, match="only root and the agent"):
        read_spec(tmp_path / "twin-link.json", "n1")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_a_file_of_another_user_is_refused(put):
    path = put(twin())
    os.chown(path, 65534, 65534)

    with pytest.raises(DocumentError, match="only root and the agent"):
        read_spec(path, "n1")


def test_a_pipe_and_a_missing_file_are_refused(put):
    path = put(twin())
    path.unlink()
    with pytest.raises(DocumentError, match="No such file"):
        read_spec(path, "n1")
    os.mkfifo(path, 0o600)
    with pytest.raises(DocumentError, match="is not a regular file"):
        read_spec(path, "n1")


@pytest.mark.parametrize(
    ("age_s", "is_stale"), [(300, False), (300.1, True), (-60, False), (-60.1, True)]
)
def test_a_spec_is_stale_beyond_its_timeout_and_if_it_is_of_the_future(age_s, is_stale):
    assert CapSpec(None, 60, at=1000.0).is_stale(1000.0 + age_s, 300) == is_stale
