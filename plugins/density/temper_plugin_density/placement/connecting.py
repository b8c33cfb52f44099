"""Which API server is asked, and in whose name; what goes wrong there is one line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from lightkube import ApiError, Client, KubeConfig
from lightkube.config.kubeconfig import SingleConfig
from lightkube.core.async_client import AsyncClient
from lightkube.core.exceptions import ConfigError

from temper_core import InputError, MachineError

NOT_FOUND = 404


class NotFoundError(InputError):
    """There is no object of that name."""


def find_cluster(kubeconfig: Path | None) -> SingleConfig:
    """Return the way to the API server; raise MachineError where none is known.

    Without a kubeconfig it is the pod's own service account, $KUBECONFIG, or the user's file.
    """
    with told("no API server is known"):
        found = KubeConfig.from_file(kubeconfig) if kubeconfig else KubeConfig.from_env()
        cluster = found.get()
    if cluster is None:
        raise MachineError("no API server is known: the kubeconfig has no current context")
    return cluster


def open_client(cluster: SingleConfig) -> Client:
    """Return a client for a few requests."""
    with told("the API server"):
        return Client(cluster)


def open_watching_client(cluster: SingleConfig) -> AsyncClient:
    """Return a client for watches; to be called in the event loop that uses it."""
    with told("the API server"):
        return AsyncClient(cluster)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn whatever the client raises into MachineError, or NotFoundError, about *what*."""
    try:
        yield
    except ApiError as error:
        kind = NotFoundError if error.status.code == NOT_FOUND else MachineError
        raise kind(f"{what}: {error.status.message}") from error
    except (httpx2.HTTPError, ConfigError, OSError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise MachineError(f"{what}: {reason}") from error
