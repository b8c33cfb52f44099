"""The certificate of a server in two files, as a mounted Secret has them."""

import asyncio
import os
import ssl
from pathlib import Path

import structlog
from attrs import define, field

from temper_core import InputError
from temper_serving.tls import present, server_context
from temper_serving.validity import Clock, ValidityPeriod, now, read_period

CHECK_S = 30.0
MOST_BYTES = 1024 * 1024

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@define(eq=False)
class CertificateFiles:
    """A chain, the server's own certificate first, and its key, both as PEM.

    ``context`` serves them. Made by ``load``.
    """

    certificate: Path
    key: Path
    clock: Clock = now
    context: ssl.SSLContext = field(factory=server_context, init=False)
    period: ValidityPeriod = field(init=False, repr=False)
    """Of the certificate that is served."""
    _presented: bytes = field(default=b"", init=False, repr=False)
    _told: str = field(default="", init=False)

    @classmethod
    def load(cls, certificate: Path, key: Path, clock: Clock = now) -> "CertificateFiles":
        """Return the files. Raises InputError if they cannot be used.

        A certificate that has expired can be: it is served, as the next one may be on its way.
        """
        files = cls(certificate, key, clock)
        files.take_up()
        return files

    def why_invalid(self) -> str:
        """Return why clients refuse what is served. Empty while they do not."""
        return self.period.why_invalid(self.clock())

    def take_up(self) -> bool:
        """Serve the files from the next handshake on if they have changed. Return whether.

        Raises InputError if they cannot be used. The last certificate stays in force then.
        """
        pem = _read(self.certificate) + b"\n" + _read(self.key)
        if pem == self._presented:
            return False
        # A context is changed even where the key does not fit, so a new one is tried first.
        period = self._present(server_context(), pem)
        self._present(self.context, pem)
        self._presented, self.period = pem, period
        return True

    async def keep(self, every_s: float = CHECK_S) -> None:
        """Take up changed files every *every_s* seconds, until it is cancelled.

        The log tells once that the certificate is not valid, and why.
        """
        while True:
            self._tell()
            await asyncio.sleep(every_s)
            try:
                if self.take_up():
                    log.info("certificate_taken_up", certificate=str(self.certificate))
            except InputError as error:
                log.warning("certificate_not_taken_up", reason=str(error))

    def _tell(self) -> None:
        reason = self.why_invalid()
        if reason and reason != self._told:
            log.warning("certificate_not_valid", certificate=str(self.certificate), reason=reason)
        self._told = reason

    def _present(self, context: ssl.SSLContext, pem: bytes) -> ValidityPeriod:
        try:
            present(context, pem)
            return read_period(pem)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise InputError(
                f"{self.certificate}, {self.key}: hold no certificate with its key, unencrypted"
            ) from error


def _read(path: Path) -> bytes:
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            return file.read(MOST_BYTES) or b""
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _without_waiting(path: str, flags: int) -> int:
    """Open a pipe, too, without waiting for its writer: the event loop would stand still."""
    return os.open(path, flags | os.O_NONBLOCK)
