"""Which format a scraper gets, by what it says that it accepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.metrics.media_types import OPENMETRICS, PLAIN, media_type_for

PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


@pytest.mark.parametrize(
    "accept",
    [
        PROMETHEUS,
        "application/openmetrics-text",
        "Application/OpenMetrics-Text; Version=1.0.0",
        "text/plain;q=0.5, application/openmetrics-text;q=0.5",
    ],
)
def test_openmetrics_goes_to_whoever_names_it_and_likes_nothing_better(accept):
    assert media_type_for(accept) == OPENMETRICS


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "text/html,application/xhtml+xml",
        "text/plain, application/openmetrics-text;q=0.9",
        "application/openmetrics-text;q=0",
        "application/openmetrics-text;q=much",
        "application/openmetrics-text;version=2.0.0",
    ],
)
def test_everybody_else_gets_the_text_format(accept):
    assert media_type_for(accept) == PLAIN


@given(st.text("aq=;,.*/0123456789 \t-") | st.text())
def test_any_header_gets_one_of_the_two(accept):
    assert media_type_for(accept) in (PLAIN, OPENMETRICS)
