"""What a restoration does with the state directories of instruments."""

import json
import os
import threading

import pytest

from temper_core import MachineError, Restored
from temper_core.restoring import instrument_directories
from temper_core.restoring.device_values import installed_plugins
from temper_core.restoring.host_files import Sparing, restore_files
from temper_core.restoring.instrument_directories import clear_instruments
from temper_core.restoring.restoration import Restoration
from temper_core.safe_mode.requests import SafeModeRequests


class KernelObjects:
    def withdraw(self):
        pass

    def come_back(self):
        pass


@pytest.fixture
def restore(made):
    def run(**options):
        return restore_files(made.settings, made.roots, Sparing(), **options)

    return run


@pytest.fixture
def restoration(made):
    requests = SafeModeRequests(made.state / "safe-mode", made.state / "requests.json")
    return Restoration(made.settings, requests, KernelObjects(), made.roots)


def test_the_directory_of_every_instrument_goes_installed_or_not(made, restore):
    paths = [made.left_by_an_instrument(name) for name in ("tracer", "trainer")]

    said = restore(is_dry=True)
    done = restore()

    removed = tuple(str(each) for each in (*paths, paths[0].parent, made.state))
    assert said == done == Restored(removed)
    assert not made.state.exists()


def test_strangers_beside_them_are_named_and_stay(made, restore):
    path = made.left_by_an_instrument("tracer")
    folder = path.parent
    made.put(folder / "notes.txt")
    (folder / "public").mkdir(mode=0o755)
    (folder / "Not a name").mkdir(mode=0o700)
    elsewhere = made.put(made.folder / "elsewhere/kept").parent
    (folder / "link").symlink_to(elsewhere)

    done = restore()

    assert done.removed == (str(path),)
    strangers = ("Not a name", "link", "notes.txt", "public")
    assert [(each.path, each.why) for each in done.left] == [
        (str(folder / name), "is not Temper's") for name in strangers
    ]
    assert (elsewhere / "kept").exists()


def test_a_link_in_a_directory_goes_and_what_it_leads_to_stays(made, restore):
    path = made.left_by_an_instrument("tracer")
    elsewhere = made.put(made.folder / "elsewhere/kept").parent
    (path / "folder").symlink_to(elsewhere)
    (path / "file").symlink_to(elsewhere / "kept")
    os.mkfifo(path / "pipe")

    done = restore()

    assert done.left == ()
    assert not path.exists()
    assert (elsewhere / "kept").exists()


@pytest.mark.parametrize("link", ["instruments", "instruments/tracer"])
def test_a_link_in_the_place_of_a_directory_is_not_followed(made, restore, link):
    elsewhere = made.put(made.folder / "elsewhere/tracer/kept").parent
    (made.state / link).parent.mkdir(parents=True, mode=0o700)
    (made.state / link).symlink_to(elsewhere.parent)

    done = restore()

    assert [(each.path, each.why) for each in done.left] == [
        (str(made.state / link), "is not Temper's")
    ]
    assert (elsewhere / "kept").exists()


def test_folders_that_others_may_enter_are_not_the_agents(made, restore):
    made.put(made.state / "instruments/guitar/strings")
    (made.state / "instruments").chmod(0o755)

    done = restore()

    assert [each.path for each in done.left] == [str(made.state / "instruments")]
    assert (made.state / "instruments/guitar/strings").exists()


def test_a_tree_that_is_nested_without_end_is_left_and_named(made, restore):
    path = made.left_by_an_instrument("tracer")
    place = os.open(path, os.O_RDONLY)
    for _ in range(50):
        os.mkdir("deeper", dir_fd=place)
        below = os.open("deeper", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)

    done = restore()

    (left,) = done.left
    assert (left.path, left.is_failure) == (str(path), True)
    assert left.why == "holds directories deeper than 32 levels"


def test_while_a_restoration_stands_nothing_is_written_and_afterwards_it_is(made, restoration):
    made.left_by_an_instrument("tracer")
    heard = []

    restoration.ask("cluster", "uninstalled", heard.append)
    with pytest.raises(MachineError, match="a restoration is active"), restoration.writing():
        pass
    restoration.turn([])
    is_gone = not made.state.exists()
    restoration.withdraw("cluster")

    with restoration.writing():
        assert is_gone
    assert len(heard) == 1


def test_a_restoration_waits_for_what_is_being_written(made, restoration):
    path, heard = made.left_by_an_instrument("tracer"), []
    is_in, may_end = threading.Event(), threading.Event()

    def write():
        with restoration.writing():
            is_in.set()
            may_end.wait(60)

    writer = threading.Thread(target=write)
    writer.start()
    is_in.wait(60)
    restoration.ask("cluster", "uninstalled", heard.append)
    restoration.turn([])
    stayed = path.exists()
    may_end.set()
    writer.join()
    restoration.turn([])

    assert (stayed, path.exists(), len(heard)) == (True, False, 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory to another user")
def test_the_owner_of_the_state_directory_forges_no_record(made, monkeypatch):
    """They may put a directory of theirs in the place of one that has just been looked at."""
    target = made.put(made.folder / "etc/passwd", "as it was")
    folder = made.left_by_an_instrument("power").parent
    forged = made.state / "forged/power"
    forged.mkdir(parents=True)
    value = {"path": str(target), "before": "forged", "now": None}
    (forged / "kernel-values.json").write_text(json.dumps({"values": [value]}))
    for each in (forged.parent, forged):
        os.chown(each, 65534, 65534)
        each.chmod(0o700)

    looked_at = instrument_directories.open_directory

    def swapped(name, parent=None):
        opened = looked_at(name, parent)
        if name == "instruments":
            folder.rename(folder.with_name("moved"))
            forged.parent.rename(folder)
        return opened

    monkeypatch.setattr(instrument_directories, "open_directory", swapped)
    parent = os.open(made.state, os.O_RDONLY)
    clear_instruments(parent, made.state, installed_plugins(made.settings), is_dry=False)
    os.close(parent)

    assert target.read_text() == "as it was"
