"""Sessions of the fleet's page: how they begin and end."""

import pytest

from temper_core import InputError
from temper_plugin_dashboard.fleet.sessions import IDLE_S, LONGEST_S, MOST, Sessions, TokenFile

TOKEN = "0123456789abcdef"


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def token(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    return path


@pytest.fixture
def sessions(token, clock):
    return Sessions(TokenFile(token), clock)


@pytest.mark.parametrize("wrong", ["", TOKEN[:-1], f"{TOKEN}0", TOKEN.upper(), "\udc80", "é"])
def test_only_the_token_begins_a_session(sessions, wrong):
    assert sessions.begin(wrong) is None
    assert sessions.is_open(sessions.begin(TOKEN))


def test_each_session_has_a_secret_name_that_is_not_kept(sessions):
    first, second = sessions.begin(TOKEN), sessions.begin(TOKEN)

    assert first != second
    assert len(first) >= 86
    assert first not in repr(sessions._open)
    assert not sessions.is_open("")


def test_a_session_ends_when_it_is_idle_and_use_prolongs_it(sessions, clock):
    name = sessions.begin(TOKEN)
    clock.now += IDLE_S
    assert sessions.is_open(name)
    clock.now += IDLE_S
    assert sessions.is_open(name)
    clock.now += IDLE_S + 1

    assert not sessions.is_open(name)


def test_a_session_ends_after_its_longest_time_whatever_its_use(sessions, clock):
    name, end = sessions.begin(TOKEN), clock.now + LONGEST_S
    while clock.now + IDLE_S <= end:
        clock.now += IDLE_S
        assert sessions.is_open(name)
    clock.now = end + 1

    assert not sessions.is_open(name)


def test_a_session_that_is_left_is_closed_and_others_stay(sessions):
    left, other = sessions.begin(TOKEN), sessions.begin(TOKEN)

    sessions.end(left)

    assert not sessions.is_open(left)
    assert sessions.is_open(other)


def test_a_new_token_ends_all_sessions(sessions, token):
    name = sessions.begin(TOKEN)
    token.write_text("another token of some length")

    assert not sessions.is_open(name)
    assert sessions.begin(TOKEN) is None


def test_a_token_that_is_gone_ends_all_sessions(sessions, token):
    name = sessions.begin(TOKEN)
    token.unlink()

    assert not sessions.is_open(name)
    with pytest.raises(InputError, match="token"):
        sessions.begin(TOKEN)


def test_the_sessions_have_a_bound_and_the_one_idle_longest_ends(sessions, clock):
    names = []
    for _ in range(MOST):
        clock.now += 1
        names.append(sessions.begin(TOKEN))
    assert sessions.is_open(names[0])

    newest = sessions.begin(TOKEN)

    assert sessions.is_open(names[0])
    assert not sessions.is_open(names[1])
    assert sessions.is_open(newest)


@pytest.mark.parametrize("content", ["", "short", " " * 40, "0123456789abcde\n", "é" * 20])
def test_a_token_file_without_a_usable_token_is_named(tmp_path, content):
    path = tmp_path / "token"
    path.write_text(content)

    with pytest.raises(InputError, match=f"^{path}: must hold one token of at least 16"):
        TokenFile(path).digest()
