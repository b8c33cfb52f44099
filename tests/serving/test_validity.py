"""When a certificate is valid, read from its PEM, beside what ``cryptography`` reads."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_density.overcommit import certificates
from temper_serving.validity import ValidityPeriod, read_period

KEY = certificates.make_key()
START = datetime(2026, 11, 30, 12, tzinfo=UTC)
BACKDATED = certificates.BACKDATED


def pem_of(start, end):
    made = certificates.make_authority(KEY, ValidityPeriod(start, end))
    return certificates.written([made])


@pytest.mark.parametrize(
    "start",
    [START, datetime(1950, 1, 2, tzinfo=UTC), datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC)],
)
@pytest.mark.parametrize(
    "end",
    [
        START + timedelta(days=90),
        datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2050, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_the_times_are_those_of_the_certificate(start, end):
    assert read_period(pem_of(start, end)) == ValidityPeriod(start - BACKDATED, end)


def test_the_first_of_a_chain_counts_whatever_is_written_around_it():
    first, second = pem_of(START, START + timedelta(days=1)), pem_of(START, START)
    text = b"Certificate:\n  -----BEGIN CERTIFICATE-----\n" + certificates.written_key(KEY)

    found = read_period(text + first.replace(b"\n", b"\r\n") + second)

    assert found.end == START + timedelta(days=1)


@pytest.mark.parametrize(
    "pem", [b"", certificates.written_key(KEY), b"-----BEGIN CERTIFICATE-----"]
)
def test_a_text_without_a_certificate_has_no_period(pem):
    with pytest.raises(ValueError, match="no certificate"):
        read_period(pem)


DER = ssl.PEM_cert_to_DER_cert(pem_of(START, START + timedelta(days=1)).decode())


@given(st.integers(0, 250), st.binary(max_size=4))
def test_damaged_bytes_give_a_period_or_a_value_error(at, other):
    damaged = DER[:at] + other + DER[at + len(other) :]
    pem = ssl.DER_cert_to_PEM_cert(damaged).encode()
    try:
        known = x509.load_pem_x509_certificate(pem)
        expected = certificates.period_of(known)
    except (ValueError, x509.InvalidVersion):
        expected = None

    try:
        found = read_period(pem)
    except ValueError:
        found = None

    assert expected is None or found in (None, expected)


@pytest.mark.parametrize("end", [0, 1, 2, 4, 5, 30, 100])
def test_bytes_that_end_early_are_a_value_error(end):
    with pytest.raises(ValueError, match="certificate"):
        read_period(ssl.DER_cert_to_PEM_cert(DER[:end]).encode())
