import os
import select
import shutil
from pathlib import Path

import pytest

from temper_core.file_watch.path_watch import SURE_S, PathWatch


@pytest.fixture
def watching():
    """Watch a path, with whatever options, until the test ends."""
    made = []

    def build(path, **options):
        watch = PathWatch(path, **options)
        made.append(watch)
        watch.arm()
        return watch

    yield build
    for watch in made:
        watch.close()


def has_news(watch):
    return bool(select.select([watch.fileno()], [], [], 0)[0])


def test_a_file_that_is_made_is_heard_until_the_next_look(watching, tmp_path):
    watch = watching(tmp_path / "brake")
    before = has_news(watch)

    (tmp_path / "brake").touch()

    assert (before, has_news(watch)) == (False, True)
    watch.arm()
    assert not has_news(watch)


def test_a_file_that_is_taken_away_is_heard(watching, tmp_path):
    (tmp_path / "brake").touch()
    watch = watching(tmp_path / "brake")

    (tmp_path / "brake").unlink()

    assert has_news(watch)


def test_a_file_below_directories_that_do_not_exist_yet_is_heard_once_they_do(watching, tmp_path):
    watch = watching(tmp_path / "lib/temper/brake")

    (tmp_path / "lib").mkdir()
    of_the_first = has_news(watch)
    watch.arm()
    (tmp_path / "lib/temper").mkdir()
    of_the_second = has_news(watch)
    watch.arm()
    (tmp_path / "lib/temper/brake").touch()

    assert (of_the_first, of_the_second, has_news(watch)) == (True, True, True)


def test_directories_that_were_made_all_at_once_hide_no_file(watching, tmp_path):
    watch = watching(tmp_path / "lib/temper/brake")
    (tmp_path / "lib/temper").mkdir(parents=True)
    watch.arm()

    (tmp_path / "lib/temper/brake").touch()

    assert has_news(watch)


def test_a_directory_above_that_is_moved_away_is_heard_and_so_is_its_successor(watching, tmp_path):
    (tmp_path / "lib/temper").mkdir(parents=True)
    watch = watching(tmp_path / "lib/temper/brake")

    (tmp_path / "lib").rename(tmp_path / "old")
    of_the_move = has_news(watch)
    watch.arm()
    (tmp_path / "lib/temper").mkdir(parents=True)
    watch.arm()
    (tmp_path / "old/temper/brake").touch()
    of_the_old = has_news(watch)
    (tmp_path / "lib/temper/brake").touch()

    assert (of_the_move, of_the_old, has_news(watch)) == (True, False, True)


def test_what_happens_in_a_directory_is_heard_where_that_is_asked_for(watching, tmp_path):
    folder = tmp_path / "profiles"
    folder.mkdir()
    (folder / "web.toml").write_text("one")
    outside, inside = watching(folder), watching(folder, inside=True)

    (folder / "web.toml").write_text("two")

    assert (has_news(outside), has_news(inside)) == (False, True)


def test_a_directory_that_is_replaced_is_heard_in_its_new_shape(watching, tmp_path):
    folder = tmp_path / "profiles"
    folder.mkdir()
    watch = watching(folder, inside=True)
    shutil.rmtree(folder)
    folder.mkdir()
    of_the_change = has_news(watch)
    watch.arm()

    (folder / "web.toml").touch()

    assert (of_the_change, has_news(watch)) == (True, True)


def test_all_is_heard_on_a_file_system_of_this_machine_alone(watching, tmp_path):
    assert watching(tmp_path / "brake").is_heard


def test_nothing_is_promised_where_inotify_does_not_tell_all(watching):
    assert not watching("/proc/sys/kernel/no-such-file").is_heard


def test_what_cannot_be_listened_to_is_not_heard_and_no_error(tmp_path):
    watch = PathWatch(tmp_path / "brake")
    watch.close()

    watch.arm()

    assert (watch.is_heard, watch.fileno()) == (False, -1)


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else needs root")
def test_what_cannot_be_listened_to_at_its_end_holds_no_watch_on_the_way_there(tmp_path):
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    (tmp_path / "closed").mkdir(mode=0o711)
    watch = PathWatch(tmp_path / "closed/brake")
    os.seteuid(65534)
    try:
        watch.arm()
    finally:
        os.seteuid(0)

    held = Path(f"/proc/self/fdinfo/{watch.fileno()}").read_text().count("inotify wd:")
    watch.close()

    assert (watch.is_heard, held) == (False, 0)


def test_where_a_link_on_the_way_leads_to_by_now_is_found_out_in_time(watching, tmp_path):
    now = [0.0]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "lib").symlink_to("one")
    watch = watching(tmp_path / "lib/brake", clock=lambda: now[0])
    (tmp_path / "lib").unlink()
    (tmp_path / "lib").symlink_to("two")

    watch.arm()
    (tmp_path / "two/brake").touch()
    before = has_news(watch)
    now[0] += SURE_S
    watch.arm()
    (tmp_path / "two/brake").unlink()

    assert (before, has_news(watch)) == (False, True)


def test_a_descriptor_is_not_kept_after_the_end(tmp_path):
    watch = PathWatch(tmp_path / "brake")
    descriptor = watch.fileno()

    watch.close()

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
