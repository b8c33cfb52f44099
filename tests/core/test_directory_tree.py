"""Directory trees that others have made, and directories that the agent makes."""

import os
import stat
from pathlib import Path

import pytest

from temper_core.directory_tree import directories_below, make_directories, nearest_existing

DEEP = 1_200
"""More levels than the interpreter allows calls within each other."""


@pytest.fixture
def deep(tmp_path):
    """Return a directory with DEEP levels of directories below it, and remove them in the end."""
    descriptors = [os.open(tmp_path, os.O_DIRECTORY)]
    for _ in range(DEEP):
        os.mkdir("a", dir_fd=descriptors[-1])
        descriptors.append(os.open("a", os.O_DIRECTORY, dir_fd=descriptors[-1]))
        if len(descriptors) > 2:
            os.close(descriptors.pop(0))
    for descriptor in descriptors:
        os.close(descriptor)
    yield tmp_path
    for depth in range(DEEP, 0, -1):
        Path(f"{tmp_path}{'/a' * depth}").rmdir()


def test_a_tree_of_a_thousand_levels_is_read(deep):
    assert len(list(directories_below(deep))) == DEEP + 1


def test_a_tree_is_read_from_its_top_to_a_bound_and_without_its_links(tmp_path):
    for name in ("a/x", "b", "c"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("/")
    (tmp_path / "file").touch()

    found = [path.removeprefix(str(tmp_path)) for path in directories_below(tmp_path)]

    assert found[0] == ""
    assert sorted(found) == ["", "/a", "/a/x", "/b", "/c"]
    assert found[-1] == "/a/x"
    assert len(list(directories_below(tmp_path, 3))) == 3


def test_a_directory_that_is_gone_has_none_below_it(tmp_path):
    assert list(directories_below(tmp_path / "gone")) == [str(tmp_path / "gone")]


@pytest.fixture
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_umask")
@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_directories_are_made_for_their_owner_whatever_the_umask_is(tmp_path, mode):
    path = tmp_path / "a" / "b" / "c"

    for _ in range(2):
        make_directories(path, mode)

    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, *path.parents[:2])] == [
        mode,
        0o755,
        0o755,
    ]


def test_a_file_in_the_place_of_a_directory_is_an_error(tmp_path):
    (tmp_path / "a").touch()

    with pytest.raises(FileExistsError):
        make_directories(tmp_path / "a")
    with pytest.raises(NotADirectoryError):
        make_directories(tmp_path / "a" / "b")
    with pytest.raises(FileNotFoundError):
        make_directories(Path("/proc/no-such-place/below"))


def test_the_nearest_place_that_exists_is_found_below_files_too(tmp_path):
    (tmp_path / "file").touch()
    missing = "/".join(["a"] * DEEP)

    assert nearest_existing(tmp_path) == tmp_path
    assert nearest_existing(tmp_path / missing) == tmp_path
    assert nearest_existing(tmp_path / "file/below") == tmp_path / "file"


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_a_place_that_may_not_be_looked_at_is_refused(tmp_path):
    tmp_path.chmod(0o700)

    os.seteuid(65534)
    try:
        with pytest.raises(PermissionError):
            nearest_existing(tmp_path / "below")
    finally:
        os.seteuid(0)
