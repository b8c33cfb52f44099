"""The watches of a server, which run as long as its application."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeVar

from starlette.applications import Starlette

Access_contra = TypeVar("Access_contra", contravariant=True)
Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]


class Watches(Protocol[Access_contra]):
    """Watches of a cluster."""

    def start(self, access: Access_contra) -> None:
        """Begin to watch the cluster of *access*. Returns at once."""
        ...

    async def close(self) -> None:
        """End all watches."""
        ...


def watching(watches: Watches[Access_contra], access: Access_contra | None) -> Lifespan:
    """Return the lifespan of an application that *watches* run in, none without *access*."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if access is None:
            yield
            return
        watches.start(access)
        try:
            yield
        finally:
            await watches.close()

    return lifespan
