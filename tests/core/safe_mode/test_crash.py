"""Requests for safe mode on a machine that crashes right after they were answered."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from temper_core.safe_mode.host_file import SafeModeFile
from temper_core.safe_mode.model import Request
from temper_core.safe_mode.state_file import StateFile
from tests.core.disk_images import ext4_image, mounted


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Return the image of an ext4 file system, which writes names some seconds after files."""
    return ext4_image(tmp_path / "image")


def request_of_agent(directory: Path) -> None:
    StateFile(directory / "file").write({"oncall": Request("odd", 1.0)})


def request_of_host(directory: Path) -> None:
    SafeModeFile(directory / "file").add("oncall", "odd")


def withdraw_of_agent(directory: Path) -> None:
    request_of_agent(directory)
    StateFile(directory / "file").write({})


def withdraw_of_host(directory: Path) -> None:
    request_of_host(directory)
    SafeModeFile(directory / "file").remove("oncall")


@pytest.mark.parametrize(
    ("act", "is_requested"),
    [
        (request_of_agent, True),
        (request_of_host, True),
        (withdraw_of_agent, False),
        (withdraw_of_host, False),
    ],
)
def test_what_was_answered_outlives_a_crash(
    disk: Path, tmp_path: Path, act: Callable[[Path], None], is_requested: bool
) -> None:
    after = tmp_path / "after"
    with mounted(disk, tmp_path / "before") as point:
        act(point)
        # What the disk has at this moment. Its journal is replayed when it is mounted.
        shutil.copyfile(disk, after)

    with mounted(after, tmp_path / "then") as point:
        assert (point / "file").exists() is is_requested
        assert [path.name for path in point.glob("file?*")] == []
