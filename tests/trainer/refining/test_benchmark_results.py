import pytest

from temper_core import InputError
from temper_plugin_trainer.refining.benchmark import Asked, Measured, read_result

LATENCY = '{"metric": "p99", "value": 4.5, "unit": "ms", "better": "lower"}'
RATE = '{"metric": "rate", "value": 900, "unit": "1/s", "better": "higher"}'


@pytest.mark.parametrize(
    ("output", "asked", "expected"),
    [
        (LATENCY, Asked("p99"), Measured(4.5, "ms", "lower")),
        (f"starting\n{LATENCY}\n{RATE}\ndone", Asked("rate"), Measured(900, "1/s", "higher")),
        (LATENCY + "\n" + LATENCY.replace("4.5", "5"), Asked("p99"), Measured(5, "ms", "lower")),
        ('{"metric": "x", "value": 1}', Asked("x", "higher"), Measured(1, "", "higher")),
        ("3\n1\n2\n", Asked("x"), Measured(2, "", "lower")),
        ("run of 4 s\n7.5\n", Asked("x", "higher"), Measured(7.5, "", "higher")),
    ],
)
def test_a_result_is_read(output, asked, expected):
    assert read_result(output, asked) == expected


@pytest.mark.parametrize(
    ("output", "asked", "why"),
    [
        ("", Asked("p99"), "neither a JSON line with the metric 'p99' nor numbers"),
        ("hello\x1b[2J", Asked("p99"), "its last line: hello"),
        (RATE, Asked("p99"), "no metric 'p99', but rate"),
        ('{"metric": "p99", "value": "4"}', Asked("p99"), "value must be a number, not '4'"),
        ('{"metric": "p99", "value": true}', Asked("p99"), "value must be a number, not True"),
        ('{"metric": "p99", "value": 0}', Asked("p99"), "above 0, not 0"),
        ("-1", Asked("p99"), "above 0, not -1"),
        ("nan", Asked("p99"), "above 0, not nan"),
        ('{"metric": "p99", "value": 1e999}', Asked("p99"), "finite number above 0"),
        ('{"metric": "p99", "value": 1, "better": "less"}', Asked("p99"), 'must be "lower" or'),
        (LATENCY, Asked("p99", "higher"), "better is 'lower', but --better is 'higher'"),
        ('{"metric": "p99", "value": 1, "unit": 5}', Asked("p99"), "unit must be a text"),
    ],
)
def test_a_result_that_is_none_is_one_clear_line(output, asked, why):
    with pytest.raises(InputError) as refused:
        read_result(output, asked)

    assert why in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)
