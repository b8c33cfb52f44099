"""Kubeconfigs as kubectl reads them: several files, contexts, and users who come from a program.

The agent itself takes one file and the current context (``access.py``); this is for people.
Protocol: Kubernetes' "client-go credential plugins" (client.authentication.k8s.io, v1 and v1beta1).
"""

import base64
import binascii
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from temper_core import InputError, MachineError
from temper_plugin_kubernetes.access import Access, access_of, in_cluster

DEFAULT = "~/.kube/config"
EXEC_S = 60.0
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
SECTIONS = (("clusters", "cluster"), ("contexts", "context"), ("users", "user"))

Table = Mapping[str, Any]


@frozen
class Merged:
    """What all files together say: the first to name something wins, as with kubectl."""

    clusters: Table
    contexts: Table
    users: Table
    current: str
    source: str


def reach(kubeconfig: str = "", context: str = "", environment: Table | None = None) -> Access:
    """Return the way to the API server: the file given, KUBECONFIG, the pod's account, the usual.

    Raises InputError where what was given is wrong, MachineError where no server is known.
    """
    environment = os.environ if environment is None else environment
    given = kubeconfig or str(environment.get("KUBECONFIG", ""))
    if given:
        return _selected(_merged(given, is_asked_for=bool(kubeconfig)), context)
    found = None if context else in_cluster(environment)
    if found is not None:
        return found
    usual = Path(DEFAULT).expanduser()
    if not usual.exists():
        raise MachineError(
            f"no API server is known: name a kubeconfig with --kubeconfig or KUBECONFIG; {usual} "
            "is not there, and this is no pod of a cluster"
        )
    return _selected(_merged(str(usual), is_asked_for=True), context)


def _merged(given: str, *, is_asked_for: bool) -> Merged:
    """Read every file; of several in KUBECONFIG those that are missing are left out."""
    paths = [given] if is_asked_for else [each for each in given.split(os.pathsep) if each]
    sections: dict[str, dict[str, Any]] = {name: {} for name, _ in SECTIONS}
    current = ""
    for path in paths:
        if not is_asked_for and len(paths) > 1 and not Path(path).exists():
            continue
        table = _read(path)
        current = current or str(table.get("current-context") or "")
        for name, inner in SECTIONS:
            for entry_name, entry in _entries(table, name, inner, path).items():
                sections[name].setdefault(entry_name, entry)
    return Merged(
        sections["clusters"], sections["contexts"], sections["users"], current, ", ".join(paths)
    )


def _read(path: str) -> Table:
    import yaml  # noqa: PLC0415 - not needed inside of a cluster

    try:
        table = yaml.safe_load(Path(path).expanduser().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        told = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise InputError(f"{path}: cannot be read as a kubeconfig: {told}") from error
    if not isinstance(table, dict):
        raise InputError(f"{path}: is no kubeconfig: it holds no keys")
    return table


def _entries(table: Table, section: str, inner: str, path: str) -> dict[str, Any]:
    try:
        found = {str(each["name"]): dict(each[inner] or {}) for each in table.get(section) or ()}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: {section}: an entry needs 'name' and '{inner}'") from error
    beside = Path(path).expanduser().parent
    for entry in found.values():
        for key in FILES:
            if entry.get(key):
                entry[key] = str(beside / str(entry[key]))
    return found


def _selected(merged: Merged, context: str) -> Access:
    name = context or merged.current
    if not name:
        raise InputError(f"{merged.source}: no current-context; name one with --context")
    if name not in merged.contexts:
        known = ", ".join(sorted(merged.contexts)) or "none"
        raise InputError(f"{merged.source}: there is no context {name!r}; there are: {known}")
    chosen = merged.contexts[name]
    cluster = merged.clusters.get(str(chosen.get("cluster")))
    user = merged.users.get(str(chosen.get("user")), {})
    if cluster is None or not cluster.get("server"):
        raise InputError(f"{merged.source}: context {name!r}: its cluster has no server")
    if cluster.get("proxy-url"):
        raise InputError(f"{merged.source}: context {name!r}: proxy-url is not supported")
    if user.get("exec"):
        user = {**user, **_from_program(user["exec"], cluster)}
    try:
        return access_of(cluster, {k: v for k, v in user.items() if k != "exec"}, Path())
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise InputError(f"{merged.source}: context {name!r} cannot be used: {error}") from error


def _from_program(asked: Table, cluster: Table) -> dict[str, str]:
    """Return what the program says of the user; raise MachineError where it says nothing."""
    version, command = str(asked.get("apiVersion", "")), str(asked.get("command", ""))
    if version not in EXEC_VERSIONS:
        raise InputError(f"exec {command!r}: apiVersion {version!r} is not known: {EXEC_VERSIONS}")
    arguments = [command, *map(str, asked.get("args") or ())]
    added = {str(each["name"]): str(each["value"]) for each in asked.get("env") or ()}
    told = {"KUBERNETES_EXEC_INFO": json.dumps(_information(asked, cluster, version))}
    try:
        done = subprocess.run(  # noqa: S603 - the kubeconfig's own program, as kubectl runs it
            arguments,
            env={**os.environ, **told, **added},
            stdout=subprocess.PIPE,
            check=False,
            timeout=EXEC_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        hint = f"; {asked['installHint']}" if asked.get("installHint") else ""
        raise MachineError(f"exec {command!r} cannot be run: {error}{hint}") from error
    if done.returncode != 0:
        raise MachineError(f"exec {command!r} ended with code {done.returncode}")
    return _credential(done.stdout, command)


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
    return base64.b64encode(Path(path).read_bytes()).decode() if path else ""


def _credential(said: bytes, command: str) -> dict[str, str]:
    try:
        status = json.loads(said)["status"]
        found = {
            "token": str(status.get("token") or ""),
            "client-certificate-data": _encoded(status.get("clientCertificateData")),
            "client-key-data": _encoded(status.get("clientKeyData")),
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MachineError(f"exec {command!r} printed no ExecCredential with a status") from error
    return {key: value for key, value in found.items() if value}


def _encoded(pem: str | None) -> str:
    return base64.b64encode(pem.encode()).decode() if pem else ""
