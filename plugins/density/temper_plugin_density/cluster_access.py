"""The API server of this plugin's commands, and errors that name the object concerned."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from temper_core import InputError, MachineError
from temper_kube import kubeconfig
from temper_kube.access import Access
from temper_kube.failures import ConflictError, NotFoundError


def find_access(path: Path | None) -> Access:
    """Return the API server's address and credentials, looked up as kubectl does.

    Raises InputError if the file cannot be used, MachineError if no server is known.
    """
    return kubeconfig.find_access(str(path or ""))


@contextmanager
def about(subject: str) -> Iterator[None]:
    """Prefix errors with *subject*: InputError if it does not exist, otherwise MachineError."""
    try:
        yield
    except NotFoundError as error:
        raise InputError(f"{subject}: {error.message}") from error
    except ConflictError as error:
        raise ConflictError(f"{subject}: {error.message}") from error
    except MachineError as error:
        raise MachineError(f"{subject}: {error}") from error
