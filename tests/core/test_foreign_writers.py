"""Which other users may change a file that the agent trusts."""

import os
import struct
from pathlib import Path

import pytest

from temper_core.foreign_writers import ACCESS_LIST, foreign_writer

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")
OTHER = 12345


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "etc" / "agent.toml"
    path.parent.mkdir(mode=0o755)
    path.write_text("")
    path.chmod(0o644)
    return path


def test_a_file_of_this_user_alone_has_no_other_writer(file):
    assert foreign_writer(file) == ""


def test_a_file_that_every_user_may_write_is_named(file):
    file.chmod(0o666)

    assert foreign_writer(file) == f"every user may write {file}"


def test_a_directory_that_every_user_may_write_is_named(file):
    file.parent.chmod(0o777)

    assert foreign_writer(file) == f"every user may write {file.parent}"


def test_a_sticky_directory_lets_nobody_replace_it(file):
    file.parent.chmod(0o1777)

    assert foreign_writer(file) == ""


@needs_root
def test_a_file_of_another_user_and_one_of_his_group_are_named(file):
    os.chown(file, OTHER, 0)
    of_user = foreign_writer(file)
    os.chown(file, 0, OTHER)
    file.chmod(0o664)

    assert of_user == f"user {OTHER} owns {file}"
    assert foreign_writer(file) == f"group {OTHER} may write {file}"


def test_the_target_of_a_link_counts(file, tmp_path):
    file.chmod(0o666)
    (tmp_path / "link").symlink_to(file)

    assert foreign_writer(tmp_path / "link") == f"every user may write {file}"


def test_a_directory_with_a_link_that_every_user_may_repoint_is_named(file, tmp_path):
    links = tmp_path / "links"
    links.mkdir()
    links.chmod(0o777)
    (links / "agent.toml").symlink_to(file)

    assert foreign_writer(links / "agent.toml") == f"every user may write {links}"


def test_a_directory_in_the_middle_of_a_chain_of_links_is_named(file, tmp_path):
    middle = tmp_path / "home"
    middle.mkdir()
    (middle / "current").symlink_to("../etc")
    (tmp_path / "links").symlink_to(tmp_path / "home" / "current")
    path = tmp_path / "links" / "agent.toml"
    before = foreign_writer(path)
    middle.chmod(0o777)

    assert path.samefile(file)
    assert (before, foreign_writer(path)) == ("", f"every user may write {middle}")


@needs_root
def test_a_link_of_another_user_in_a_sticky_directory_is_named(file, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    link = shared / "agent.toml"
    link.symlink_to(file)
    before = foreign_writer(link)
    os.chown(link, OTHER, OTHER, follow_symlinks=False)

    assert (before, foreign_writer(link)) == ("", f"user {OTHER} owns {link}")


def test_a_parent_after_a_link_is_that_of_its_target(file, tmp_path):
    (tmp_path / "far" / "deep").mkdir(parents=True)
    (tmp_path / "far" / "agent.toml").write_text("")
    (tmp_path / "far" / "agent.toml").chmod(0o666)
    (file.parent / "link").symlink_to(tmp_path / "far" / "deep")

    assert foreign_writer(file.parent / "link" / ".." / "agent.toml").startswith("every user")


@pytest.mark.parametrize("name", ["none", "loop"])
def test_what_is_not_there_has_no_writer(tmp_path, name):
    (tmp_path / "loop").symlink_to("loop")

    assert foreign_writer(tmp_path / name) == ""


USER, GROUP = 0x02, 0x08
ANY = 0xFFFF_FFFF


def set_access_list(path, tag, number, rights, mask):
    """Let a user or a group have *rights* to *path*, as setfacl(1) does."""
    entries = [(1, 7, ANY), (tag, rights, number), (4, 5, ANY), (0x10, mask, ANY), (0x20, 5, ANY)]
    packed = b"".join(struct.pack("<HHI", *entry) for entry in sorted(entries))
    try:
        os.setxattr(path, ACCESS_LIST, struct.pack("<I", 2) + packed)
    except OSError as error:
        pytest.skip(f"the file system has no access control lists: {error}")


@pytest.mark.parametrize(("tag", "who"), [(USER, "user"), (GROUP, "group")])
def test_whoever_an_access_control_list_lets_write_is_named(file, tag, who):
    set_access_list(file.parent, tag, OTHER, 7, 7)

    expected = f"{who} {OTHER} may write {file.parent}, by its access control list"
    assert foreign_writer(file) == expected


@pytest.mark.parametrize(("rights", "mask"), [(5, 7), (7, 5)])
def test_who_may_only_read_by_an_access_control_list_is_not_named(file, rights, mask):
    set_access_list(file, USER, OTHER, rights, mask)

    assert foreign_writer(file) == ""


@pytest.mark.parametrize("way", ["agent.toml", "missing/agent.toml"])
@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_whoever_may_make_a_missing_file_is_named(tmp_path, way, mode):
    """The file may have been removed for the time of this look alone."""
    tmp_path.chmod(mode)

    assert foreign_writer(tmp_path / way) == f"every user may write {tmp_path}"


def test_a_link_to_what_another_user_may_make_counts(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o1777)
    (tmp_path / "link").symlink_to(tmp_path / "open/agent.toml")

    assert foreign_writer(tmp_path / "link") == f"every user may write {tmp_path / 'open'}"


def test_a_file_that_vanishes_between_two_looks_is_not_trusted(file, monkeypatch):
    look, looks = Path.lstat, iter((True, False))

    def looked(path):
        if path == file and not next(looks):
            file.unlink()
        return look(path)

    monkeypatch.setattr(Path, "lstat", looked)

    assert foreign_writer(file) == f"somebody removes {file}"
