import re
import signal
import subprocess

import pytest

from tests.signals import FROM_A_TERMINAL, defaults_for_children, ignoring


def ignored_by_a_child():
    status = subprocess.run(
        ["cat", "/proc/self/status"], capture_output=True, check=True, text=True
    )
    mask = int(re.search(r"SigIgn:\s*(\w+)", status.stdout)[1], 16)
    return {number for number in FROM_A_TERMINAL if mask & 1 << number - 1}


@pytest.fixture(params=FROM_A_TERMINAL, ids=lambda number: number.name)
def ignored(request):
    """A signal that this process ignores."""
    with ignoring([request.param]):
        yield request.param


def test_a_child_of_a_test_ignores_no_signal_of_the_terminal():
    assert ignored_by_a_child() == set()


def test_a_child_has_the_default_action_of_what_this_process_ignores(ignored):
    assert ignored_by_a_child() == {ignored}
    with defaults_for_children():
        assert ignored_by_a_child() == set()


def test_what_was_ignored_still_has_no_effect(ignored):
    with defaults_for_children():
        signal.raise_signal(ignored)


def test_what_was_ignored_is_ignored_again_afterwards(ignored):
    with defaults_for_children():
        assert signal.getsignal(ignored) is not signal.SIG_IGN
    assert signal.getsignal(ignored) is signal.SIG_IGN
