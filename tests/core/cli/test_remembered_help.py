"""The cache of the help, in the home of a user who may be another one than root."""

import os
from pathlib import Path

import pytest

from temper_core.cli.remembered import recall, remember

STRANGER = 65534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / ".cache"))
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


def test_a_text_is_kept_for_its_user_only(home):
    remember("help", "how to use it\n")

    assert recall("help") == "how to use it\n"
    assert (home / ".cache/temper-agent/help").stat().st_mode & 0o077 == 0


def test_a_link_in_place_of_the_file_is_not_followed(home, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious\n")
    cache = home / ".cache/temper-agent"
    cache.mkdir(parents=True)
    (cache / f"help.{os.getpid()}").symlink_to(precious)

    remember("help", "how to use it\n")

    assert precious.read_text() == "precious\n"
    assert recall("help") is None


@as_root
@pytest.mark.parametrize("what", ["home", "home/.cache", "home/.cache/temper-agent"])
def test_nothing_is_kept_in_another_users_directory(home, tmp_path, what):
    (home / ".cache/temper-agent").mkdir(parents=True)
    os.chown(tmp_path / what, STRANGER, STRANGER)

    remember("help", "how to use it\n")

    assert not list((home / ".cache/temper-agent").iterdir())


@as_root
def test_a_link_of_another_user_leads_nowhere(home, tmp_path):
    """The texts with an outdated stamp are removed: here they would be any files."""
    files = tmp_path / "files"
    files.mkdir()
    (files / "precious").write_text("precious\n")
    (home / ".cache").mkdir()
    link = home / ".cache/temper-agent"
    link.symlink_to(files)
    os.lchown(link, STRANGER, STRANGER)

    remember("help", "how to use it\n")

    assert [path.name for path in files.iterdir()] == ["precious"]


@pytest.mark.parametrize("mode", [0o1777, 0o777])
def test_nothing_is_kept_where_every_user_may_put_a_link(home, mode):
    """As with HOME=/tmp. A link may come after any look, and lead the removal of texts to files."""
    home.chmod(mode)

    remember("help", "how to use it\n")

    assert not list(home.iterdir())


@as_root
def test_a_text_of_another_user_is_not_shown(home):
    remember("help", "how to use it\n")
    os.chown(home / ".cache/temper-agent/help", STRANGER, STRANGER)

    assert recall("help") is None


@pytest.mark.parametrize("cache", ["relative", "."])
def test_a_relative_cache_is_one_too(monkeypatch, tmp_path, cache):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", cache)

    remember("help", "how to use it\n")

    assert recall("help") == "how to use it\n"
    assert Path(cache, "temper-agent/help").is_file()
