"""The result of a restoration: paths that were removed, and paths that were left."""

from attrs import frozen


@frozen
class Leftover:
    """A path that a restoration left on the host, and why.

    ``is_failure`` if it could not be removed, ``is_kept`` if it stays on purpose.
    """

    path: str
    why: str
    is_failure: bool = False
    is_kept: bool = False


@frozen
class Restored:
    """The paths that were removed from the host, and those that were left."""

    removed: tuple[str, ...] = ()
    left: tuple[Leftover, ...] = ()
