"""The lines of the log, whatever plugins and tenants write."""

import json

import pytest
import structlog

from temper_core.logs import LONGEST_TEXT, MOST_ITEMS, configure_logs


@pytest.fixture(autouse=True)
def _unconfigured():
    yield
    structlog.reset_defaults()


def logged(capsys, **facts):
    configure_logs()
    structlog.get_logger().warning("something", **facts)
    return json.loads(capsys.readouterr().err)


def test_a_long_text_is_cut(capsys):
    line = logged(capsys, reason="x" * (LONGEST_TEXT + 7), short="y" * LONGEST_TEXT)

    assert line["reason"] == "x" * LONGEST_TEXT + "… (7 more characters)"
    assert line["short"] == "y" * LONGEST_TEXT


def test_a_long_list_of_long_texts_is_cut(capsys):
    line = logged(capsys, problems=("z" * 40_000_000, *["short"] * (MOST_ITEMS + 5)))

    assert len(line["problems"]) == MOST_ITEMS
    assert len(line["problems"][0]) < LONGEST_TEXT + 50


def test_other_values_stay(capsys):
    line = logged(capsys, count=3, share=0.5, nothing=None, table={"a": [1]})

    assert [line[key] for key in ("count", "share", "nothing", "table")] == [
        3,
        0.5,
        None,
        {"a": [1]},
    ]


def raise_long_error():
    raise ValueError("v" * 10 * LONGEST_TEXT)


def test_a_long_traceback_is_cut(capsys):
    configure_logs()
    try:
        raise_long_error()
    except ValueError:
        structlog.get_logger().exception("something_failed")

    line = json.loads(capsys.readouterr().err)
    assert len(line["exception"]) < LONGEST_TEXT + 50
