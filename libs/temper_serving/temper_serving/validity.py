"""When a certificate is valid."""

import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime

from attrs import frozen

EARLY = "the certificate that is served is valid only from {start} on"
EXPIRED = "the certificate that is served was valid until {end}"
UTC_TIME, GENERALIZED_TIME, VERSION = 0x17, 0x18, 0xA0
"""Tags of DER."""
LONG_LENGTH = 0x80
CENTURY_FROM = "50"
"""A year of two digits is from 1950 to 2049."""
_PEM = re.compile(
    rb"^-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----(.*?)^-----END \1-----",
    re.DOTALL | re.MULTILINE,
)
_TIME = re.compile(r"[0-9]{14}Z", re.ASCII)

Clock = Callable[[], datetime]


def now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


@frozen
class ValidityPeriod:
    """The period of validity of a certificate."""

    start: datetime
    end: datetime

    @property
    def expiry(self) -> float:
        """When it ends, in seconds since the epoch."""
        return self.end.timestamp()

    def why_invalid(self, moment: datetime) -> str:
        """Return why clients refuse the certificate at *moment*. Empty if they do not."""
        if moment < self.start:
            return EARLY.format(start=self.start.isoformat())
        return EXPIRED.format(end=self.end.isoformat()) if moment >= self.end else ""


def read_period(pem: bytes) -> ValidityPeriod:
    """Return the period of the first certificate of *pem*, which OpenSSL has accepted.

    Raises ValueError if there is none. Neither ``ssl`` nor a context tells it.
    """
    found = _PEM.search(pem)
    if found is None:
        raise ValueError("no certificate")
    try:
        return _period(binascii.a2b_base64(found[2]))
    except IndexError as error:
        raise ValueError("the certificate ends early") from error


def _period(der: bytes) -> ValidityPeriod:
    _, certificate, _ = _element(der, 0)
    _, at, _ = _element(der, certificate)
    tag, _, end = _element(der, at)
    at = end if tag == VERSION else at
    for _ in ("serial number", "algorithm", "issuer"):
        _, _, at = _element(der, at)
    _, at, _ = _element(der, at)
    start, at = _time(der, at)
    return ValidityPeriod(start, _time(der, at)[0])


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """Return the tag of the element at *at*, and where its content begins and ends."""
    length, begin = der[at + 1], at + 2
    if length >= LONG_LENGTH:
        count = length - LONG_LENGTH
        length, begin = int.from_bytes(der[begin : begin + count]), begin + count
    return der[at], begin, begin + length


def _time(der: bytes, at: int) -> tuple[datetime, int]:
    """Return the time at *at*, and where it ends."""
    tag, begin, end = _element(der, at)
    text = der[begin:end].decode("ascii")
    if tag == UTC_TIME:
        text = ("20" if text[:2] < CENTURY_FROM else "19") + text
    if tag not in (UTC_TIME, GENERALIZED_TIME) or not _TIME.fullmatch(text):
        raise ValueError("no time of a certificate")
    return datetime.strptime(text, "%Y%m%d%H%M%S%z"), end
