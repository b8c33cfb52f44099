"""Kubeconfigs as kubectl reads them: several files, contexts, and credential programs."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from temper_core import DocumentError, InputError, MachineError, parse_yaml, read_text
from temper_kube.access import Access, access_of, in_cluster
from temper_kube.renewal import Renewal, versions_of

DEFAULT = "~/.kube/config"
LARGEST_BYTES = 8 * 1024 * 1024
"""A context with its certificates takes 6 KiB."""
FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
SECTIONS = (("clusters", "cluster"), ("contexts", "context"), ("users", "user"))

Table = Mapping[str, Any]


@frozen
class Merged:
    """The merged entries of all files. The first file with a name wins, as with kubectl."""

    clusters: Table
    contexts: Table
    users: Table
    current: str
    source: str


def find_access(
    kubeconfig: str = "", context: str = "", environment: Table | None = None
) -> Access:
    """Return the API server's address and credentials.

    They come from *kubeconfig*, $KUBECONFIG, the pod's own account, or ~/.kube/config, in this
    order. Raises InputError for a bad file or context, MachineError if no server is known.
    """
    environment = os.environ if environment is None else environment
    if kubeconfig:
        return _renewed([kubeconfig], context)
    paths = [path for path in str(environment.get("KUBECONFIG", "")).split(os.pathsep) if path]
    if paths:
        # Missing files are ignored if there are several.
        there = [path for path in paths if len(paths) == 1 or Path(path).exists()]
        return _renewed(there, context, ", ".join(paths))
    pod_access = None if context else in_cluster(environment)
    if pod_access is not None:
        return pod_access
    usual = _home(DEFAULT)
    if not usual.exists():
        raise MachineError(
            f"no API server is known: {usual} does not exist, and this is not a pod of a cluster; "
            "name a kubeconfig with --kubeconfig or KUBECONFIG"
        )
    return _renewed([str(usual)], context)


def read_kubeconfig(path: str) -> Access:
    """Return the access of one file's current context. Raise InputError if it is malformed.

    A user with ``exec`` is refused, because no program may be run here.
    """
    return _renewed([path], "", may_run=False)


def _renewed(
    paths: Sequence[str], context: str, source: str = "", *, may_run: bool = True
) -> Access:
    """Return the access of *context*, which follows later changes of its files.

    Without a name it is the current context of now: a later change of that would lead to another
    cluster.
    """
    files = [_home(path) for path in paths]
    versions = versions_of(files)
    merged = _merged(paths, source)
    access = _selected(merged, context, may_run=may_run)
    chosen = context or merged.current

    def again() -> Access:
        return _selected(_merged(paths, source), chosen, may_run=may_run)

    is_read_once = not versions  # the pipe of a shell
    return (
        access
        if is_read_once
        else evolve(access, renewed=Renewal(access, files, versions, again).now)
    )


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
    """Return *path* with its tilde expanded, if this user has a home."""
    try:
        return Path(path).expanduser()
    except RuntimeError:  # a user id without an entry in passwd, as in a container
        return Path(path)


def _read(path: str) -> Table:
    # A shell passes `<(command)` as such a path. Other pipes may block without end.
    is_of_shell = path.startswith(("/dev/fd/", "/dev/stdin"))
    try:
        text = read_text(_home(path), pipes=is_of_shell, largest_bytes=LARGEST_BYTES)
        documents = parse_yaml(text, source=path, aliases=False)
    except DocumentError as error:
        why = error.problems[0]
        raise InputError(f"{path}: cannot be read as a kubeconfig: {why}") from error
    table = documents[0] if len(documents) == 1 else None
    if not isinstance(table, dict):
        raise InputError(f"{path}: is not a kubeconfig: it has no keys")
    return table


def _entries(table: Table, section: str, inner: str, path: str) -> dict[str, Any]:
    try:
        entries = {str(item["name"]): dict(item[inner] or {}) for item in table.get(section) or ()}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: {section}: an entry needs 'name' and '{inner}'") from error
    beside = _home(path).parent
    for entry in entries.values():
        for key in FILES:
            if entry.get(key):
                entry[key] = str(beside / str(entry[key]))
        program = entry.get("exec")
        if isinstance(program, dict) and "/" in str(program.get("command", "")):
            entry["exec"] = {**program, "command": str(beside / str(program["command"]))}
    return entries


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
        raise InputError(
            f"{where}: its user needs a credential program, which is not supported here"
        )
    try:
        return access_of(cluster, user, str(chosen.get("namespace") or ""))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{where} cannot be used: {error}") from error
