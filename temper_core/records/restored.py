"""What a restoration removed from a host, and what it left there."""

from attrs import frozen


@frozen
class Leftover:
    """What a restoration left on the host, and why.

    ``is_failure`` where it should have gone and could not, ``is_kept`` where it stays on purpose.
    """

    path: str
    why: str
    is_failure: bool = False
    is_kept: bool = False


@frozen
class Restored:
    """What was removed from the host, by path, and what was left there."""

    removed: tuple[str, ...] = ()
    left: tuple[Leftover, ...] = ()
