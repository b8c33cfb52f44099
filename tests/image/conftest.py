"""Builds the image twice, from nothing, for all tests of it; without ``--image`` those skip."""

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from attrs import frozen

from tests.heavy import leave_to
from tests.image.archives import Archive, unpacked
from tests.image.recipe import copy_of_checkout

HERE = Path(__file__).parent
BUILD_SECONDS = 2400


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--image",
        action="store_true",
        help="build the image; whatever keeps it from being built is then a failure",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # The option is known only where tests/image itself is named on the command line.
    if config.getoption("--image", default=False):
        return
    for item in items:
        is_here = HERE in item.path.parents
        if is_here and "image" in getattr(item, "fixturenames", ()):
            leave_to("test-image", item, "builds an image")


@frozen
class Image:
    """The image of this checkout: its archive, its files, and what it says of itself."""

    archive: Path
    again: Path
    reference: str
    root: Path
    labels: Mapping[str, str]


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """Build one state of this checkout twice with nothing kept, and unpack the first."""
    directory = tmp_path_factory.mktemp("image")
    checkout = copy_of_checkout(directory / "checkout")
    first, second = directory / "first.tar", directory / "second.tar"
    reference = built(checkout, first)
    built(checkout, second)
    archive = Archive.open(first)
    with unpacked(archive, directory / "unpacked") as root:
        yield Image(first, second, reference, root, archive.configuration["Labels"])


def built(checkout: Path, out: Path) -> str:
    done = subprocess.run(
        [checkout / "deploy/image/build", "--afresh", out],
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.strip()
