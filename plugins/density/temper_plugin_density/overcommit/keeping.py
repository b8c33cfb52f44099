"""Keeps what a replica presents in line with the Secret, and knows whether it is trusted."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import structlog

from temper_core import InputError, MachineError, TemperError
from temper_plugin_density.overcommit import certificates as x509
from temper_plugin_density.overcommit import material as materials
from temper_plugin_density.overcommit.cluster import Objects
from temper_plugin_density.overcommit.material import Authority, Material, Terms
from temper_serving.validity import Clock, now

UNTRUSTED = "the webhook configuration does not trust what is served: {names}"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class CertificateKeeper:
    """Reads the Secret and the configuration, and signs this replica's certificates.

    Nothing is written to the cluster. While the Secret is missing, unreadable or malformed, the
    last authority stays in force and goes on signing.
    """

    def __init__(self, objects: Objects, terms: Terms, clock: Clock = now) -> None:
        self._objects, self._terms, self._clock = objects, terms, clock
        self._authority: Authority | None = None
        self.material: Material | None = None
        self.is_trusted = False
        """Whether the configuration, when it was last read, trusted the served certificate.

        False for a certificate that has expired, or is not valid yet.
        """

    @property
    def authority(self) -> x509.Certificate | None:
        """The authority that signs here. None for a certificate from elsewhere."""
        return None if self._authority is None else self._authority.certificate

    def check(self) -> None:
        """Read both objects once. Raise MachineError with the problems that there are."""
        problems: list[str] = []
        bundles = None
        with _noted(problems):
            self._read_secret()
        with _noted(problems):
            bundles = self._read_bundles()
        with _noted(problems):
            self._sign_if_due(bundles)
        with _noted(problems):
            self._compare(bundles)
        if problems:
            raise MachineError("; ".join(problems))

    def _read_secret(self) -> None:
        data = self._objects.secret()
        if data is None:
            raise MachineError("there is no Secret with an authority or a certificate")
        try:
            if materials.AUTHORITY_KEY in data:
                self._authority = materials.read_authority(data)
            else:
                self._take_up(materials.read_given(data))
                self._authority = None
        except InputError as error:
            raise MachineError(f"the Secret cannot be used: {error}") from error

    def _read_bundles(self) -> Mapping[str, bytes]:
        bundles = self._objects.bundles()
        if bundles is None:
            self.is_trusted = False
            raise MachineError("there is no webhook configuration: no pod reaches the webhook")
        return bundles

    def _sign_if_due(self, bundles: Mapping[str, bytes] | None) -> None:
        authority, clock = self._authority, self._clock()
        if authority is None:
            return
        is_refused = bundles is not None and bool(self._strangers(bundles))
        if materials.must_sign(self.material, authority, self._terms, clock, is_refused=is_refused):
            self._take_up(materials.signed(authority, self._terms, clock))

    def _take_up(self, target: Material) -> None:
        if self.material != target:
            end = target.certificate.not_valid_after_utc
            log.info("certificate_taken_up", valid_until=end.isoformat())
        self.material = target

    def _compare(self, bundles: Mapping[str, bytes] | None) -> None:
        """Find out whether every webhook of the configuration trusts what is served."""
        if bundles is None or self.material is None:
            return
        strangers = self._strangers(bundles)
        self.is_trusted = bool(bundles) and not strangers
        if not self.is_trusted:
            raise MachineError(UNTRUSTED.format(names=", ".join(strangers) or "it has no webhook"))
        invalid = x509.period_of(self.material.certificate).why_invalid(self._clock())
        if invalid:
            self.is_trusted = False
            raise MachineError(invalid)

    def _strangers(self, bundles: Mapping[str, bytes]) -> list[str]:
        """Return the webhooks that do not trust what is served."""
        material = self.material
        if material is None:
            return []
        return [name for name, bundle in bundles.items() if not material.is_trusted_by(bundle)]


@contextmanager
def _noted(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except TemperError as error:
        problems.append(str(error))
