"""The pin's directory on a real BPF file system, mounted for the test."""

import os
import stat
import subprocess

import pytest

from temper_core.errors import MachineError
from temper_core.steering.pin import PinPlace


@pytest.fixture
def place(bpffs):
    return PinPlace(bpffs / "temper" / "hints")


def pin(place):
    """Stand in for a map's pin: to its directory any entry is like another."""
    place.path.mkdir()
    place.path.chmod(0o600)
    place.note()


def test_the_directory_is_made_for_this_user_alone(place):
    place.prepare()

    found = place.path.parent.stat()

    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o700, os.geteuid())


def test_a_directory_that_others_may_enter_is_taken_back(place):
    place.path.parent.mkdir(mode=0o755)

    place.prepare()

    assert stat.S_IMODE(place.path.parent.stat().st_mode) == 0o700


def test_a_directory_of_somebody_else_is_refused_with_a_remedy(place):
    (place.path.parent / "theirs").mkdir(parents=True)
    os.chown(place.path.parent, 65534, 65534)

    with pytest.raises(MachineError, match=r"belongs to uid 65534.*remove it, or set"):
        place.prepare()


def test_an_empty_directory_that_somebody_else_made_first_is_replaced(place):
    place.path.parent.mkdir(mode=0o777)
    os.chown(place.path.parent, 65534, 65534)

    place.prepare()

    found = place.path.parent.lstat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o700, 0)


def test_a_link_that_somebody_else_made_first_is_not_followed(place, bpffs):
    (bpffs / "theirs").mkdir(mode=0o755)
    os.chown(bpffs / "theirs", 65534, 65534)
    place.path.parent.symlink_to(bpffs / "theirs")
    os.lchown(place.path.parent, 65534, 65534)

    with pytest.raises(MachineError, match="is not a directory; remove it"):
        place.prepare()

    found = (bpffs / "theirs").lstat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o755, 65534)


def test_where_no_bpf_file_system_is_mounted_the_remedy_says_how(tmp_path):
    place = PinPlace(tmp_path / "temper" / "hints")

    with pytest.raises(MachineError, match="mount -t bpf -o mode=700 bpf /sys/fs/bpf"):
        place.prepare()

    assert not place.path.parent.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else needs root")
def test_a_file_system_that_only_root_may_enter_is_told(place, bpffs):
    bpffs.chmod(0o700)

    os.seteuid(65534)
    try:
        with pytest.raises(MachineError, match="Permission denied; steering needs root"):
            place.prepare()
        place.sweep()
    finally:
        os.seteuid(0)


def test_a_read_only_file_system_is_named(place, bpffs):
    subprocess.run(["mount", "-o", "remount,ro", str(bpffs)], check=True)

    with pytest.raises(MachineError, match=r"Read-only file system; .*remount,rw"):
        place.prepare()


def test_our_own_pin_is_no_problem_and_a_deleted_one_is(place):
    place.prepare()
    pin(place)

    as_made = place.problem()
    place.path.rmdir()

    assert as_made == ""
    assert place.problem() == f"{place.path} was deleted"


def test_another_pin_in_place_of_ours_is_found_out(place, bpffs):
    place.prepare()
    pin(place)
    place.path.rename(bpffs / "aside")
    place.path.mkdir()

    assert place.problem() == f"{place.path} is not our map any more"


def test_a_pin_that_the_engine_opened_to_everybody_is_closed_again(place):
    place.prepare()
    pin(place)
    place.path.chmod(0o666)

    assert place.problem() == ""
    assert stat.S_IMODE(place.path.stat().st_mode) == 0o600


def test_a_directory_opened_to_others_is_told(place):
    place.prepare()
    pin(place)
    place.path.parent.chmod(0o777)

    assert place.problem() == f"{place.path.parent} is mode 0777 of uid {os.geteuid()}"


def test_nothing_is_left_of_pin_and_directory(place):
    place.prepare()
    target = place.path.parent / "link"
    place.path.symlink_to(target)
    place.note()

    place.remove()

    assert not place.path.parent.exists()


def test_what_somebody_else_put_there_stays(place):
    place.prepare()
    (place.path.parent / "other").mkdir()

    place.remove()

    assert (place.path.parent / "other").exists()


def test_what_an_earlier_agent_left_is_cleared(place):
    place.prepare()
    place.path.symlink_to("elsewhere")

    assert place.clear()
    assert not place.clear()


def test_what_a_killed_agent_left_is_swept_away(place):
    place.prepare()
    place.path.symlink_to("elsewhere")

    place.sweep()

    assert not place.path.parent.exists()


def test_a_file_that_the_setting_names_by_mistake_is_not_swept_away(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("data")

    PinPlace(precious).sweep()

    assert precious.read_text() == "data"
