"""The lock leaves its directory as it was."""

import pytest

from temper_plugin_tracer.capture.node_lock import NodeLock


@pytest.mark.parametrize("is_there", [False, True])
def test_a_directory_that_the_lock_has_made_goes_with_it(tmp_path, is_there):
    directory = tmp_path / "run"
    if is_there:
        directory.mkdir()
    lock = NodeLock(directory)

    for _ in range(2):
        assert lock.take({"by": "me"}) is None
        assert [path.name for path in directory.iterdir()] == ["trace.lock"]
        lock.release()
        assert directory.exists() == is_there


def test_a_directory_that_another_agent_uses_by_now_stays(tmp_path):
    directory = tmp_path / "run"
    lock = NodeLock(directory)
    lock.take({"by": "me"})
    (directory / "agent.sock").touch()

    lock.release()

    assert [path.name for path in directory.iterdir()] == ["agent.sock"]


def test_a_directory_that_goes_before_the_file_is_made_is_made_again(tmp_path, monkeypatch):
    directory = tmp_path / "run"
    lock = NodeLock(directory)

    def opened_late(_lock):
        monkeypatch.undo()
        raise FileNotFoundError(directory)

    monkeypatch.setattr(NodeLock, "_opened", opened_late)

    assert lock.take({"by": "me"}) is None
    assert NodeLock(directory).take({"by": "other"}) == {"by": "me"}
    lock.release()
