"""Trials: bounds, expiry, release, and what they do to the choice of a profile."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.errors import InputError
from temper_core.profiles.catalogue import ProfileCatalogue
from temper_core.profiles.trials import MOST_PODS, MOST_TRIALS, TrialBook
from temper_core.records.profiles import ShapeRange, WorkloadProfile
from temper_core.records.thread_groups import ThreadGroup, ThreadMatch, Treatment
from temper_core.testing import make_machine, make_pod

MACHINE = make_machine()
PROFILE = WorkloadProfile("tuned", (ThreadGroup("rest"),))


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def present():
    return {"shop/web", "shop/db"}


@pytest.fixture
def noted():
    return []


@pytest.fixture
def book(clock, present, noted):
    return TrialBook(
        lambda: present,
        MACHINE,
        changed=lambda: noted.append("changed"),
        record=lambda *event: noted.append(event),
        clock=clock,
    )


def test_a_trial_is_in_force_for_its_pods_until_it_is_released(book, noted):
    trial = book.start("trainer", PROFILE, ["shop/web"], 60)

    during = {key: loaded.profile for key, loaded in book.profiles().items()}
    trial.release()
    trial.release()

    assert during == {"shop/web": PROFILE}
    assert (book.profiles(), trial.is_active(), book.states()) == ({}, False, ())
    assert noted == [
        ("trial_began", "shop/web", "tuned for 60 s, asked by trainer"),
        "changed",
        ("trial_ended", "shop/web", "tuned: released"),
        "changed",
    ]


def test_a_trial_expires(book, clock, noted):
    trial = book.start("trainer", PROFILE, ["shop/web"], 60)
    assert book.due_at() == 160

    clock.now = 159.9
    before = dict(book.profiles())
    clock.now = 160
    after = dict(book.profiles())

    assert (list(before), after, trial.is_active()) == (["shop/web"], {}, False)
    assert ("trial_ended", "shop/web", "tuned: expired") in noted


def test_a_pod_that_goes_away_leaves_the_trial_and_the_last_one_ends_it(book, present, noted):
    trial = book.start("trainer", PROFILE, ["shop/web", "shop/db"], 60)

    present.discard("shop/db")
    after_one = list(book.profiles())
    pods = book.states()[0].pods
    present.clear()
    after_both = dict(book.profiles())

    assert (after_one, pods, after_both) == (["shop/web"], ("shop/web",), {})
    assert not trial.is_active()
    assert noted[-2][2] == "tuned: its pods are gone"


def test_an_instrument_that_closes_ends_its_own_trials_alone(book):
    book.start("trainer", PROFILE, ["shop/web"], 60)
    other = book.start("token ops", PROFILE, ["shop/db"], 60)

    book.release_all("trainer")

    assert [state.id for state in book.states()] == [other.id]


@pytest.mark.parametrize(
    ("pods", "seconds", "message"),
    [
        ([], 60, "pods must be 1 to 64, not 0"),
        ([f"shop/p{n}" for n in range(MOST_PODS + 1)], 60, "pods must be 1 to 64, not 65"),
        (["shop/gone"], 60, "pods: 'shop/gone' is not on this node"),
        (["shop/web"], 0.5, "seconds must be 1 to 3600, not 0.5"),
        (["shop/web"], 3601, "seconds must be 1 to 3600, not 3601"),
        (["shop/web"], float("nan"), "seconds must be 1 to 3600, not nan"),
    ],
)
def test_what_is_out_of_bounds_is_refused_in_one_line(book, noted, pods, seconds, message):
    with pytest.raises(InputError) as refused:
        book.start("trainer", PROFILE, pods, seconds)

    assert str(refused.value) == message
    assert noted == []


def test_a_pod_belongs_to_one_trial(book):
    book.start("trainer", PROFILE, ["shop/web"], 60)

    with pytest.raises(InputError, match="pods: 'shop/web' is in trial 1 of trainer"):
        book.start("token ops", PROFILE, ["shop/db", "shop/web"], 60)


def test_trials_are_bounded_and_an_expired_one_makes_room(book, clock, present):
    present |= {f"shop/p{n}" for n in range(MOST_TRIALS + 1)}
    for number in range(MOST_TRIALS):
        book.start("trainer", PROFILE, [f"shop/p{number}"], 60)

    with pytest.raises(InputError, match="8 trials are in force already"):
        book.start("trainer", PROFILE, ["shop/p8"], 60)
    clock.now += 61

    assert book.start("trainer", PROFILE, ["shop/p8"], 60).is_active()


def test_a_profile_for_another_machine_is_refused(book):
    profile = WorkloadProfile("big", (ThreadGroup("rest"),), machine_shape=ShapeRange(cores=64))

    with pytest.raises(InputError, match="profile big: "):
        book.start("trainer", profile, ["shop/web"], 60)


def test_a_profile_that_the_engine_cannot_take_is_refused(book):
    exclusive = Treatment.EXCLUSIVE
    matches = [(ThreadMatch(comm_prefix=f"w{n}"),) for n in range(40)]
    groups = tuple(
        ThreadGroup(f"g{n}", match, exclusive, cpu_fraction=0.01) for n, match in enumerate(matches)
    )

    with pytest.raises(InputError, match="profile many: "):
        book.start("trainer", WorkloadProfile("many", groups), ["shop/web"], 60)


def test_a_trial_wins_over_the_annotation(book):
    book.start("trainer", PROFILE, ["shop/web"], 60)
    catalogue = ProfileCatalogue(trials=book.profiles())
    pod = make_pod("web", "shop", annotations={"temper.codes/profile": "mysql"})

    choice = catalogue.choose(pod, MACHINE)

    assert (choice.loaded.profile, choice.reason) == (PROFILE, "trial 1 of trainer: tuned")


def test_many_threads_may_begin_and_end_trials(book, present):
    present |= {f"shop/p{n}" for n in range(MOST_TRIALS)}

    def begin_and_end(number):
        for _ in range(50):
            book.start("trainer", PROFILE, [f"shop/p{number}"], 60).release()
            book.profiles()

    threads = [threading.Thread(target=begin_and_end, args=(n,)) for n in range(MOST_TRIALS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert book.states() == ()


@given(
    st.lists(st.sampled_from(["shop/web", "shop/db", "shop/gone", ""]), max_size=4),
    st.floats(allow_nan=True, allow_infinity=True),
)
def test_whatever_is_asked_a_trial_begins_or_one_line_says_why_not(pods, seconds):
    book = TrialBook(lambda: {"shop/web", "shop/db"}, MACHINE)

    refusal = refusal_of(lambda: book.start("x", PROFILE, pods, seconds))

    assert "\n" not in refusal
    assert set(book.profiles()) == (set() if refusal else set(pods))


def refusal_of(begin):
    try:
        begin()
    except InputError as error:
        return str(error)
    return ""
