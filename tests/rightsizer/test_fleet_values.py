"""How addresses, files, values, durations and selectors of a fleet are read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import InputError
from temper_plugin_rightsizer.fleet.demands import millis
from temper_plugin_rightsizer.fleet.queries import Scope, matchers_of, quoted
from temper_plugin_rightsizer.fleet.windows import Window
from temper_prometheus.access import access, checked_url
from temper_prometheus.answers import sample_value
from temper_prometheus.durations import as_duration, duration_s

TOKEN = "a-secret-token-of-some-length"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "prometheus:9090",
        "ftp://host",
        "http://",
        "http://me:secret@host",
        "http://host/?q=secret",
        "http://host/#secret",
        "http://host:99999",
        "http://host:0",
        "http://[::1",
        "http://ho st",
        "http://host\n",
        "http://höst",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_and_not_told(url):
    with pytest.raises(InputError, match="--prometheus") as told:
        checked_url(url)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://host:9090/", "http://host:9090"),
        ("https://host/prometheus", "https://host/prometheus"),
        ("http://[::1]:9090", "http://[::1]:9090"),
    ],
)
def test_an_address_may_have_a_prefix(url, base):
    assert checked_url(url) == base


def test_a_token_does_not_pass_a_network_without_tls(tmp_path):
    (tmp_path / "token").write_text(TOKEN)

    with pytest.raises(InputError, match="https"):
        access("http://prometheus.monitoring:9090", tmp_path / "token")
    assert access("https://prometheus:9090", tmp_path / "token").tls is not None


@pytest.mark.parametrize("content", ["", "  \n", "two words", "line\nline", "é", "x" * 20_000])
def test_a_file_without_one_token_is_refused_and_not_told(tmp_path, content):
    (tmp_path / "token").write_text(content)

    with pytest.raises(InputError, match="token") as told:
        access("https://host", tmp_path / "token")
    assert not content.strip() or content not in str(told.value)


@pytest.mark.parametrize("tenant", ["", "a b", "a\nb", "x" * 151, "é"])
def test_a_tenant_that_is_no_name_is_refused(tenant):
    with pytest.raises(InputError, match="tenant"):
        access("https://host", tenant=tenant)


def test_a_certificate_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")

    for path in (tmp_path / "ca.pem", tmp_path / "missing"):
        with pytest.raises(InputError, match="certificate"):
            access("https://host", ca_file=path)


@given(st.integers(0, 10_000_000))
def test_cores_are_millis_whatever_their_text(amount):
    assert millis(float(f"{amount / 1000}")) == amount
    assert millis(amount * 0.001) == amount


def test_a_part_of_a_millicore_is_rounded_up():
    assert millis(1e-5) == 1
    assert millis(0.1001) == 101


@given(st.floats(0, 1e18))
def test_a_value_is_read_as_it_was_written(value):
    assert sample_value(repr(value)) == value


@given(st.integers(0, 2**53))
def test_bytes_are_exact(size):
    assert sample_value(str(size)) == size


@pytest.mark.parametrize("text", ["NaN", "+Inf", "-Inf", "-1", "1e300", "1e19"])
def test_a_value_that_no_container_can_have_is_none(text):
    assert sample_value(text) is None


@given(st.integers(0, 99), st.integers(0, 99), st.integers(0, 9999))
def test_a_duration_is_the_sum_of_its_parts(hours, minutes, seconds):
    assert duration_s(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds
    assert duration_s(as_duration(seconds)) == seconds


@given(st.text())
def test_any_other_text_is_no_duration(text):
    try:
        seconds = duration_s(text)
    except ValueError:
        return
    assert seconds >= 0
    assert set(text) <= set("0123456789hms")


@given(st.text().filter(lambda text: text.isprintable()))
def test_a_label_value_cannot_leave_its_quotes(value):
    text = quoted(value)

    assert text[0] == text[-1] == '"'
    assert json.loads(text) == value
    assert text[1:-1].replace("\\\\", "").replace('\\"', "").count('"') == 0


@pytest.mark.parametrize("pair", ["", "=x", "a", "1a=x", 'a"}=x', "a b=x", "a=\udcff"])
def test_a_selector_that_is_no_label_is_refused(pair):
    with pytest.raises(InputError, match="--selector"):
        matchers_of([pair])


def test_names_of_namespaces_are_no_patterns():
    scope = Scope(namespaces=("a.b", 'c"|d'))

    assert scope.select("up") == r'up{namespace=~"a\\.b|c\"\\|d"}'


@given(st.integers(1, 500), st.integers(1, 600))
def test_the_pieces_of_a_window_have_each_step_once(steps, most):
    window = Window(1_764_140_400, 60, steps)

    times = [at for begin, end in window.pieces(most) for at in range(begin, end + 1, 60)]
    assert [window.step_of(at) for at in times] == list(range(steps))
