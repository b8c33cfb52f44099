"""The catalogue of a running agent: follows files, keeps what plugins ship, tells in the log."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from structlog.testing import capture_logs

from temper_core.errors import MachineError
from temper_core.profiles import completion, files
from temper_core.profiles.watch import ProfileWatch
from temper_core.records.profiles import WorkloadProfile
from temper_core.settings.models import ProfileSettings, Settings
from tests.patience import PATIENCE_S


@pytest.fixture
def watch_on(host, write):
    def make(*plugins, **more):
        for number, plugin in enumerate(plugins):
            host.add(plugin, f"plugin{number}")
        return ProfileWatch(
            Settings(profiles=ProfileSettings(directory=str(write.directory))), host, **more
        )

    return make


def ids(catalogue):
    return [loaded.profile.id for loaded in catalogue.profiles]


def test_it_knows_the_profiles_at_once_and_the_same_files_are_no_news(watch_on, write, shipping):
    write("a.toml", id="one")

    watch = watch_on(shipping("web"))
    former = watch.catalogue

    assert ids(former) == ["one", "web"]
    assert not watch.look()
    assert watch.catalogue == former


def test_an_edit_is_news_once_and_shipped_profiles_stay(watch_on, write, shipping):
    path = write("a.toml", id="one")
    watch = watch_on(shipping("web"))

    write("a.toml", id="two")
    looks = [watch.look(), watch.look()]
    edited = watch.catalogue
    path.unlink()
    watch.look()

    assert looks == [True, False]
    assert ids(edited) == ["two", "web"]
    assert ids(watch.catalogue) == ["web"]


def test_a_touched_file_is_no_news(watch_on, write):
    path = write("a.toml", id="one")
    watch = watch_on()

    path.touch()

    assert not watch.look()


def test_what_cannot_be_read_is_news_too(watch_on, write):
    watch = watch_on()

    write("a.toml", text="id = ")

    assert watch.look()
    assert [failure.profile for failure in watch.catalogue.failures] == [""]


def test_each_change_is_told_in_the_log_once(watch_on, write):
    path = write("a.toml", id="one")

    with capture_logs() as logs:
        watch = watch_on()
        write("a.toml", id="two")
        watch.look()
        write("a.toml", text="id = ")
        watch.look()
        watch.look()
        path.unlink()
        watch.look()

    assert [(entry["event"], entry.get("profile")) for entry in logs] == [
        ("profile_loaded", "one"),
        ("profile_loaded", "two"),
        ("profile_dropped", "one"),
        ("profile_not_loaded", None),
        ("profile_dropped", "two"),
    ]
    assert {entry["source"] for entry in logs} == {str(path)}


def test_the_profiles_of_a_plugin_are_one_line_of_the_log(watch_on, shipping):
    with capture_logs() as logs:
        watch_on(shipping("web", "api"), shipping("batch"))

    shown = [(entry["event"], entry["source"], entry["profiles"]) for entry in logs]
    assert shown == [("profiles_loaded", "plugin0", 2), ("profiles_loaded", "plugin1", 1)]


CHILD = 'id = "mine"\nextends = "one"\n'


def test_profiles_of_one_source_are_compared_with_those_of_their_machine_shape(
    watch_on, write, monkeypatch
):
    for cores in range(1, 9):
        write(f"a{cores}.toml", extra=f"machine_shape.cores = {cores}")
    write("child.toml", 'id = "mine"\nextends = "search"\n')
    watch = watch_on()
    compared, equal = [], WorkloadProfile.__eq__
    monkeypatch.setattr(
        WorkloadProfile, "__eq__", lambda *pair: compared.append(pair) or equal(*pair)
    )

    write("z.toml", id="other")
    watch.look()

    assert compared
    assert all(
        one.machine_shape == other.machine_shape for one, other in compared if one is not other
    )


def groups(catalogue, profile_id):
    [found] = [each.profile for each in catalogue.profiles if each.profile.id == profile_id]
    return [group.name for group in found.thread_groups]


def test_a_parent_that_is_edited_changes_its_child_at_the_same_look(watch_on, write):
    write("a.toml", id="one")
    write("b.toml", CHILD)
    watch = watch_on()

    write("a.toml", 'id = "one"\n[[thread_groups]]\nname = "all"\n')

    assert watch.look()
    assert groups(watch.catalogue, "mine") == ["all"]


def test_a_parent_that_vanishes_or_is_spoilt_leaves_its_child_as_it_was(watch_on, write):
    path = write("a.toml", id="one")
    write("b.toml", CHILD)
    watch = watch_on()

    write("a.toml", text="id = ")
    watch.look()
    spoilt = watch.catalogue
    path.unlink()
    watch.look()
    gone = watch.catalogue
    write("a.toml", id="one")
    watch.look()

    assert (ids(spoilt), len(spoilt.failures)) == (["one", "mine"], 1)
    assert ids(gone) == ["mine"]
    assert gone.failures[0].reason.endswith("its last good version stays in force")
    assert (ids(watch.catalogue), watch.catalogue.failures) == (["one", "mine"], ())


def test_a_child_of_what_a_plugin_ships_follows_its_own_file(watch_on, write, shipping):
    write("a.toml", 'id = "web"\nextends = "web"\n[[thread_groups]]\nname = "x"\n'
                    'match = [{ comm_prefix = "x" }]\n')  # fmt: skip
    watch = watch_on(shipping("web"))

    [mine, shipped] = watch.catalogue.profiles

    assert (mine.is_file, shipped.is_file) == (True, False)
    assert [group.name for group in mine.profile.thread_groups] == ["x", "rest"]
    assert mine.profile.machine_shape == shipped.profile.machine_shape


def test_a_profile_that_others_may_write_is_told_when_it_is_loaded(watch_on, write):
    path = write("a.toml", id="one")
    path.chmod(0o666)

    with capture_logs() as logs:
        watch_on()

    [told] = [entry for entry in logs if entry["event"] == "file_writable_by_others"]
    assert (told["path"], told["writer"]) == (str(path), f"every user may write {path}")


def reload_of(watch):
    """Return what a reload of another thread finds, while this thread is the loop."""
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(watch.reloads.ask, PATIENCE_S)
        while not watch.reloads:
            time.sleep(0.001)
        watch.look()
        return asked.result()


def test_a_reload_reads_a_file_whose_times_and_size_did_not_change(watch_on, write, monkeypatch):
    path = write("a.toml", id="one")
    # As on a file system of a network that keeps old attributes of a file.
    monkeypatch.setattr(files, "_sign", lambda _path, _now_ns: (1, 2, 3))
    watch = watch_on()
    path.write_text(path.read_text().replace("one", "two"))

    looked = watch.look()
    found = reload_of(watch)
    again = reload_of(watch)

    assert not looked, "the change is not seen without a reload"
    assert (found.profiles, found.changed, found.failures) == (1, True, ())
    assert ids(watch.catalogue) == ["two"]
    assert not again.changed


def test_a_reload_tells_what_is_broken_and_keeps_the_last_good_version(watch_on, write):
    path = write("a.toml", id="one")
    watch = watch_on()
    path.write_text("id =")

    found = reload_of(watch)

    assert found.profiles == 1
    (failure,) = found.failures
    assert failure.source == str(path)
    assert ids(watch.catalogue) == ["one"]


def test_a_loop_that_does_not_turn_is_an_error_and_reads_later(watch_on, write):
    watch = watch_on()
    write("a.toml", id="one")

    with pytest.raises(MachineError, match="has not read the profiles within"):
        watch.reloads.ask(0.01)
    watch.look()

    assert ids(watch.catalogue) == ["one"]
    assert not watch.reloads


@pytest.fixture
def slow(watch_on, monkeypatch):
    """Return a watch in whose looks there is time for one step, and the names of files it reads."""
    names, read = [], files.read_profile
    monkeypatch.setattr(files, "read_profile", lambda path: names.append(path.name) or read(path))

    def make(*plugins):
        return watch_on(*plugins, longest_s=1, clock=itertools.count().__next__), names

    return make


def looks_of(watch, names):
    """Look until nothing is due. Return how many files each look read, and the ids after it."""
    looks = []
    while watch.is_due:
        before = len(names)
        watch.look()
        looks.append((len(names) - before, ids(watch.catalogue)))
    return looks


def test_files_for_which_a_look_has_no_time_are_read_by_the_next_looks(slow, write, shipping):
    for name in "abc":
        write(f"{name}.toml", id=name)

    watch, names = slow(shipping("web"))
    at_start = watch.catalogue
    looks = looks_of(watch, names)

    assert ids(at_start) == ["web"]
    assert [(each.source, each.reason) for each in at_start.failures] == [
        (str(write.directory), "its profiles are still being read")
    ]
    assert names == ["a.toml", "b.toml", "c.toml"]
    assert max(count for count, _ in looks) == 1
    assert all(known == ["web"] for _, known in looks[:-1])
    assert (ids(watch.catalogue), watch.catalogue.failures) == (["a", "b", "c", "web"], ())


def test_profiles_in_force_stay_until_all_changed_files_are_read(slow, write):
    for name in "abc":
        write(f"{name}.toml", id=name)
    watch, names = slow()
    looks_of(watch, names)

    for name in "abc":
        write(f"{name}.toml", id=f"new-{name}")
    watch.look()
    looks = looks_of(watch, names)

    assert all(known == ["a", "b", "c"] for _, known in looks[:-1])
    assert looks[-1][1] == ["new-a", "new-b", "new-c"]


def test_profiles_that_extend_others_are_completed_one_at_a_time(slow, write, monkeypatch):
    completed, complete = [], completion.complete

    def noting(child, *more):
        completed.append(child.id)
        return complete(child, *more)

    monkeypatch.setattr(completion, "complete", noting)
    write("a.toml", id="one")
    for name in "bcd":
        write(f"{name}.toml", f'id = "{name}"\nextends = "one"\n')

    watch, _ = slow()
    counts = []
    while watch.is_due:
        before = len(completed)
        watch.look()
        counts.append(len(completed) - before)

    assert completed == ["b", "c", "d"]
    assert max(counts) == 1


def test_a_reload_that_takes_several_looks_is_answered_by_the_last(slow, write):
    for name in "abc":
        write(f"{name}.toml", id=name)
    watch, names = slow()
    looks_of(watch, names)
    names.clear()

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(watch.reloads.ask, PATIENCE_S)
        while not watch.reloads:
            time.sleep(0.001)
        watch.look()
        is_early = asked.done()
        looks_of(watch, names)
        found = asked.result()

    assert not is_early
    assert names == ["a.toml", "b.toml", "c.toml"]
    assert (found.profiles, found.changed) == (3, False)
