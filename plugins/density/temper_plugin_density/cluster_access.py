"""Which API server is asked, and in whose name; what goes wrong there is one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import yaml
from lightkube import ApiError, Client, KubeConfig
from lightkube.config.kubeconfig import SingleConfig
from lightkube.core.async_client import AsyncClient
from lightkube.core.exceptions import ConfigError, LoadResourceError

from temper_core import InputError, MachineError

NOT_FOUND, CONFLICT = 404, 409
MISFITS = (
    yaml.YAMLError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""What the client raises for a file that is not what it expects: whatever came of reading on."""
ANSWERS_AND_ABSENCES = (httpx2.HTTPError, ConfigError, LoadResourceError, OSError)


class NotFoundError(InputError):
    """There is no object of that name."""


class ConflictError(MachineError):
    """Somebody else was first; what they did is to be read."""


KINDS = {NOT_FOUND: NotFoundError, CONFLICT: ConflictError}


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn whatever the client raises into MachineError, or one of its kinds, about *what*."""
    try:
        yield
    except ApiError as error:
        kind = KINDS.get(error.status.code or 0, MachineError)
        raise kind(f"{what}: {error.status.message}") from error
    except ANSWERS_AND_ABSENCES as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise MachineError(f"{what}: {reason}") from error


def find_cluster(kubeconfig: Path | None) -> SingleConfig:
    """Return the way to the API server.

    Without a kubeconfig it is the pod's own service account, $KUBECONFIG, or the user's file.
    Raises InputError where the file cannot be used, MachineError where there is nothing to use.
    """
    if kubeconfig and not kubeconfig.is_file():
        raise InputError(f"{kubeconfig}: there is no such file")
    with told("no API server is known"), _read(kubeconfig):
        cluster = (KubeConfig.from_file(kubeconfig) if kubeconfig else KubeConfig.from_env()).get()
    if cluster is None:
        raise MachineError("no API server is known: the kubeconfig has no current context")
    return cluster


def open_client(cluster: SingleConfig) -> Client:
    """Return a client for a few requests."""
    with told("the API server"), _read(None):
        return Client(cluster)


def open_watching_client(cluster: SingleConfig) -> AsyncClient:
    """Return a client for watches; to be called in the event loop that uses it."""
    with told("the API server"), _read(None):
        return AsyncClient(cluster)


@contextmanager
def _read(kubeconfig: Path | None) -> Iterator[None]:
    try:
        yield
    except MISFITS as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"{kubeconfig or 'kubeconfig'}: is no kubeconfig: {type(error).__name__}: {said}"
        ) from error
