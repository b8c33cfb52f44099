import os
import signal
import threading
from types import SimpleNamespace

import pytest

from temper_core.agent.change_sources import ChangeSource
from temper_core.agent.waker import LoopWaker

LONG_S = 60.0


@pytest.fixture
def wake():
    wake = LoopWaker()
    yield wake
    wake.close()


@pytest.fixture
def bell():
    """A descriptor that becomes readable when it is rung, until it is silenced."""
    reading, writing = os.pipe2(os.O_NONBLOCK)
    yield SimpleNamespace(
        fileno=lambda: reading,
        ring=lambda: os.write(writing, b"!"),
        silence=lambda: os.read(reading, 100),
    )
    os.close(reading)
    os.close(writing)


def test_a_sleep_that_nothing_ends_lasts_to_its_end(wake):
    assert wake.wait(0.001) is False
    assert wake.wait(0.02) is False


@pytest.mark.parametrize("seconds", [0.0, 0.001, LONG_S])
def test_a_word_that_was_said_before_ends_the_next_sleep_and_no_other(wake, seconds):
    wake.set()

    assert wake.wait(seconds) is True
    assert wake.wait(0) is False


def test_a_word_from_another_thread_ends_a_sleep(wake):
    threading.Timer(0.05, wake.set).start()

    assert wake.wait(LONG_S) is True


def test_any_number_of_words_is_said_without_waiting_and_heard_as_one(wake):
    for _ in range(100_000):
        wake.set()

    assert wake.wait(LONG_S) is True
    assert wake.wait(0) is False


def test_a_signal_ends_a_sleep_and_is_handled(wake):
    handled = []
    with wake.signals({signal.SIGUSR1: lambda: handled.append("usr1")}):
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()

        assert wake.wait(LONG_S) is True

    assert handled == ["usr1"]


def test_a_handler_may_say_a_word_itself(wake):
    with wake.signals({signal.SIGUSR1: wake.set}):
        os.kill(os.getpid(), signal.SIGUSR1)

        assert wake.wait(LONG_S) is True


def test_who_handled_a_signal_before_handles_it_again_afterwards(wake):
    before = signal.getsignal(signal.SIGUSR1)

    with wake.signals({signal.SIGUSR1: wake.set}):
        during = signal.getsignal(signal.SIGUSR1)

    assert during is not before
    assert signal.getsignal(signal.SIGUSR1) is before


def test_a_descriptor_that_becomes_readable_ends_a_sleep_once_until_it_was_looked_at(wake, bell):
    watched = wake.watch(bell.fileno())
    bell.ring()

    ended = [wake.wait(LONG_S), wake.wait(0.02)]

    assert ended == [True, False]
    assert watched.taken()
    assert not watched.taken()


def test_what_is_still_to_be_read_after_news_were_taken_is_news_again(wake, bell):
    watched = wake.watch(bell.fileno())
    bell.ring()
    wake.wait(LONG_S)
    watched.taken()

    assert wake.wait(LONG_S) is True
    assert watched.taken()


def test_a_storm_of_news_ends_no_second_sleep_before_the_rest_is_over(wake, bell):
    watched = wake.watch(bell.fileno(), rest_s=LONG_S)
    bell.ring()
    wake.wait(LONG_S)
    watched.taken()

    bell.ring()

    assert wake.wait(0.02) is False
    assert not watched.has_news


def test_what_happens_in_the_rest_is_heard_when_it_is_over(wake, bell):
    watched = wake.watch(bell.fileno(), rest_s=0.02)
    bell.ring()
    wake.wait(LONG_S)
    watched.taken()
    bell.silence()
    bell.ring()

    while not watched.has_news:
        wake.wait(LONG_S)

    assert watched.taken()


def test_a_descriptor_that_its_owner_closed_is_no_error(wake):
    reading, writing = os.pipe()
    watched = wake.watch(reading)
    os.write(writing, b"!")
    wake.wait(LONG_S)
    watched.taken()
    os.close(reading)
    os.close(writing)

    assert wake.wait(0.02) is False
    wake.unwatch(watched)


def test_an_ear_hears_from_its_second_question_on(wake, bell):
    ear = ChangeSource(wake, bell, 0.0)
    bell.ring()

    first = ear.taken()
    wake.wait(LONG_S)

    assert (first, ear.taken()) == (False, True)


def test_an_ear_whose_source_has_no_descriptor_yet_listens_as_soon_as_there_is_one(wake, bell):
    source = SimpleNamespace(fileno=lambda: -1)
    ear = ChangeSource(wake, source, 0.0)
    bell.ring()
    ear.taken()
    was_heard = wake.wait(0.02)

    source.fileno = bell.fileno
    ear.taken()

    assert was_heard is False
    assert wake.wait(LONG_S) is True
    assert ear.taken()


def test_an_ear_lets_go_of_a_descriptor_that_is_none_any_more(wake, bell):
    source = SimpleNamespace(fileno=bell.fileno)
    ear = ChangeSource(wake, source, 0.0)
    ear.taken()
    source.fileno = lambda: -1
    ear.taken()

    bell.ring()

    assert wake.wait(0.02) is False
    assert not ear.taken()


def test_an_ear_hears_of_a_source_that_was_opened_anew_under_the_same_number(wake):
    reading, writing = os.pipe()
    ear = ChangeSource(wake, SimpleNamespace(fileno=lambda: reading), 0.0)
    ear.taken()
    os.close(reading)
    os.close(writing)
    again, writing = os.pipe()
    os.write(writing, b"!")

    ear.taken()

    assert again == reading
    assert wake.wait(LONG_S) is True
    assert ear.taken()
    os.close(again)
    os.close(writing)


def test_an_ear_hears_anew_of_what_was_opened_again_while_it_rested(wake, bell):
    reading, writing = os.pipe()
    ear = ChangeSource(wake, SimpleNamespace(fileno=lambda: reading), 0.02)
    ear.taken()
    os.write(writing, b"!")
    wake.wait(LONG_S)
    ear.taken()
    os.dup2(bell.fileno(), reading)
    bell.ring()

    while not ear.taken():
        wake.wait(LONG_S)

    os.close(reading)
    os.close(writing)


def test_an_ear_without_anything_that_can_be_slept_on_says_so_and_goes_on(wake, tmp_path):
    with (tmp_path / "ordinary").open("w") as file:
        ear = ChangeSource(wake, file, 0.0)
        had_news = ear.taken()
        closed = ChangeSource(wake, SimpleNamespace(fileno=lambda: 10_000), 0.0)

        assert (had_news, ear.is_listening) == (False, False)
        assert (closed.taken(), closed.is_listening) == (False, False)


def test_two_ears_at_one_source_break_nothing(wake, bell):
    first, second = ChangeSource(wake, bell, 0.0), ChangeSource(wake, bell, 0.0)
    first.taken()
    second.taken()

    bell.ring()

    assert (first.is_listening, second.is_listening) == (True, False)
    assert wake.wait(LONG_S) is True
    assert first.taken()


def test_news_of_a_descriptor_that_lives_on_elsewhere_after_it_was_closed_are_nobodys(wake):
    reading, writing = os.pipe()
    source = SimpleNamespace(fileno=lambda: reading)
    ear = ChangeSource(wake, source, 0.0)
    ear.taken()
    elsewhere = os.dup(reading)
    os.close(reading)
    source.fileno = lambda: -1
    ear.taken()
    os.write(writing, b"!")

    wake.wait(0.02)

    assert not ear.taken()
    os.close(elsewhere)
    os.close(writing)
