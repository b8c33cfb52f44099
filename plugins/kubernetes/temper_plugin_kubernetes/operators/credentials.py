"""Users who come from a program: it is started, and prints a token or a certificate.

Protocol: Kubernetes' "client-go credential plugins" (client.authentication.k8s.io, v1 and v1beta1).
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from temper_core import InputError, MachineError

EXEC_S = 60.0
LARGEST_BYTES = 1024 * 1024
VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

Table = Mapping[str, Any]


@frozen
class _Program:
    """What to start, and what to tell it."""

    name: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    hint: str


def ask_program(asked: object, cluster: Table) -> dict[str, str]:
    """Return what the program says of the user, by the keys of a kubeconfig.

    Raises InputError where the entry is odd, MachineError where the program says nothing.
    """
    program = _program(asked, cluster)
    said = _said(program)
    try:
        status = json.loads(said)["status"]
        found = {
            "token": str(status.get("token") or ""),
            "client-certificate-data": _encoded(status.get("clientCertificateData")),
            "client-key-data": _encoded(status.get("clientKeyData")),
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MachineError(
            f"exec {program.name!r} printed no ExecCredential with a status"
        ) from error
    if not any(found.values()):
        raise MachineError(f"exec {program.name!r} told neither a token nor a certificate")
    return {key: value for key, value in found.items() if value}


def _program(asked: object, cluster: Table) -> _Program:
    if not isinstance(asked, dict):
        raise InputError("exec: it takes the keys 'apiVersion' and 'command'")
    version, command = str(asked.get("apiVersion", "")), str(asked.get("command") or "")
    if version not in VERSIONS:
        raise InputError(
            f"exec {command!r}: apiVersion {version!r} is not known, but {' and '.join(VERSIONS)}"
        )
    try:
        arguments = (command, *map(str, asked.get("args") or ()))
        added = {str(each["name"]): str(each["value"]) for each in asked.get("env") or ()}
    except (KeyError, TypeError) as error:
        raise InputError(
            f"exec {command!r}: args are words, env pairs of name and value"
        ) from error
    told = {"KUBERNETES_EXEC_INFO": json.dumps(_information(asked, cluster, version))}
    environment = {**os.environ, **told, **added}
    return _Program(command, arguments, environment, str(asked.get("installHint") or ""))


def _said(program: _Program) -> bytes:
    """Start the program and return what it prints.

    That goes to a file: a pipe would be waited for as long as any child of the program has it.
    """
    with tempfile.TemporaryFile() as output:
        try:
            code = subprocess.run(  # noqa: S603 - the kubeconfig's own program, as kubectl runs it
                program.arguments,
                env=program.environment,
                stdout=output,
                check=False,
                timeout=EXEC_S,
            ).returncode
        except subprocess.TimeoutExpired as error:
            raise MachineError(f"exec {program.name!r} did not end within {EXEC_S:g} s") from error
        except (OSError, ValueError) as error:
            told = getattr(error, "strerror", None) or error
            hint = f"; {' '.join(program.hint.split())}" if program.hint else ""
            raise MachineError(f"exec {program.name!r} cannot be run: {told}{hint}") from error
        if code != 0:
            raise MachineError(f"exec {program.name!r} ended with code {code}")
        output.seek(0)
        return output.read(LARGEST_BYTES)


def _information(asked: Table, cluster: Table, version: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"interactive": sys.stdin is not None and sys.stdin.isatty()}
    if asked.get("provideClusterInfo"):
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
        return base64.b64encode(Path(path).read_bytes()).decode()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _encoded(pem: str | None) -> str:
    return base64.b64encode(pem.encode()).decode() if pem else ""
