# noqa: INP001 - a script that build runs by its path, with any python3
"""rename_paths.py FILE OLD=NEW ...: change directory names inside a binary, without moving bytes.

NEW is padded with slashes to the length of OLD, which names the same directory. Exit 2 if it is
longer than OLD.
"""

import sys
from pathlib import Path


def renamed(content: bytes, old: bytes, new: bytes) -> bytes:
    """Return *content* with every *old* replaced. Raises ValueError if *new* is longer."""
    if len(new) > len(old):
        raise ValueError(f"{new.decode()} is longer than {old.decode()}")
    return content.replace(old, new.ljust(len(old), b"/"))


def main() -> None:
    """Rename in the file that the command line names."""
    file = Path(sys.argv[1])
    content = file.read_bytes()
    try:
        for pair in sys.argv[2:]:
            old, new = pair.encode().split(b"=")
            content = renamed(content, old, new)
    except ValueError as error:
        sys.stderr.write(f"rename_paths.py: {error}\n")
        sys.exit(2)
    file.write_bytes(content)


if __name__ == "__main__":
    main()
