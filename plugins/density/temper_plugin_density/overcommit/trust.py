"""The bundle of authorities that the API server is to trust."""

from collections.abc import Iterable
from datetime import datetime

from temper_core import InputError
from temper_plugin_density.overcommit import certificates as x509

MOST_KEPT = 4


def bundle(authorities: Iterable[x509.Certificate], found: bytes, now: datetime) -> bytes:
    """Return *authorities*, and those of ours that are in the bundle *found* and still valid.

    A replica may serve what one of these signed, until it has read the Secret again.
    """
    own = tuple(authorities)
    known = {x509.fingerprint(each) for each in own}
    others = [
        each
        for each in _readable(found)
        if x509.is_ours(each) and x509.is_valid(each, now) and x509.fingerprint(each) not in known
    ]
    others.sort(key=lambda each: (each.not_valid_before_utc, x509.fingerprint(each)), reverse=True)
    return x509.written((*own, *others[:MOST_KEPT]))


def fingerprints(found: bytes) -> frozenset[bytes]:
    """Return the fingerprints of what is in a bundle. None where it holds no certificates."""
    return frozenset(map(x509.fingerprint, _readable(found)))


def _readable(found: bytes) -> tuple[x509.Certificate, ...]:
    try:
        return x509.read(found, "caBundle")
    except InputError:
        return ()
