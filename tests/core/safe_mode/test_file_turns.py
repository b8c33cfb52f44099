"""Two processes that change the file by which an operator requests safe mode."""

import fcntl
import os
import threading
import time

import pytest

from temper_core.safe_mode.file_turns import LONGEST_WAIT_S
from temper_core.safe_mode.host_file import SafeModeFile
from tests.patience import PATIENCE_S


class SlowFile(SafeModeFile):
    """A process that is held up between its look at the file and its change."""

    has_read = threading.Event()

    def _text(self):
        text = super()._text()
        self.has_read.set()
        time.sleep(0.3)
        return text


@pytest.mark.parametrize("change", ["add", "remove"])
def test_a_request_made_during_anothers_change_is_not_lost(tmp_path, change):
    path = tmp_path / "safe-mode"
    SafeModeFile(path).add("a", "")
    SlowFile.has_read.clear()
    other = SlowFile(path)
    act = other.add if change == "add" else other.remove
    changing = threading.Thread(target=act, args=("a", "again") if change == "add" else ("a",))

    changing.start()
    assert SlowFile.has_read.wait(PATIENCE_S)
    SafeModeFile(path).add("b", "")
    changing.join()

    assert "by b (" in "".join(SafeModeFile(path).lines() or ())


def test_a_stranger_who_holds_the_directory_does_not_keep_safe_mode_from_being_requested(tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    begun = time.monotonic()

    assert SafeModeFile(tmp_path / "safe-mode").add("cli", "why") == ""

    assert time.monotonic() - begun < LONGEST_WAIT_S + PATIENCE_S / 4
    assert SafeModeFile(tmp_path / "safe-mode").request() is not None
    os.close(descriptor)
