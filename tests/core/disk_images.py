"""Small file systems of their own, for what disks do."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

IMAGE_BYTES = 16 * 1024 * 1024


@contextmanager
def mounted(image: Path, point: Path) -> Iterator[Path]:
    """Mount the file *image* on *point*. Skip where that is not possible."""
    point.mkdir()
    ran = subprocess.run(
        ["mount", "-o", "loop", image, point], check=False, capture_output=True, text=True
    )
    if ran.returncode:
        pytest.skip(f"needs root and loop devices: {ran.stderr.strip()}")
    try:
        yield point
    finally:
        subprocess.run(["umount", point], check=True)


def ext4_image(image: Path) -> Path:
    """Make an ext4 file system in *image*. Skip where that is not possible."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("needs mkfs.ext4 (e2fsprogs)")
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    return image
