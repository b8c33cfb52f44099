"""The certificate that the webhook presents, from the contents of its Secret.

The Secret holds either an authority, ``ca.crt`` and ``ca.key``, with which each replica signs a
certificate of its own in memory, or a certificate from elsewhere, ``tls.crt`` and ``tls.key``.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from attrs import field, frozen

from temper_core import InputError
from temper_plugin_density.overcommit import certificates as x509

CERTIFICATE, KEY = "tls.crt", "tls.key"
AUTHORITY, AUTHORITY_KEY = "ca.crt", "ca.key"


@frozen
class Terms:
    """The names and the lifetimes of certificates."""

    names: frozenset[str]
    certificate_life: timedelta = timedelta(days=90)
    overlap: timedelta = timedelta(minutes=5)
    """How old an authority is before it replaces another that still signs for this replica."""


@frozen
class Authority:
    """A certificate authority with its key."""

    certificate: x509.Certificate
    key: x509.Key = field(repr=False, eq=False)


@frozen
class Material:
    """A certificate chain, the server's own certificate first, with its key."""

    chain: tuple[x509.Certificate, ...]
    key: x509.PrivateKey = field(repr=False, eq=False)

    @property
    def certificate(self) -> x509.Certificate:
        """The server's own certificate."""
        return self.chain[0]

    def is_trusted_by(self, bundle: bytes) -> bool:
        """Whether an authority of the CA bundle *bundle* signed a certificate of the chain."""
        try:
            authorities = x509.read(bundle, "caBundle")
        except InputError:
            return False
        return any(
            x509.is_signed_by(certificate, authority)
            for certificate in self.chain
            for authority in authorities
        )


def read_authority(data: Mapping[str, bytes]) -> Authority:
    """Read the authority of the Secret. Raise InputError naming the wrong entry."""
    authority = Authority(
        x509.read(data.get(AUTHORITY, b""), AUTHORITY)[0],
        x509.read_key(data.get(AUTHORITY_KEY, b""), AUTHORITY_KEY),
    )
    if authority.certificate.public_key() != authority.key.public_key():
        raise InputError(f"{AUTHORITY_KEY}: is not the key of the first of {AUTHORITY}")
    return authority


def read_given(data: Mapping[str, bytes]) -> Material:
    """Read the Secret's certificate from elsewhere. Raise InputError naming the wrong entry."""
    material = Material(
        x509.read(data.get(CERTIFICATE, b""), CERTIFICATE),
        x509.read_any_key(data.get(KEY, b""), KEY),
    )
    if material.certificate.public_key() != material.key.public_key():
        raise InputError(f"{KEY}: is not the key of {CERTIFICATE}")
    return material


def signed(authority: Authority, terms: Terms, now: datetime) -> Material:
    """Return a new certificate of *authority*, valid from *now*.

    Raises InputError if there can be none, such as of an authority that has expired.
    """
    key = x509.make_key()
    try:
        period = x509.ValidityPeriod(now, now + terms.certificate_life)
        certificate = x509.make_certificate(
            key, terms.names, period, authority.certificate, authority.key
        )
    except (ValueError, OverflowError) as error:
        end = authority.certificate.not_valid_after_utc.isoformat()
        problem = f"{AUTHORITY}: is valid until {end} and signs nothing at {now.isoformat()}"
        raise InputError(problem) from error
    return Material((certificate,), key)


def must_sign(
    current: Material | None,
    authority: Authority,
    terms: Terms,
    now: datetime,
    *,
    is_refused: bool = False,
) -> bool:
    """Whether *current* has to be replaced by a certificate of *authority*.

    A valid certificate of an earlier authority is kept for the overlap, since not every API server
    may know the new authority yet, unless *is_refused*: the configuration does not trust it.
    """
    if current is None or not x509.is_valid(current.certificate, now):
        return True
    if not x509.is_signed_by(current.certificate, authority.certificate):
        return is_refused or now >= x509.begun(authority.certificate) + terms.overlap
    return x509.is_due(current.certificate, now) or not terms.names <= x509.names_of(
        current.certificate
    )
