"""Files that commands of the trainer make."""

import os
import stat

import pytest

from temper_plugin_trainer.output_files import PRIVATE, SHARED, reserved, write_whole
from temper_plugin_trainer.refining.session import write_atomically


@pytest.fixture(autouse=True)
def _usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("given", "mode"), [((), 0o600), ((SHARED,), 0o644)])
def test_a_file_is_its_owners_alone_unless_it_is_made_to_be_shared(tmp_path, given, mode):
    path = tmp_path / "shop.json"

    with reserved(path, *given) as file:
        while_open = mode_of(path)
        write_whole(file, b"threads", path)

    assert (while_open, mode_of(path), path.read_bytes()) == (mode, mode, b"threads")


def test_an_observation_in_a_record_is_its_owners_alone(tmp_path):
    path = tmp_path / "bundle.gz"

    write_atomically(path, b"threads", PRIVATE)

    assert (mode_of(path), path.read_bytes()) == (0o600, b"threads")


def test_a_report_in_a_record_can_be_read_by_others(tmp_path):
    path = tmp_path / "REPORT.md"

    write_atomically(path, "better")

    assert (mode_of(path), path.read_text()) == (0o644, "better")


def test_what_a_killed_run_left_gives_an_observation_no_wider_mode(tmp_path):
    path, left = tmp_path / "bundle.gz", tmp_path / ".bundle.gz.new"
    left.write_bytes(b"half")
    left.chmod(0o644)

    write_atomically(path, b"threads", PRIVATE)

    assert (mode_of(path), path.read_bytes()) == (0o600, b"threads")
    assert not left.exists()
