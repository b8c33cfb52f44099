"""Kubeconfigs as kubectl reads them: several files, contexts, and users who come from a program."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from temper_core import InputError, MachineError
from temper_kube.access import Access, access_of, in_cluster

DEFAULT = "~/.kube/config"
FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
SECTIONS = (("clusters", "cluster"), ("contexts", "context"), ("users", "user"))

Table = Mapping[str, Any]


@frozen
class Merged:
    """What all files together hold: the first to name something wins, as with kubectl."""

    clusters: Table
    contexts: Table
    users: Table
    current: str
    source: str


def find_access(
    kubeconfig: str = "", context: str = "", environment: Table | None = None
) -> Access:
    """Return the way to the API server: the file given, KUBECONFIG, the pod's account, the usual.

    Raises InputError where what was given is wrong, MachineError where no server is known.
    """
    environment = os.environ if environment is None else environment
    if kubeconfig:
        return _selected(_merged([kubeconfig]), context)
    paths = [each for each in str(environment.get("KUBECONFIG", "")).split(os.pathsep) if each]
    if paths:
        # Of several files those that are missing are left out.
        there = [each for each in paths if len(paths) == 1 or Path(each).exists()]
        return _selected(_merged(there, ", ".join(paths)), context)
    found = None if context else in_cluster(environment)
    if found is not None:
        return found
    usual = _home(DEFAULT)
    if not usual.exists():
        raise MachineError(
            f"no API server is known: name a kubeconfig with --kubeconfig or KUBECONFIG; {usual} "
            "is not there, and this is no pod of a cluster"
        )
    return _selected(_merged([str(usual)]), context)


def read_kubeconfig(path: str) -> Access:
    """Return the way that the current context of one file names. Raise InputError if it is wrong.

    It runs no program: a user with ``exec`` is refused.
    """
    return _selected(_merged([path]), "", may_run=False)


def _merged(paths: Sequence[str], source: str = "") -> Merged:
    sections: dict[str, dict[str, Any]] = {name: {} for name, _ in SECTIONS}
    current = ""
    for path in paths:
        table = _read(path)
        current = current or str(table.get("current-context") or "")
        for name, inner in SECTIONS:
            for entry_name, entry in _entries(table, name, inner, path).items():
                sections[name].setdefault(entry_name, entry)
    return Merged(
        sections["clusters"],
        sections["contexts"],
        sections["users"],
        current,
        source or ", ".join(paths),
    )


def _home(path: str) -> Path:
    """Return *path* with its tilde resolved, where this user has a home."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # a user id of a container, of which nothing else is known
        return Path(path)


def _read(path: str) -> Table:
    import yaml  # noqa: PLC0415 - not needed inside of a cluster

    try:
        table = yaml.safe_load(_home(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise InputError(f"{path}: cannot be read as a kubeconfig: {reason}") from error
    if not isinstance(table, dict):
        raise InputError(f"{path}: is no kubeconfig: it holds no keys")
    return table


def _entries(table: Table, section: str, inner: str, path: str) -> dict[str, Any]:
    try:
        found = {str(each["name"]): dict(each[inner] or {}) for each in table.get(section) or ()}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: {section}: an entry needs 'name' and '{inner}'") from error
    beside = _home(path).parent
    for entry in found.values():
        for key in FILES:
            if entry.get(key):
                entry[key] = str(beside / str(entry[key]))
        program = entry.get("exec")
        if isinstance(program, dict) and "/" in str(program.get("command", "")):
            entry["exec"] = {**program, "command": str(beside / str(program["command"]))}
    return found


def _selected(merged: Merged, context: str, *, may_run: bool = True) -> Access:
    name = context or merged.current
    if not name:
        raise InputError(
            f"{merged.source}: no current-context; `kubectl config use-context NAME` sets one"
        )
    if name not in merged.contexts:
        known = ", ".join(sorted(merged.contexts)) or "none"
        raise InputError(f"{merged.source}: there is no context {name!r}; there are: {known}")
    where = f"{merged.source}: context {name!r}"
    chosen = merged.contexts[name]
    cluster = merged.clusters.get(str(chosen.get("cluster")))
    user = merged.users.get(str(chosen.get("user")), {})
    if cluster is None or not cluster.get("server"):
        raise InputError(f"{where}: its cluster has no server")
    if cluster.get("proxy-url"):
        raise InputError(f"{where}: proxy-url is not supported")
    if user.get("exec") and not may_run:
        raise InputError(f"{where}: its user comes from another program, which is not supported")
    try:
        return access_of(cluster, user, str(chosen.get("namespace") or ""))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{where} cannot be used: {error}") from error
