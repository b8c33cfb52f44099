"""Credentials from a program of a kubeconfig, which prints a token or a certificate.

Protocol: Kubernetes' "client-go credential plugins" (client.authentication.k8s.io, v1 and v1beta1).
"""

import base64
import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from attrs import field, frozen

from temper_core import InputError, MachineError
from temper_kube.small_files import small_file

EXEC_S = 60.0
LARGEST_BYTES = 1024 * 1024
MOST_WRITTEN_BYTES = 64 * 1024 * 1024
"""The size of each file that the program writes. Its output is one, and so are its caches."""
VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

Table = Mapping[str, Any]


@frozen
class Issued:
    """A program's output: a token, or a certificate with its key, and the time of expiry."""

    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    expires_at: float = float("inf")


@frozen
class Command:
    """A command line with its environment, and a hint for a missing program."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    hint: str = ""

    @property
    def name(self) -> str:
        """The command's name in messages."""
        return f"exec {self.words[0]!r}"

    def run(self) -> bytes:
        """Run the program and return its output. Raise MachineError if it fails.

        The output goes to a file: a pipe would stay open while any child of the program runs.
        """
        import tempfile  # noqa: PLC0415 - half a MiB, and an agent runs no such program

        with tempfile.TemporaryFile() as output:
            try:
                code = self._ended(output)
            except subprocess.TimeoutExpired as error:
                raise MachineError(f"{self.name} did not end within {EXEC_S:g} s") from error
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                hint = f"; {' '.join(self.hint.split())}" if self.hint else ""
                raise MachineError(f"{self.name} cannot be run: {reason}{hint}") from error
            if code != 0:
                raise MachineError(f"{self.name} ended with code {code}")
            output.seek(0)
            return output.read(LARGEST_BYTES)

    def _ended(self, output: IO[bytes]) -> int:
        """Run the program to its end and return its exit code."""
        with subprocess.Popen(  # noqa: S603 - the kubeconfig's program, as in kubectl
            self.words, env=self.environment, stdout=output
        ) as process:
            try:
                with suppress(ProcessLookupError):  # it has ended
                    most = MOST_WRITTEN_BYTES, MOST_WRITTEN_BYTES
                    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, most)
                return process.wait(EXEC_S)
            finally:
                process.kill()


class CredentialProgram:
    """A program and its last credentials, for any thread.

    The program runs again when they have expired, and after the server has refused them.
    """

    def __init__(
        self, command: Command, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._command = command
        self._clock = clock
        self._issued: Issued | None = None
        self._lock = threading.Lock()

    def credentials(self) -> Issued:
        """Return valid credentials. Raise MachineError if the program prints none."""
        with self._lock:
            if self._issued is None or self._issued.expires_at <= self._clock().timestamp():
                self._issued = _issued(self._command)
            return self._issued

    def refused(self, issued: Issued) -> None:
        """Record that the server refuses the *issued* credentials."""
        with self._lock:
            if self._issued is issued:
                self._issued = None


def read_program(entry: object, cluster: Table) -> CredentialProgram:
    """Read the key ``exec`` of a kubeconfig's user. Raise InputError if it is malformed."""
    if not isinstance(entry, dict):
        raise InputError("exec: must be a table with the keys 'apiVersion' and 'command'")
    version, name = str(entry.get("apiVersion", "")), str(entry.get("command") or "")
    if version not in VERSIONS:
        raise InputError(
            f"exec {name!r}: apiVersion must be {' or '.join(VERSIONS)}, not {version!r}"
        )
    try:
        words = (name, *map(str, entry.get("args") or ()))
        added = {str(pair["name"]): str(pair["value"]) for pair in entry.get("env") or ()}
    except (KeyError, TypeError) as error:
        raise InputError(
            f"exec {name!r}: args must be words, env must be pairs of name and value"
        ) from error
    information = {"KUBERNETES_EXEC_INFO": json.dumps(_information(entry, cluster, version))}
    environment = {**os.environ, **information, **added}
    return CredentialProgram(Command(words, environment, str(entry.get("installHint") or "")))


def _issued(command: Command) -> Issued:
    printed = command.run()
    try:
        status = json.loads(printed)["status"]
        certificate, key = (
            str(status.get(name) or "").encode()
            for name in ("clientCertificateData", "clientKeyData")
        )
        expires = status.get("expirationTimestamp")
        expires_at = datetime.fromisoformat(expires).timestamp() if expires else float("inf")
        issued = Issued(str(status.get("token") or ""), certificate + key, expires_at)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MachineError(f"{command.name} printed no ExecCredential with a status") from error
    if not issued.token and not issued.certificate:
        raise MachineError(f"{command.name} printed neither a token nor a certificate")
    return issued


def _information(entry: Table, cluster: Table, version: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"interactive": sys.stdin is not None and sys.stdin.isatty()}
    if entry.get("provideClusterInfo"):
        keys = ("server", "tls-server-name", "insecure-skip-tls-verify")
        spec["cluster"] = {key: cluster[key] for key in keys if key in cluster}
        spec["cluster"]["certificate-authority-data"] = _authority(cluster)
    return {"apiVersion": version, "kind": "ExecCredential", "spec": spec}


def _authority(cluster: Table) -> str:
    if data := cluster.get("certificate-authority-data"):
        return str(data)
    path = cluster.get("certificate-authority")
    if not path:
        return ""
    try:
        return base64.b64encode(Path(small_file(str(path))).read_bytes()).decode()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
