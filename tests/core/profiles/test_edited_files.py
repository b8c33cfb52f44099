"""Profile files that are edited: what is read again, and what outlives a mistake."""

import itertools
import os
import time

import pytest

from temper_core import documents
from temper_core.profiles.files import LARGEST_PROFILE_BYTES, MOST_FILES, ProfileFiles
from temper_core.records.profiles import LoadedProfile

A_DAY_NS = 86_400_000_000_000


@pytest.fixture
def files(write):
    return ProfileFiles(write.directory)


@pytest.fixture
def reads(monkeypatch):
    """Note which files are read, by name."""
    read, names = documents.read_text, []

    def noting(path, **more):
        names.append(path.name)
        return read(path, **more)

    monkeypatch.setattr(documents, "read_text", noting)
    return names


def ids(entries):
    return [entry.profile.id for entry in entries if isinstance(entry, LoadedProfile)]


def failures(entries):
    return [entry for entry in entries if not isinstance(entry, LoadedProfile)]


def test_an_edited_file_says_what_it_says_now(files, write):
    write("a.toml", id="one")
    before = files.look()

    write("a.toml", id="two")

    assert (ids(before), ids(files.look())) == (["one"], ["two"])


def test_an_edit_of_the_same_length_within_a_moment_is_seen(files, write):
    said = itertools.cycle(["one", "two", "six"])

    for _ in range(60):
        wanted = next(said)
        write("a.toml", id=wanted)
        assert ids(files.look()) == [wanted]


def test_files_that_come_and_go_are_followed_and_so_is_the_directory(files, write):
    path = write("a.toml", id="one")
    first = files.look()

    write("b.toml", id="two")
    path.unlink()
    second = files.look()
    (write.directory / "b.toml").unlink()
    write.directory.rmdir()
    third = files.look()
    write.directory.mkdir()
    write("c.toml", id="three")

    assert [ids(each) for each in (first, second, third)] == [["one"], ["two"], []]
    assert failures(third) == []
    assert ids(files.look()) == ["three"]


def test_only_files_that_changed_are_read_again(write, reads):
    files = ProfileFiles(write.directory, clock_ns=lambda: time.time_ns() + A_DAY_NS)
    write("a.toml", id="one")
    bad = write("b.toml", text="id = ")
    first = files.look()

    assert files.look() == first
    bad.write_text("id = 1")
    files.look()

    assert reads == ["a.toml", "b.toml", "b.toml"]


def test_a_file_that_was_only_just_written_is_read_until_it_has_settled(files, write, reads):
    write("a.toml", id="one")

    first = files.look()

    assert files.look() == first
    assert reads == ["a.toml", "a.toml"]


@pytest.mark.parametrize("spoilt", ["", "id = ", 'id = "one"\ncolour = 3\n', "\0"])
def test_the_last_good_version_of_a_spoilt_file_stays_and_the_failure_says_so(files, write, spoilt):
    path = write("a.toml", id="one")
    good = files.look()

    write("a.toml", text=spoilt)
    spoiled = files.look()
    write("a.toml", id="two")

    [failure] = failures(spoiled)
    assert spoiled == (*good, failure)
    assert (failure.source, failure.profile) == (str(path), "one")
    assert failure.reason.endswith("; its last good version stays in force")
    assert ids(files.look()) == ["two"]
    assert failures(files.look()) == []


@pytest.mark.parametrize("instead", ["folder", "pipe", "dangling", "large"])
def test_what_takes_the_place_of_a_good_file_and_is_none_leaves_it_in_force(files, write, instead):
    path = write("a.toml", id="one")
    files.look()

    path.unlink()
    {
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "dangling": lambda: path.symlink_to("nowhere"),
        "large": lambda: path.write_text("#" * (LARGEST_PROFILE_BYTES + 1)),
    }[instead]()
    told = files.look()

    assert ids(told) == ["one"]
    assert len(failures(told)) == 1


def test_a_spoilt_file_that_is_removed_takes_its_last_good_version_along(files, write):
    write("a.toml", id="one")
    files.look()
    path = write("a.toml", text="id = ")
    files.look()

    path.unlink()

    assert files.look() == ()


def test_a_file_that_was_never_good_stands_for_nothing(files, write):
    write("a.toml", text='id = "one"')

    [failure] = files.look()

    assert failure.profile == "one"
    assert "stays in force" not in failure.reason


def test_a_sound_file_has_its_id_before_what_a_spoilt_one_said(files, write):
    write("a.toml", id="one")
    files.look()

    write("a.toml", text="id = ")
    sound = write("b.toml", id="one")
    told = files.look()

    [loaded] = [entry for entry in told if isinstance(entry, LoadedProfile)]
    assert loaded.source == str(sound)
    assert "stays in force" not in failures(told)[0].reason


def test_the_order_of_the_files_stays_where_one_is_spoilt(files, write):
    write("a.toml", id="one")
    write("b.toml", id="two")
    files.look()

    write("a.toml", text="id = ")

    assert ids(files.look()) == ["one", "two"]


def test_a_directory_that_cannot_be_listed_keeps_what_it_held(files, write):
    write("a.toml", id="one")
    files.look()

    write.directory.rename(write.directory.parent / "away")
    write.directory.write_text("not a directory")
    told = files.look()

    assert ids(told) == ["one"]
    assert [(each.source, each.reason) for each in failures(told)] == [
        (str(write.directory), "Not a directory")
    ]


def test_the_swap_of_a_mounted_config_map_is_seen(write):
    files = ProfileFiles(write.directory, clock_ns=lambda: time.time_ns() + A_DAY_NS)
    mount(write, "..2026_01", search="one", web="web")
    first = files.look()

    mount(write, "..2026_02", search="two")
    dangling = files.look()
    (write.directory / "web.toml").unlink()
    second = files.look()

    assert (ids(first), ids(second)) == (["one", "web"], ["two"])
    assert ids(dangling) == ["two", "web"]
    assert failures(second) == []


def mount(write, version, **files):
    """Bring a version of a ConfigMap into force as the kubelet does: all its files at once."""
    (write.directory / version).mkdir()
    for name, profile_id in files.items():
        write(f"{version}/{name}.toml", id=profile_id)
        link = write.directory / f"{name}.toml"
        if not link.is_symlink():
            link.symlink_to(f"..data/{name}.toml")
    (write.directory / "..data_tmp").symlink_to(version)
    (write.directory / "..data_tmp").rename(write.directory / "..data")


def test_of_too_many_files_the_first_by_name_are_read(files, write):
    for number in range(MOST_FILES + 2):
        (write.directory / f"{number:04}.toml").symlink_to("nowhere")

    told = files.look()

    assert len(told) == MOST_FILES + 1
    assert "1002 profiles" in told[0].reason


def test_files_that_are_too_large_together_are_left_out_from_the_end(files, write, monkeypatch):
    for name in "abc":
        write(f"{name}.toml", id=name)
    size = (write.directory / "a.toml").stat().st_size
    monkeypatch.setattr("temper_core.profiles.files.MOST_BYTES", 2 * size)

    told = files.look()

    assert [each.profile for each in told[:1]] == [""]
    assert "3 profiles; those after the first 2 are left out" in told[0].reason
    assert [each.profile.id for each in told[1:]] == ["a", "b"]


@pytest.mark.parametrize("pattern", ["(" * 5000 + ")" * 5000, "(a{1000}){1000}", "("])
def test_a_pattern_that_cannot_be_compiled_is_a_failure(files, write, pattern):
    text = '[[thread_groups]]\nname = "hot"\nmatch = [{ comm_pattern = "%s" }]\n'
    write("a.toml", extra=text % pattern)

    [failure] = files.look()

    assert "thread_groups[0].match[0].comm_pattern: must be" in failure.reason
