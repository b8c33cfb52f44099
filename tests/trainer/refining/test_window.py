import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import InputError
from temper_plugin_trainer.refining.window import parsed_window

DAY_S = 86_400


def at(time):
    hour, minute = map(int, time.split(":"))
    return dt.datetime(2026, 11, 28, hour, minute, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("window", "time", "minutes"),
    [
        ("09:00-17:00", "09:00", 0),
        ("09:00-17:00", "16:59", 0),
        ("09:00-17:00", "17:00", 16 * 60),
        ("09:00-17:00", "08:30", 30),
        ("22:00-05:30", "23:00", 0),
        ("22:00-05:30", "05:29", 0),
        ("22:00-05:30", "05:30", 16 * 60 + 30),
        ("22:00-05:30", "21:59", 1),
    ],
)
def test_a_window_opens_at_its_time_of_the_day(window, time, minutes):
    assert parsed_window(window).opens_in(at(time)) == 60 * minutes


MINUTES = st.integers(0, 24 * 60 - 1)
LATEST = dt.datetime(9000, 1, 1)  # noqa: DTZ001 - hypothesis adds the zone


def clock(minute):
    return f"{minute // 60:02}:{minute % 60:02}"


@given(
    MINUTES,
    st.integers(1, 24 * 60 - 1),
    st.datetimes(max_value=LATEST, timezones=st.just(dt.UTC)),
)
def test_a_window_is_open_after_the_time_that_it_takes_to_open(begins, length, now):
    window = parsed_window(f"{clock(begins)}-{clock((begins + length) % (24 * 60))}")

    wait_s = window.opens_in(now)

    assert 0.0 <= wait_s < DAY_S
    assert window.opens_in(now + dt.timedelta(seconds=wait_s)) == 0.0


@pytest.mark.parametrize("text", ["", "9:00-17:00", "09:00", "24:00-05:00", "09:60-10:00", "x"])
def test_another_form_is_one_line(text):
    with pytest.raises(InputError) as refused:
        parsed_window(text)

    assert str(refused.value) == f"--window {text!r}: must be HH:MM-HH:MM, such as 22:00-05:30"


def test_a_window_of_no_length_is_refused():
    with pytest.raises(InputError, match="begins when it ends"):
        parsed_window("09:00-09:00")
