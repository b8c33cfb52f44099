"""How long to wait before a server that fails is asked again."""

import pytest

from temper_kube.backoff import Backoff


@pytest.mark.parametrize(
    ("chance", "waits"), [(0.0, [0.25, 0.5, 1, 2, 2]), (1.0, [0.5, 1, 2, 4, 4])]
)
def test_waits_double_to_a_bound_and_half_of_each_is_chance(chance, waits):
    backoff = Backoff(0.5, 4.0, chance=lambda: chance)

    assert [backoff.failed() for _ in range(5)] == waits
    backoff.forget()
    assert backoff.failed() == waits[0]


def test_what_the_server_asks_for_is_waited_on_top():
    backoff = Backoff(0.5, 4.0, chance=lambda: 1.0)

    assert backoff.failed(3.0) == 3.5
    assert backoff.failed(3600.0) == 5.0
    assert backoff.failed(-(10.0**12)) == 2.0
