"""Keep certificate and authorities in the cluster, and take up what another replica made."""

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
"""So often replicas may get in each other's way in one check. Each time one of them is done."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Clock = Callable[[], datetime]


def now() -> datetime:
    """Return what time it is."""
    return datetime.now(UTC)


class CertificateKeeper:
    """What is in force, as the Secret and the configuration agree.

    What it has it keeps: it goes on serving while the Secret is away, cannot be read, or is
    rubbish, and writes it anew as soon as it may.
    """

    def __init__(self, objects: Objects, terms: Terms, clock: Clock = now) -> None:
        self._objects, self._terms, self._clock = objects, terms, clock
        self.material: Material | None = None
        self.is_trusted = False
        """Whether the API server has once been seen to trust what is served."""

    def check(self) -> None:
        """Bring everything in line once. Raise MachineError with what could not be."""
        for _ in range(TRIES):
            try:
                return self._agree()
            except ConflictError as error:
                log.info("another_replica_was_first", object=str(error))
        raise MachineError(f"others were first {TRIES} times in a row")

    def _agree(self) -> None:
        """Do whatever can be done: neither object is to wait for the other."""
        problems: list[str] = []
        configured = None
        with _noted(problems):
            configured = self._objects.configuration()
            if configured is None:
                problems.append("there is no webhook configuration; nobody asks")
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
            held = self._objects.secret()
        except TemperError:
            self._renew_alone(trusted)
            raise
        found = self._read(held)
        wanted = self._wanted(self._fresher(found), trusted)
        try:
            self._write(held, found, wanted)
        except ConflictError:
            raise
        except TemperError:
            # What cannot be written can be served all the same, if it is not the first.
            if self.material is not None:
                self._take_up(wanted)
            raise
        self._take_up(wanted)

    def _write(self, held: StoredSecret | None, found: Material | None, wanted: Material) -> None:
        if held is None:
            self._objects.create_secret(wanted.written())
            log.info("secret_created")
        elif wanted != found:
            self._objects.update_secret(held, wanted.written())
            log.info("secret_updated")

    def _fresher(self, found: Material | None) -> Material | None:
        """Return what is in the Secret, or what this replica had to make without it."""
        own = self.material
        if found is None or own is None or own.newest != found.newest:
            return found or own
        clock = self._clock()
        is_behind = x509.is_due(found.certificate, clock) and not x509.is_due(
            own.certificate, clock
        )
        return own if is_behind else found

    def _renew_alone(self, trusted: frozenset[bytes] | None) -> None:
        """Go on with a certificate of the same authority where the Secret cannot be asked."""
        if self.material is not None:
            self._take_up(self._wanted(self.material, trusted))

    def _wanted(self, found: Material | None, trusted: frozenset[bytes] | None) -> Material:
        if found is None:
            return materials.made(self._terms, self._clock())
        return materials.renewed(found, self._terms, self._clock(), trusted)

    def _read(self, held: StoredSecret | None) -> Material | None:
        if held is None or not held.data:
            return None
        try:
            return materials.read(held.data)
        except InputError as error:
            log.warning("secret_was_rubbish", reason=str(error))
            return None

    def _take_up(self, wanted: Material) -> None:
        if self.material != wanted:
            end = wanted.certificate.not_valid_after_utc
            log.info("certificate_taken_up", valid_until=end.isoformat())
        self.material = wanted

    def _make_trusted(self, configured: Configured | None) -> None:
        """Put the authorities into the configuration where they are not."""
        if self.material is None or configured is None:
            return
        wanted = {
            name: trust.bundle(self.material.authorities, found, self._clock())
            for name, found in configured.bundles.items()
        }
        changed = {
            name: bundle for name, bundle in wanted.items() if bundle != configured.bundles[name]
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
    found = [trust.fingerprints(bundle) for bundle in configured.bundles.values()]
    return frozenset.intersection(*found) if found else frozenset()


def expiry(certificate: x509.Certificate) -> float:
    """Return when *certificate* expires, in seconds since the epoch."""
    return certificate.not_valid_after_utc.timestamp()
