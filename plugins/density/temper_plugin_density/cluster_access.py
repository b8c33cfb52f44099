"""Which API server is asked, and what a failure was about."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from temper_core import InputError, MachineError
from temper_kube import kubeconfig
from temper_kube.access import Access
from temper_kube.failures import ConflictError, NotFoundError


def find_access(path: Path | None) -> Access:
    """Return the way to the API server, as kubectl finds it.

    Raises InputError where the file cannot be used, MachineError where no server is known.
    """
    return kubeconfig.find_access(str(path or ""))


@contextmanager
def about(subject: str) -> Iterator[None]:
    """Name *subject* in what goes wrong: InputError if it is not there, otherwise MachineError."""
    try:
        yield
    except NotFoundError as error:
        raise InputError(f"{subject}: {error.message}") from error
    except ConflictError as error:
        raise ConflictError(f"{subject}: {error.message}") from error
    except MachineError as error:
        raise MachineError(f"{subject}: {error}") from error
