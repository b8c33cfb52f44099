"""The CA bundle of authorities for the API server."""

from collections.abc import Iterable
from datetime import datetime

from temper_core import InputError
from temper_plugin_density.overcommit import certificates as x509

MOST_KEPT = 4


def bundle(authorities: Iterable[x509.Certificate], found: bytes, now: datetime) -> bytes:
    """Return *authorities* and the valid authorities of other replicas in the bundle *found*.

    A replica may serve a certificate of one of these until it reads the Secret again.
    """
    own = tuple(authorities)
    known = {x509.fingerprint(certificate) for certificate in own}
    others = [
        certificate
        for certificate in _readable(found)
        if x509.is_ours(certificate)
        and x509.is_valid(certificate, now)
        and x509.fingerprint(certificate) not in known
    ]
    others.sort(
        key=lambda certificate: (certificate.not_valid_before_utc, x509.fingerprint(certificate)),
        reverse=True,
    )
    return x509.written((*own, *others[:MOST_KEPT]))


def fingerprints(found: bytes) -> frozenset[bytes]:
    """Return the fingerprints of a bundle's certificates. Empty if it has none."""
    return frozenset(map(x509.fingerprint, _readable(found)))


def _readable(pem: bytes) -> tuple[x509.Certificate, ...]:
    try:
        return x509.read(pem, "caBundle")
    except InputError:
        return ()
