"""Evidence states an effect only where its figures show it, and is bounded."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import DocumentError, parse_profile
from temper_core.records.profile_evidence import Direction, Effect, Evidence, Figure

COMPLETE = 'kernel = "6.18.15"\nengine = "1.1.4"\ncommand = "make ladder"'
NUMBERS = st.floats(0, 1e12) | st.integers(0, 10**12)


def evidence_of(text):
    document = f'id = "a"\n[[thread_groups]]\nname = "rest"\n[evidence]\n{text}'
    return parse_profile(document, "a.toml").evidence


def problems_of(text):
    with pytest.raises(DocumentError) as refused:
        evidence_of(text)
    return refused.value.problems


def p99(tiers_only, profile, spread=0.5, **more):
    return Figure("p99", tiers_only, profile, spread, **more)


def written(figure):
    keys = "".join(
        f"{key} = {value}\n" if isinstance(value, int | float) else f'{key} = "{value}"\n'
        for key, value in attrs.asdict(figure).items()
        if value is not None
    )
    return f"[[evidence.figures]]\n{keys}"


def stated(effect, *figures, told=COMPLETE):
    return f'effect = "{effect}"\n{told}\n' + "".join(map(written, figures))


@pytest.mark.parametrize(
    ("figure", "effect"),
    [
        (p99(5.4, 4.1), Effect.BETTER),
        (p99(5.4, 5.3), Effect.WITHIN_SPREAD),
        (p99(5.4, 5.3, 0.1), Effect.WITHIN_SPREAD),
        (p99(5.4, 5.9), Effect.WITHIN_SPREAD),
        (p99(5.4, 6.0), Effect.WORSE),
        (p99(100, 120, better=Direction.HIGHER), Effect.BETTER),
        (p99(100, 80, better=Direction.HIGHER), Effect.WORSE),
    ],
)
def test_a_figure_shows_a_difference_only_beyond_the_spread(figure, effect):
    assert figure.effect is effect


def test_figures_are_read_with_what_repeats_them():
    figure = p99(5.4, 4.1, stock=8.7, unit="ms", load="8 spinners in another pod")

    evidence = evidence_of(stated("better", figure))

    assert evidence.effect is Effect.BETTER
    assert evidence.figures == (figure,)
    assert evidence.command == "make ladder"


def test_a_figure_reads_as_one_line():
    figure = p99(5.4, 4.1, unit="ms", load="8 spinners")

    assert str(figure) == "p99 4.1 ms with the profile, 5.4 ms without, spread 0.5 ms (8 spinners)"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (stated("better", told=""), "effect 'better' needs engine, figures, kernel, command or"),
        (
            stated("worse", p99(1, 9), told='kernel = "6"\nengine = "1"'),
            "effect 'worse' needs comm",
        ),
        (stated("better", p99(5.4, 5.3)), "effect 'better' is not what the figures show: within"),
        (stated("worse", p99(9, 1)), "effect 'worse' is not what the figures show: better"),
        (stated("within the spread", p99(9, 1), p99(1, 1)), "is not what the figures show: better"),
        (stated("not measured", p99(9, 1)), "effect 'not measured' contradicts figures"),
        ('effect = "not measured"\nbefore = "9 ms"', "effect 'not measured' contradicts"),
        (written(p99(9, 1)), "effect is required beside figures; they show: better"),
    ],
)
def test_an_effect_that_its_figures_do_not_show_is_refused(text, problem):
    [told] = problems_of(text)

    assert told.startswith("evidence: ")
    assert problem in told


@pytest.mark.parametrize("effect", ["better", "worse"])
def test_a_gain_may_have_a_price(effect):
    assert evidence_of(stated(effect, p99(9, 1), p99(1, 9))).effect == effect


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('effect = "faster"', "evidence.effect: must be one of 'better', 'within the spread'"),
        ("effect = true", "evidence.effect: must be one of"),
        (f'kernel = "{"k" * 501}"', "evidence.kernel: "),
        (stated("better", *[p99(9, 1)] * 33), "evidence.figures: "),
        (
            stated("better", p99(9, 1, unit="mm")).replace("mm", "m" * 21),
            "evidence.figures[0].unit: ",
        ),
        (stated("better", Figure("m" * 60, 9, 1, 0)).replace("mmm", "mmmm", 1), "evidence.figures"),
        (stated("better", p99(9, 1)).replace("spread = 0.5\n", ""), "evidence.figures[0].spread"),
        (stated("better", p99(9, 1)).replace("= 0.5", "= -0.5"), "evidence.figures[0].spread: "),
        (stated("better", p99(9, 1)).replace("= 0.5", "= inf"), "evidence.figures[0].spread: "),
        (stated("better", p99(9, 1)).replace("= 0.5", "= 1e13"), "evidence.figures[0].spread: "),
        (stated("better", p99(9, 1)) + "mean = 3\n", "evidence.figures[0]: unknown key 'mean'"),
        (stated("better", p99(9, 1)).replace('"lower"', '"less"'), "evidence.figures[0].better: "),
    ],
)
def test_evidence_is_bounded_and_a_mistake_is_told_by_its_path(text, path):
    assert any(problem.startswith(path) for problem in problems_of(text))


@given(NUMBERS, NUMBERS, NUMBERS, st.sampled_from(Direction))
def test_any_figure_supports_its_own_effect_alone(tiers_only, profile, spread, direction):
    figure = Figure("p99", tiers_only, profile, spread, better=direction)
    complete = {"kernel": "6", "engine": "1", "source": "records", "figures": (figure,)}

    assert Evidence(effect=figure.effect, **complete).effect is figure.effect
    for effect in {*Effect} - {figure.effect}:
        with pytest.raises(ValueError, match="effect"):
            Evidence(effect=effect, **complete)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_the_two_directions_mirror_each_other(tiers_only, profile, spread):
    lower = p99(tiers_only, profile, spread).effect
    higher = p99(profile, tiers_only, spread, better=Direction.HIGHER).effect

    assert lower is higher


@pytest.mark.parametrize(
    "wrong",
    [{"effect": "better"}, {"kernel": 6}, {"figures": ("p99",)}, {"command": "c" * 501}],
)
def test_a_plugin_cannot_make_evidence_of_other_values(wrong):
    with pytest.raises((TypeError, ValueError)):
        Evidence(**wrong)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1, 1e13])
def test_a_plugin_cannot_make_a_figure_of_other_numbers(number):
    with pytest.raises(ValueError, match="tiers_only"):
        p99(number, 1)
