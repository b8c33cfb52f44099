"""How many warnings the objects of a namespace may cause."""

from temper_kube.bounded_warnings import HOUR_S, MOST_NAMESPACES, MOST_WARNINGS, BoundedWarnings


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_namespace_has_so_many_in_an_hour_and_another_has_its_own():
    clock = Clock()
    warnings = BoundedWarnings(clock)

    first = [warnings.allows("evil") for _ in range(MOST_WARNINGS + 2)]
    others = warnings.allows("shop")
    clock.now = HOUR_S
    later = warnings.allows("evil")

    assert first == [True] * MOST_WARNINGS + [False] * 2
    assert others
    assert later


def test_namespaces_after_the_first_thousand_share_one_allowance():
    warnings = BoundedWarnings(Clock())
    allowed = [warnings.allows(f"n{number}") for number in range(MOST_NAMESPACES + 100)]

    assert sum(allowed) == MOST_NAMESPACES + MOST_WARNINGS
    assert warnings.allows(5) is False
