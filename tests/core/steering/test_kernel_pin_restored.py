"""A real pin that a killed agent left is taken away by the restoration of the host."""

import pytest
from attrs import evolve

from temper_core.restoring.host_files import Sparing, restore_files
from temper_core.scheduler.host.roots import Roots
from temper_core.settings.models import (
    SafeModeSettings,
    SchedulerSettings,
    ServerSettings,
    Settings,
)


@pytest.fixture
def settings(bpffs, tmp_path):
    return Settings(
        scheduler=SchedulerSettings(steering_pin=str(bpffs / "temper/hints")),
        safe_mode=SafeModeSettings(str(tmp_path / "safe-mode"), str(tmp_path / "state.json")),
        server=ServerSettings(socket=""),
    )


def test_the_pin_and_its_directory_go(kernel, bpffs, settings, tmp_path):
    folder = bpffs / "temper"
    folder.mkdir(mode=0o700)
    kernel.pin(folder / "hints")

    done = restore_files(settings, Roots(run=tmp_path / "run", node=tmp_path / "run"), Sparing())

    assert done.removed == (str(folder / "hints"), str(folder))
    assert done.left == ()
    assert not folder.exists()


def test_somebody_elses_pin_beside_it_stays_and_is_named(kernel, bpffs, settings, tmp_path):
    folder = bpffs / "temper"
    folder.mkdir(mode=0o700)
    kernel.pin(folder / "hints")
    (folder / "hints").rename(folder / "theirs")

    done = restore_files(settings, Roots(run=tmp_path / "run", node=tmp_path / "run"), Sparing())

    assert [each.path for each in done.left] == [str(folder / "theirs")]
    assert (folder / "theirs").exists()


def test_a_pin_path_that_is_on_no_bpf_file_system_is_not_looked_at(settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ordinary")
    notes = folder / "hints"
    notes.write_text("mine")
    elsewhere = evolve(settings, scheduler=SchedulerSettings(steering_pin=str(notes)))

    done = restore_files(elsewhere, Roots(run=folder / "run", node=folder / "run"), Sparing())

    assert (done.removed, done.left) == ((), ())
    assert notes.read_text() == "mine"
