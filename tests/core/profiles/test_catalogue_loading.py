import os

import pytest
from structlog.testing import capture_logs

from temper_core.profiles.loading import load_catalogue
from temper_core.settings.models import ProfileSettings, Settings


def load(host, directory):
    return load_catalogue(Settings(), host, directory)


def ids(catalogue):
    return [loaded.profile.id for loaded in catalogue.profiles]


def test_a_missing_directory_is_an_empty_one(host, tmp_path):
    catalogue = load(host, tmp_path / "none")

    assert (catalogue.profiles, catalogue.failures) == ((), ())


def test_the_settings_name_the_directory(host, write):
    write("search.toml")
    settings = Settings(profiles=ProfileSettings(directory=str(write.directory)))

    assert ids(load_catalogue(settings, host)) == ["search"]


def test_files_come_before_what_plugins_ship_and_each_says_where_it_is_from(host, write, shipping):
    path = write("search.toml")
    host.add(shipping("search", "web"), "acme")

    loaded = load(host, write.directory).profiles

    assert [(entry.profile.id, entry.source, entry.is_file) for entry in loaded] == [
        ("search", str(path), True),
        ("search", "acme", False),
        ("web", "acme", False),
    ]


def test_a_bad_file_is_a_failure_with_all_its_misfits_and_the_others_are_loaded(host, write):
    bad = write("bad.toml", extra="cores = 4\ncolour = 3")
    write("good.toml", id="good")

    catalogue = load(host, write.directory)

    [failure] = catalogue.failures
    assert ids(catalogue) == ["good"]
    assert (failure.source, failure.profile) == (str(bad), "search")
    assert "unknown key 'cores'" in failure.reason
    assert "unknown key 'colour'" in failure.reason


@pytest.mark.parametrize("content", [b"id = ", b"\xff\xfe", b"id = 3\n", b""])
def test_a_file_that_does_not_even_say_its_id_is_named_by_its_path(content, host, write):
    path = write("odd.toml", text="")
    path.write_bytes(content)

    [failure] = load(host, write.directory).failures

    assert (failure.source, failure.profile) == (str(path), "")
    assert failure.reason


def test_a_mounted_config_map_is_read_once_through_its_links(host, write):
    hidden = write.directory / "..2026_01_01"
    hidden.mkdir()
    write("search.toml").rename(hidden / "search.toml")
    (write.directory / "..data").symlink_to(hidden.name)
    (write.directory / "search.toml").symlink_to("..data/search.toml")
    write(".#search.toml", text="an editor's lock")

    catalogue = load(host, write.directory)

    assert (ids(catalogue), catalogue.failures) == (["search"], ())


def test_a_link_that_leads_nowhere_is_a_failure(host, write):
    (write.directory / "gone.toml").symlink_to("nowhere.toml")

    [failure] = load(host, write.directory).failures

    assert failure.reason == "No such file or directory"


def test_a_pipe_is_not_waited_for(host, write):
    os.mkfifo(write.directory / "pipe.toml")

    [failure] = load(host, write.directory).failures

    assert failure.reason == "is not a regular file"


def test_a_file_in_place_of_the_directory_is_a_failure(host, write):
    path = write("search.toml")

    [failure] = load(host, path).failures

    assert (failure.source, failure.reason) == (str(path), "Not a directory")


def test_two_files_of_one_id_are_both_kept_where_their_machines_differ(host, write):
    write("big.toml", extra="[machine_shape]\ncores = 64")
    write("small.toml", extra="[machine_shape]\ncores = 4")

    catalogue = load(host, write.directory)

    assert (ids(catalogue), catalogue.failures) == (["search", "search"], ())


def test_of_two_files_with_one_id_and_machine_the_first_by_name_is_kept(host, write):
    first = write("10-search.toml")
    second = write("20-search.toml")

    catalogue = load(host, write.directory)

    [failure] = catalogue.failures
    assert [entry.source for entry in catalogue.profiles] == [str(first)]
    assert (failure.source, failure.profile) == (str(second), "search")
    assert "10-search.toml" in failure.reason


def test_an_id_that_two_plugins_claim_goes_to_neither_and_says_so(host, write, shipping):
    host.add(shipping("search", "web"), "acme")
    host.add(shipping("search"), "rival")

    with capture_logs():
        catalogue = load(host, write.directory)

    [failure] = catalogue.failures
    assert ids(catalogue) == ["web"]
    assert (failure.source, failure.profile) == ("acme and rival", "search")


@pytest.mark.parametrize("number", ["1" * 5000, "0x1" + "f" * 5000])
def test_an_endless_number_spoils_its_own_profile_only(host, write, number):
    write("endless.toml", f"id = {number}")
    write("good.toml")

    catalogue = load(host, write.directory)

    [failure] = catalogue.failures
    assert ids(catalogue) == ["search"]
    assert failure.reason == "is not TOML: a number is too long"
