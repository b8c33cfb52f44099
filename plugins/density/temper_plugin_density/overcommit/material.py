"""The contents of the Secret: authorities, newest first, and the served certificate.

``renewed`` decides from the material alone, so that several replicas come to the same result. The
first replica to write the Secret wins.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from attrs import evolve, field, frozen

from temper_core import InputError
from temper_plugin_density.overcommit import certificates as x509

CERTIFICATE, KEY = "tls.crt", "tls.key"
AUTHORITIES, AUTHORITY_KEY = "ca.crt", "ca.key"


@frozen
class Terms:
    """The names and the lifetimes of certificates."""

    names: frozenset[str]
    certificate_life: timedelta = timedelta(days=90)
    authority_life: timedelta = timedelta(days=3 * 365)
    overlap: timedelta = timedelta(minutes=5)
    """How long the API server knows an authority before a certificate that it signed is served."""


@frozen
class Material:
    """Authorities with the key of the newest, and a certificate with its key."""

    authorities: tuple[x509.Certificate, ...]
    authority_key: x509.Key = field(repr=False, eq=False)
    certificate: x509.Certificate
    key: x509.Key = field(repr=False, eq=False)

    @property
    def newest(self) -> x509.Certificate:
        """The authority that signs."""
        return self.authorities[0]

    @property
    def is_of_newest(self) -> bool:
        """Whether the newest authority signed the served certificate."""
        return x509.is_signed_by(self.certificate, self.newest)

    def written(self) -> Mapping[str, bytes]:
        """Return the data of the Secret."""
        return {
            CERTIFICATE: x509.written([self.certificate]),
            KEY: x509.written_key(self.key),
            AUTHORITIES: x509.written(self.authorities),
            AUTHORITY_KEY: x509.written_key(self.authority_key),
        }


def read(data: Mapping[str, bytes]) -> Material:
    """Read the data of the Secret. Raise InputError naming the wrong entry."""
    material = Material(
        x509.read(data.get(AUTHORITIES, b""), AUTHORITIES),
        x509.read_key(data.get(AUTHORITY_KEY, b""), AUTHORITY_KEY),
        x509.read(data.get(CERTIFICATE, b""), CERTIFICATE)[0],
        x509.read_key(data.get(KEY, b""), KEY),
    )
    if material.newest.public_key() != material.authority_key.public_key():
        raise InputError(f"{AUTHORITY_KEY}: is not the key of the first of {AUTHORITIES}")
    if material.certificate.public_key() != material.key.public_key():
        raise InputError(f"{KEY}: is not the key of {CERTIFICATE}")
    if not any(
        x509.is_signed_by(material.certificate, authority) for authority in material.authorities
    ):
        raise InputError(f"{CERTIFICATE}: is signed by none of {AUTHORITIES}")
    return material


def made(terms: Terms, now: datetime) -> Material:
    """Make a first authority and certificate."""
    key, authority_key = x509.make_key(), x509.make_key()
    authority = x509.make_authority(authority_key, _span(now, terms.authority_life))
    span = _span(now, terms.certificate_life)
    certificate = x509.make_certificate(key, terms.names, span, authority, authority_key)
    return Material((authority,), authority_key, certificate, key)


def renewed(
    material: Material, terms: Terms, now: datetime, trusted: frozenset[bytes] | None
) -> Material:
    """Return the material to use at *now*: *material* itself until a part of it is due.

    *trusted* are the fingerprints of the authorities that the API server trusts, None if unknown.
    """
    staged = _with_authority(material, terms, now)
    current = staged.certificate
    lacks = not terms.names <= x509.names_of(current)
    if not (lacks or x509.is_due(current, now) or not staged.is_of_newest):
        return staged
    if x509.is_valid(current, now) and not _may_sign(staged, terms, now, trusted):
        return staged
    # Two replicas with different names keep each other's.
    names = terms.names | x509.names_of(current) if lacks else terms.names
    return _with_certificate(staged, evolve(terms, names=names), now)


def _with_authority(material: Material, terms: Terms, now: datetime) -> Material:
    """Put a new authority before one that is due, and drop expired ones."""
    kept = tuple(
        authority for authority in material.authorities[1:] if x509.is_valid(authority, now)
    )
    if not x509.is_due(material.newest, now):
        return evolve(material, authorities=(material.newest, *kept))
    if x509.is_valid(material.newest, now):
        kept = (material.newest, *kept)
    key = x509.make_key()
    young = x509.make_authority(key, _span(now, terms.authority_life))
    return evolve(material, authorities=(young, *kept), authority_key=key)


def _may_sign(
    material: Material, terms: Terms, now: datetime, trusted: frozenset[bytes] | None
) -> bool:
    """Whether the API server will trust a certificate of the newest authority."""
    if material.is_of_newest:
        return True
    is_known = trusted is not None and x509.fingerprint(material.newest) in trusted
    return is_known and now >= x509.begun(material.newest) + terms.overlap


def _with_certificate(material: Material, terms: Terms, now: datetime) -> Material:
    key = x509.make_key()
    certificate = x509.make_certificate(
        key,
        terms.names,
        _span(now, terms.certificate_life),
        material.newest,
        material.authority_key,
    )
    return evolve(material, certificate=certificate, key=key)


def _span(now: datetime, life: timedelta) -> x509.ValidityPeriod:
    return x509.ValidityPeriod(now, now + life)
