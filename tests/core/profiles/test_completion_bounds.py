"""How many profiles may extend others: each child is one for each variant of its parent."""

import pytest

from temper_core import parse_profile
from temper_core.profiles import completion, completion_bounds
from temper_core.profiles.completion import Completion
from temper_core.profiles.completion_bounds import MOST_COMPLETED, CompletionRoom
from temper_core.records.profiles import LoadedProfile

REST = '[[thread_groups]]\nname = "rest"\n'


def entry(text, source):
    return LoadedProfile(parse_profile(text, source), source, is_file=True)


def group(matches):
    listed = ", ".join(f'{{ comm_prefix = "m{number:03}" }}' for number in range(matches))
    return f'[[thread_groups]]\nname = "many"\nmatch = [{listed}]\n'


def parents(count, matches=1):
    return [
        entry(f'id = "db"\nmachine_shape.cores = {n}\n{group(matches)}{REST}', f"a{n}.toml")
        for n in range(1, count + 1)
    ]


def child(name, extra=""):
    return entry(f'id = "{name}"\nextends = "db"\n{extra}', f"{name}.toml")


def counts(catalogue):
    ids = [each.profile.id for each in catalogue.profiles if each.lineage]
    return {name: ids.count(name) for name in ids}


def refused(catalogue):
    return [(failure.source, failure.profile) for failure in catalogue.failures]


@pytest.fixture
def bounds(monkeypatch):
    def set_bounds(profiles=100, matches=100):
        monkeypatch.setattr(completion_bounds, "MOST_COMPLETED", profiles)
        monkeypatch.setattr(completion_bounds, "MOST_COMPLETED_MATCHES", matches)

    return set_bounds


def test_children_beyond_the_bound_on_profiles_are_refused_in_one_line(bounds):
    bounds(profiles=5)

    made = Completion().catalogue([*parents(2), child("p"), child("q"), child("r")])

    assert counts(made) == {"p": 2, "q": 2}
    (failure,) = made.failures
    assert (failure.source, failure.profile) == ("r.toml", "r")
    assert failure.reason == (
        "all profiles that extend others may be 5 together, counting each variant for a machine "
        "shape, with 100 matches; this one would exceed that"
    )


def test_matches_of_the_parent_and_of_the_child_count_for_each_variant(bounds):
    bounds(matches=2 * 3 + 2 * (3 + 4) - 1)

    made = Completion().catalogue([*parents(2, matches=3), child("p"), child("q", group(4))])

    assert counts(made) == {"p": 2}
    assert refused(made) == [("q.toml", "q")]


def test_a_smaller_child_after_a_refused_one_is_completed(bounds):
    bounds(matches=2 * 1)

    made = Completion().catalogue([*parents(2), child("p", group(2)), child("q")])

    assert counts(made) == {"q": 2}


def test_children_that_cannot_be_completed_count_too(bounds, monkeypatch):
    bounds(profiles=4)
    tried, complete = [], completion.complete
    monkeypatch.setattr(
        completion, "complete", lambda *given: tried.append(given) or complete(*given)
    )
    bad = '[[thread_groups]]\nname = "none"\noverride = "remove"\n'

    Completion().catalogue([*parents(2), *(child(name, bad) for name in "pqrs")])

    assert len(tried) == 4


def test_last_good_versions_do_not_add_up_beyond_the_bound(bounds):
    bounds(profiles=2)
    made = Completion()
    made.catalogue([*parents(2), child("q")])

    edited = made.catalogue([*parents(2), child("p"), child("q")])

    assert counts(edited) == {"p": 2}
    assert refused(edited) == [("q.toml", "q")]


def test_a_last_good_version_stays_while_there_is_room(bounds):
    bounds(profiles=2)
    made = Completion()
    made.catalogue([*parents(2), child("q")])

    edited = made.catalogue([child("q")])

    assert counts(edited) == {"q": 2}


def test_a_file_for_each_variant_of_some_machines_is_within_the_bounds():
    room = CompletionRoom()

    assert all(room.takes([32, 32]) for _ in range(MOST_COMPLETED // 2))
    assert not room.takes([0])
