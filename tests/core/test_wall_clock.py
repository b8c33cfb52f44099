"""The wall clock may jump: nothing that stands or expires depends on it."""

import re
from pathlib import Path

import pytest

import temper_core
from temper_core.profiles.trials import TrialBook
from temper_core.records.profiles import WorkloadProfile
from temper_core.records.thread_groups import ThreadGroup
from temper_core.safe_mode.requests import SafeModeRequests

READS = re.compile(r"time\.time\b|time\.time_ns|datetime\.now|datetime\.utcnow|date\.today")
READERS = {
    "disk_thread.py": "since when a disk has not answered, to be shown",
    "events/event_log.py": "the time of an event, to be shown; numbers order events",
    "events/query.py": "an age in a question about events",
    "observe/observer.py": "the time of a snapshot, to be shown, beside its monotonic one",
    "profiles/completion.py": "the date on which a profile's evidence expires; a warning only",
    "profiles/files.py": "whether a file's change time is so recent that it may change unnoticed",
    "profiles/trials.py": "the end of a trial, to be shown; it ends by the monotonic clock",
    "safe_mode/host_file.py": "the start of a request, to be shown",
    "safe_mode/requests.py": "the start of a request, to be shown",
    "safe_mode/state_file.py": "the start of a request, to be shown",
    "scheduler/clocks.py": "the start of a mode, to be shown",
    "testing.py": "the time of an event that a test records",
}
"""The modules of the core that read the wall clock, and why a jump is harmless there."""

JUMPS = [-10 * 365 * 86_400.0, -3_600.0, 3_600.0, 10 * 365 * 86_400.0]
PROFILE = WorkloadProfile("tuned", (ThreadGroup("rest"),))
START = 1_800_000_000.0


@pytest.mark.parametrize("jump", JUMPS)
def test_a_trial_neither_ends_nor_lasts_by_a_jump(monkeypatch, jump):
    seconds = [100.0]
    book = TrialBook(lambda: ["shop/web"], clock=lambda: seconds[0])
    trial = book.start("test", PROFILE, ["shop/web"], 60.0)

    monkeypatch.setattr("time.time", lambda: START + jump)

    assert trial.is_active()
    assert book.due_at() == 160.0
    seconds[0] = 161.0
    assert not trial.is_active()


@pytest.mark.parametrize("jump", JUMPS)
def test_requests_stand_over_a_jump_and_over_a_restart(tmp_path, jump):
    wall = [START]
    file, state = tmp_path / "safe-mode", tmp_path / "requests.json"
    requests = SafeModeRequests(file, state, wall=lambda: wall[0])
    requests.add("cli", "before")
    file.touch()

    wall[0] = START + jump
    requests.poll_file()
    requests.add("alice", "after")
    again = SafeModeRequests(file, state, wall=lambda: wall[0])

    assert set(requests.active()) == {"cli", "alice", "file"}
    assert set(again.active()) == {"cli", "alice", "file"}
    assert again.active()["cli"].since == START


def test_a_request_made_before_the_clock_was_set_stands(tmp_path):
    requests = SafeModeRequests(tmp_path / "safe-mode", tmp_path / "state", wall=lambda: 0.0)

    requests.add("cli", "")

    assert "cli" in SafeModeRequests(tmp_path / "safe-mode", tmp_path / "state").active()


def test_every_reader_of_the_wall_clock_is_known():
    root = Path(temper_core.__file__).parent
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if READS.search(path.read_text(encoding="utf-8"))
    }

    assert found == set(READERS)
