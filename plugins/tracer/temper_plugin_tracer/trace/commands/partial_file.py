"""Files that appear when they are whole."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from temper_core import InputError


@contextmanager
def written_whole(out: Path) -> Iterator[IO[bytes]]:
    """Open a file beside *out*, which takes its place at the end of the block.

    Only its user may read it, since what all processes do at each moment is not public. It is
    removed if the block raises. Raises InputError if *out* cannot be written.
    """
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        with open(partial, "xb", opener=_private) as file:
            yield file
        partial.replace(out)
    except OSError as error:
        raise InputError(f"{out}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
