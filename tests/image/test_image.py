"""The image itself, built here without a registry."""

import marshal
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.image.archives import Archive
from tests.image.recipe import CHECKOUT, SCRIPTS, default_of, locked, workspace

MEGABYTE = 1_000_000
UNPACKED_MOST = 190  # without the engine, which is 31 more
COMPRESSED_MOST = 80
SMOKE_SECONDS = 600


def entries(root):
    """Every path of the image with its status, links not followed."""
    for directory, below, files in os.walk(root):
        for name in [*below, *files]:
            path = Path(directory, name)
            yield path, path.lstat()


def regular(root):
    return [(path, status) for path, status in entries(root) if stat.S_ISREG(status.st_mode)]


def told_packages(image):
    lines = (image.root / "usr/share/doc/temper/python-packages.txt").read_text().splitlines()
    rows = [line.split("\t") for line in lines]
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version, _ in rows}


def test_two_builds_from_nothing_are_the_same_image(image):
    first, second = Archive.open(image.archive), Archive.open(image.again)

    assert first.layers == second.layers
    assert first.manifest_digest == second.manifest_digest
    assert image.archive.read_bytes() == image.again.read_bytes()


def test_the_image_passes_its_smoke_test(image):
    done = subprocess.run(
        [SCRIPTS / "smoke", image.archive],
        capture_output=True,
        text=True,
        check=False,
        timeout=SMOKE_SECONDS,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_has_the_reference_that_the_chart_asks_for(image):
    version = workspace()["temper-agent"]["version"]

    assert image.reference == f"registry.temper.codes/temper:{version}"
    assert Archive.open(image.archive).name == image.reference


def test_the_image_is_small(image):
    sizes = {path: status.st_size for path, status in regular(image.root)}
    engine = sizes[image.root / "usr/local/bin/scx_layered"]

    assert (sum(sizes.values()) - engine) / MEGABYTE < UNPACKED_MOST
    assert image.archive.stat().st_size / MEGABYTE < COMPRESSED_MOST


def test_no_file_gives_rights_away(image):
    raised = [path for path, status in entries(image.root) if status.st_mode & 0o6000]
    open_to_all = [
        path
        for path, status in entries(image.root)
        if status.st_mode & stat.S_IWOTH and not stat.S_ISLNK(status.st_mode)
    ]

    assert not raised
    sticky = [path for path in open_to_all if path.is_dir() and path.stat().st_mode & stat.S_ISVTX]
    assert open_to_all == sticky


def test_all_of_it_is_roots_and_readable_by_anyone(image):
    ours = [image.root / "opt", image.root / "usr/local"]
    found = [(path, status) for each in ours for path, status in entries(each)]

    assert {status.st_uid for _, status in found} == {0}
    unreadable = [path for path, status in found if not status.st_mode & stat.S_IROTH]
    assert not unreadable


def words_of_this_machine():
    """What a file of the image says only if it was told where it was built."""
    home = os.environ.get("HOME", "/root").rstrip("/")
    words = {str(CHECKOUT), f"{home}/.cargo", f"{home}/.cache/temper", f"{home}/.pyenv"}
    words.add(os.environ.get("TEMPER_CACHE", ""))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        words.add(urlsplit(os.environ.get(name, "")).hostname or "")
    words.add(os.environ.get("PIP_FIND_LINKS", ""))
    return {word.encode() for word in words if len(word) > len("/root")}


def test_no_file_says_where_it_was_built(image):
    pattern = re.compile(b"|".join(re.escape(word) for word in sorted(words_of_this_machine())))

    told = [path for path, _ in regular(image.root) if pattern.search(path.read_bytes())]

    assert not told
    assert not [*image.root.rglob("direct_url.json")]
    assert not (image.root / "etc/pip.conf").exists()


def test_packages_come_from_debians_own_servers_only(image):
    sources = (image.root / "etc/apt/sources.list").read_text()

    assert {*re.findall(r"https?://([^/]+)", sources)} == {"deb.debian.org"}
    assert not [*(image.root / "etc/apt/sources.list.d").iterdir()]


@pytest.mark.parametrize("directory", ["opt/temper/lib", "usr/lib/python3.11"])
def test_every_module_is_compiled_and_stays_so_whatever_its_time(image, directory):
    sources = [path for path in (image.root / directory).rglob("*.py") if path.name.isascii()]
    compiled = {
        path: path.parent / "__pycache__" / f"{path.stem}.cpython-311.pyc" for path in sources
    }

    assert not [source for source, made in compiled.items() if not made.exists()]
    assert {made.read_bytes()[4:8] for made in compiled.values()} == {b"\1\0\0\0"}


def test_tracebacks_show_where_the_files_are_in_the_image(image):
    if sys.version_info[:2] != (3, 11):
        pytest.skip("reads bytecode of Python 3.11")
    site = image.root / "opt/temper/lib/python3.11/site-packages"

    compiled = site / "temper_core/__pycache__/errors.cpython-311.pyc"
    name = marshal.loads(compiled.read_bytes()[16:]).co_filename

    assert image.root / name[1:] == site / "temper_core/errors.py"


def test_the_packages_are_the_locked_ones_and_nothing_that_builds_or_tests(image):
    packages = told_packages(image)

    assert packages.keys() >= workspace().keys()
    assert {name: locked()[name] for name in packages} == packages
    assert not packages.keys() & {"pip", "setuptools", "uv", "hatchling", "pytest", "mypy", "ruff"}


def test_the_labels_say_what_is_in_it(image):
    assert (
        image.labels["org.opencontainers.image.version"] == workspace()["temper-agent"]["version"]
    )
    assert image.labels["org.opencontainers.image.licenses"] == "Apache-2.0 AND GPL-2.0-only"
    assert image.labels["codes.temper.engine"] == f"scx_layered {default_of('ENGINE_VERSION')}"


def test_the_licences_and_the_way_to_the_engines_source_go_with_it(image):
    documents = image.root / "usr/share/doc"

    assert (documents / "temper/LICENSE").read_bytes() == (CHECKOUT / "LICENSE").read_bytes()
    engine = documents / "scx_layered"
    assert (
        "GNU GENERAL PUBLIC LICENSE\n                       Version 2"
        in (engine / "LICENSE").read_text()
    )
    assert "crates.io/crates/scx_layered" in (engine / "SOURCE").read_text()
    entry = f'name = "scx_layered"\nversion = "{default_of("ENGINE_VERSION")}"'
    assert entry in (engine / "Cargo.lock").read_text()
    assert "python3.11\t" in (documents / "temper/debian-packages.txt").read_text()
