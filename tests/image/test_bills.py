"""The engine's crates with their licences, and the bill of materials of an image."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest

from deploy.engine_crates import LIST, pinned_version, read, source
from deploy.image_bill import DEBIAN, LOCK, PYTHON, bill
from tests.image.recipe import CHECKOUT

CRATES = read()["crates"]
SOURCE = source(pinned_version())
needs_source = pytest.mark.skipif(SOURCE is None, reason="cargo has not fetched the engine")
IDENTIFIER = re.compile(r"[\w.-]+")
OPERATORS = {"AND", "OR", "WITH"}


def module(name, *arguments):
    command = [sys.executable, "-m", f"deploy.{name}", *map(str, arguments)]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)


def test_the_list_is_of_the_engine_that_the_image_and_the_guests_have():
    built = (CHECKOUT / "vm/build-engine").read_text()

    assert read()["engine"] == f"scx_layered {pinned_version()}"
    assert f"version=${{TEMPER_ENGINE_VERSION:-{pinned_version()}}}" in built


def test_every_crate_has_a_licence_and_those_of_others_a_checksum():
    for crate in CRATES:
        assert crate["licence"], crate["name"]
        assert "/" not in crate["licence"], crate["name"]
    assert [each["name"] for each in CRATES if not each["sha256"]] == ["scx_layered"]


@needs_source
def test_every_crate_is_in_the_engines_own_lock():
    lock = tomllib.loads((SOURCE / "Cargo.lock").read_text())
    locked = {(each["name"], each["version"], each.get("checksum", "")) for each in lock["package"]}

    assert {(each["name"], each["version"], each["sha256"]) for each in CRATES} <= locked


@needs_source
@pytest.mark.parametrize("name", ["scx_utils", "clap_main", "below-common"])
def test_a_licence_is_that_of_the_crates_own_file(name):
    [crate] = [each for each in CRATES if each["name"] == name]
    manifest = SOURCE.parent / f"{name}-{crate['version']}" / "Cargo.toml"

    told = tomllib.loads(manifest.read_text())["package"]["license"]
    assert told == crate["licence"]


@needs_source
@pytest.mark.skipif(
    not (shutil.which("cargo") or (Path.home() / ".cargo/bin/cargo").exists()),
    reason="cargo is not installed",
)
def test_the_list_is_what_cargo_says_now():
    done = module("engine_crates", "--check")

    assert done.returncode == 0, done.stderr


def added(tar, name, content):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, BytesIO(content))


def blob(tar, content):
    digest = sha256(content).hexdigest()
    added(tar, f"./blobs/sha256/{digest}", content)
    return {"digest": f"sha256:{digest}"}


def lock_of(crates):
    tables = (
        f'[[package]]\nname = "{each["name"]}"\nversion = "{each["version"]}"\n' for each in crates
    )
    return "\n".join(tables)


@pytest.fixture
def archive(tmp_path):
    """Return an OCI archive with two layers, whose lists are those of a real image in short."""

    def make(crates=CRATES):
        path = tmp_path / "image.tar"
        with tarfile.open(path, "w") as tar:
            layers = []
            for files in (
                {DEBIAN: "libc6\t2.36-9+deb12u14\nzlib1g\t1:1.2.13.dfsg-1\n"},
                {
                    PYTHON: "PyYAML\t6.0.3\tMIT\ngoogle-re2\t1.1\tBSD License\n",
                    LOCK: lock_of(crates),
                },
            ):
                content = BytesIO()
                with tarfile.open(fileobj=content, mode="w:gz") as layer:
                    for name, text in files.items():
                        added(layer, name, text.encode())
                layers.append(blob(tar, content.getvalue()))
            manifest = blob(tar, json.dumps({"layers": layers}).encode())
            named = {"annotations": {"io.containerd.image.name": "registry/temper:0.1.0"}}
            added(tar, "./index.json", json.dumps({"manifests": [{**manifest, **named}]}).encode())
        return path

    return make


def test_the_bill_has_the_packages_of_both_kinds_and_the_crates(archive):
    made = {each["purl"]: each for each in bill(archive())["components"]}

    assert len(made) == len(CRATES) + 4
    assert made["pkg:pypi/pyyaml@6.0.3"]["licenses"] == [{"expression": "MIT"}]
    assert made["pkg:deb/debian/zlib1g@1%3A1.2.13.dfsg-1"]["version"] == "1:1.2.13.dfsg-1"
    macro = made["pkg:cargo/clap_main@0.2.9"]
    assert (macro["licenses"], macro["scope"]) == ([{"expression": "GPL-3.0-only"}], "excluded")


def test_a_licence_that_is_no_expression_is_told_by_its_name(archive):
    made = {each["purl"]: each for each in bill(archive())["components"]}

    assert made["pkg:pypi/google-re2@1.1"]["licenses"] == [{"license": {"name": "BSD License"}}]


def test_a_licence_in_brackets_is_an_expression(archive):
    made = bill(archive())["components"]

    [crate] = [each for each in made if each["name"] == "unicode-ident"]
    assert crate["licenses"] == [{"expression": "(MIT OR Apache-2.0) AND Unicode-3.0"}]


def test_the_bill_names_the_image_by_its_digest(archive):
    path = archive()
    with tarfile.open(path) as tar:
        (told,) = json.loads(tar.extractfile("./index.json").read())["manifests"]

    image = bill(path)["metadata"]["component"]

    assert image["hashes"] == [{"alg": "SHA-256", "content": told["digest"][7:]}]
    assert (image["name"], image["version"]) == ("registry/temper", "0.1.0")


def test_the_bill_of_the_same_image_is_the_same(archive):
    path = archive()

    assert module("image_bill", path).stdout == module("image_bill", path).stdout != ""


def assert_refused(path, told):
    done = module("image_bill", path)
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("path", [LIST, LIST.with_name("none.tar")], ids=["text", "missing"])
def test_a_file_that_is_no_image_is_refused_in_one_line(path):
    assert_refused(path, f"{path}: no OCI archive of one image")


def test_an_image_with_another_engine_is_refused_in_one_line(archive):
    assert_refused(archive(CRATES[1:]), f"lacks {CRATES[0]['name']}")


@pytest.mark.parametrize("crate", CRATES, ids=lambda crate: crate["name"])
def test_a_licence_is_an_expression_of_known_words(crate):
    words = set(IDENTIFIER.findall(crate["licence"])) - OPERATORS

    assert words <= {
        *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "GPL-2.0-only"),
        *("GPL-3.0-only", "ISC", "LGPL-2.1-only", "LLVM-exception", "MIT", "MPL-2.0"),
        *("Unicode-3.0", "Unlicense", "Zlib"),
    }
