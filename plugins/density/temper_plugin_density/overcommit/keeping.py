"""Keeps the certificate and the authorities in the cluster, and adopts those of other replicas."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import structlog

from temper_core import InputError, MachineError, TemperError
from temper_kube.failures import ConflictError
from temper_plugin_density.overcommit import certificates as x509
from temper_plugin_density.overcommit import material as materials
from temper_plugin_density.overcommit import trust
from temper_plugin_density.overcommit.cluster import Configured, Objects, StoredSecret
from temper_plugin_density.overcommit.material import Material, Terms

TRIES = 5
"""Conflicts between replicas that one check tolerates. Each conflict means one replica is done."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Clock = Callable[[], datetime]


def now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)


class CertificateKeeper:
    """Keeps the material of this replica in line with the Secret and the configuration.

    The material stays in force while the Secret is missing, unreadable or malformed. The Secret is
    written again as soon as the API server permits it.
    """

    def __init__(self, objects: Objects, terms: Terms, clock: Clock = now) -> None:
        self._objects, self._terms, self._clock = objects, terms, clock
        self.material: Material | None = None
        self.is_trusted = False
        """Whether the configuration has once held the authorities of the served certificate."""

    def check(self) -> None:
        """Bring both objects in line once. Raise MachineError with the problems that remain."""
        for _ in range(TRIES):
            try:
                return self._agree()
            except ConflictError as error:
                log.info("another_replica_was_first", object=str(error))
        raise MachineError(f"other replicas wrote first {TRIES} times in a row")

    def _agree(self) -> None:
        """Do as much as possible: a problem with one object does not delay the other."""
        problems: list[str] = []
        configured = None
        with _noted(problems):
            configured = self._objects.configuration()
            if configured is None:
                problems.append("there is no webhook configuration: no pod reaches the webhook")
        with _noted(problems):
            self._settle(configured)
        with _noted(problems):
            self._make_trusted(configured)
        if problems:
            raise MachineError("; ".join(problems))

    def _settle(self, configured: Configured | None) -> None:
        """Agree on the material with the Secret."""
        trusted = None if configured is None else _trusted_by_all(configured)
        try:
            secret = self._objects.secret()
        except TemperError:
            self._renew_alone(trusted)
            raise
        stored = self._read(secret)
        target = self._wanted(self._fresher(stored), trusted)
        try:
            self._write(secret, stored, target)
        except ConflictError:
            raise
        except TemperError:
            # Material that cannot be written can still be served, unless it is the first.
            if self.material is not None:
                self._take_up(target)
            raise
        self._take_up(target)

    def _write(
        self, secret: StoredSecret | None, stored: Material | None, target: Material
    ) -> None:
        if secret is None:
            self._objects.create_secret(target.written())
            log.info("secret_created")
        elif target != stored:
            self._objects.update_secret(secret, target.written())
            log.info("secret_updated")

    def _fresher(self, stored: Material | None) -> Material | None:
        """Return the Secret's material, or this replica's own if that was renewed later."""
        own = self.material
        if stored is None or own is None or own.newest != stored.newest:
            return stored or own
        clock = self._clock()
        is_behind = x509.is_due(stored.certificate, clock) and not x509.is_due(
            own.certificate, clock
        )
        return own if is_behind else stored

    def _renew_alone(self, trusted: frozenset[bytes] | None) -> None:
        """Renew with the same authority while the Secret cannot be read."""
        if self.material is not None:
            self._take_up(self._wanted(self.material, trusted))

    def _wanted(self, current: Material | None, trusted: frozenset[bytes] | None) -> Material:
        if current is None:
            return materials.made(self._terms, self._clock())
        return materials.renewed(current, self._terms, self._clock(), trusted)

    def _read(self, secret: StoredSecret | None) -> Material | None:
        if secret is None or not secret.data:
            return None
        try:
            return materials.read(secret.data)
        except InputError as error:
            log.warning("secret_was_rubbish", reason=str(error))
            return None

    def _take_up(self, target: Material) -> None:
        if self.material != target:
            end = target.certificate.not_valid_after_utc
            log.info("certificate_taken_up", valid_until=end.isoformat())
        self.material = target

    def _make_trusted(self, configured: Configured | None) -> None:
        """Add missing authorities to the configuration."""
        if self.material is None or configured is None:
            return
        bundles = {
            name: trust.bundle(self.material.authorities, bundle, self._clock())
            for name, bundle in configured.bundles.items()
        }
        changed = {
            name: bundle for name, bundle in bundles.items() if bundle != configured.bundles[name]
        }
        if changed:
            self._objects.set_bundles(configured, changed)
            log.info("authorities_told", authorities=len(self.material.authorities))
        self.is_trusted = True


@contextmanager
def _noted(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except ConflictError:
        raise
    except TemperError as error:
        problems.append(str(error))


def _trusted_by_all(configured: Configured) -> frozenset[bytes]:
    """Return the fingerprints of the authorities that every webhook of the configuration has."""
    fingerprints = [trust.fingerprints(bundle) for bundle in configured.bundles.values()]
    return frozenset.intersection(*fingerprints) if fingerprints else frozenset()


def expiry(certificate: x509.Certificate) -> float:
    """Return when *certificate* expires, in seconds since the epoch."""
    return certificate.not_valid_after_utc.timestamp()
