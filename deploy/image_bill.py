"""Writes the bill of materials of an image: ``python -m deploy.image_bill IMAGE.tar``.

It is CycloneDX 1.5 as JSON on standard output, from what the image itself lists: its Debian
packages, its Python packages, and the lock of the engine's crates, of which
``engine-crates.json`` has the licences. The same image gives the same bytes.
"""

import argparse
import json
import re
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from deploy.engine_crates import read as engine_crates

DEBIAN = "usr/share/doc/temper/debian-packages.txt"
PYTHON = "usr/share/doc/temper/python-packages.txt"
LOCK = "usr/share/doc/scx_layered/Cargo.lock"
OPERATORS = {"AND", "OR", "WITH"}

Json = dict[str, Any]


class UnreadableImage(Exception):  # noqa: N818 - reads as the fact it reports
    """Raised where an archive is no image of Temper's, with what it lacks."""


def bill(image: Path) -> Json:
    """Return the bill of the image in an OCI archive. Raise UnreadableImage for another file."""
    name, digest, found = _read(image)
    crates = engine_crates()
    engine = crates["engine"].split()[1]
    locked = {(each["name"], each["version"]) for each in tomllib.loads(found[LOCK])["package"]}
    missing = [
        each["name"] for each in crates["crates"] if (each["name"], each["version"]) not in locked
    ]
    if missing:
        raise UnreadableImage(
            f"{image}: {LOCK} lacks {missing[0]}, a crate of scx_layered {engine}"
        )
    components = [
        *_debian(found[DEBIAN]),
        *_python(found[PYTHON]),
        *_crates(crates["crates"]),
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "bom-ref": "image",
                "name": name.rpartition(":")[0],
                "version": name.rpartition(":")[2],
                "hashes": [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}],
            }
        },
        "components": sorted(components, key=lambda each: str(each["purl"])),
    }


def _read(image: Path) -> tuple[str, str, Mapping[str, str]]:
    """Return the image's name, its digest, and the files that list what is in it."""
    try:
        with tarfile.open(image) as tar:
            (told,) = _document(tar, "./index.json")["manifests"]
            manifest = _document(tar, _blob(told["digest"]))
            found = dict(_listings(tar, [each["digest"] for each in manifest["layers"]]))
    except (tarfile.TarError, OSError, KeyError, ValueError) as problem:
        raise UnreadableImage(f"{image}: no OCI archive of one image") from problem
    for name in (DEBIAN, PYTHON, LOCK):
        if name not in found:
            raise UnreadableImage(f"{image}: no /{name}, so it is no image of Temper")
    return told["annotations"]["io.containerd.image.name"], told["digest"], found


def _listings(tar: tarfile.TarFile, layers: list[str]) -> Iterator[tuple[str, str]]:
    for digest in layers:
        with tarfile.open(fileobj=tar.extractfile(_blob(digest))) as layer:
            for name in (DEBIAN, PYTHON, LOCK):
                if name in layer.getnames() and (file := layer.extractfile(name)):
                    yield name, file.read().decode()


def _blob(digest: str) -> str:
    return f"./blobs/{digest.replace(':', '/')}"


def _document(tar: tarfile.TarFile, name: str) -> Json:
    file = tar.extractfile(name)
    return dict(json.loads(file.read())) if file else {}


def _debian(listing: str) -> Iterator[Json]:
    for line in listing.splitlines():
        name, version = line.split("\t")[:2]
        yield _component(name, version, f"pkg:deb/debian/{quote(name)}@{quote(version, safe='')}")


def _python(listing: str) -> Iterator[Json]:
    for line in listing.splitlines():
        name, version, licence = line.split("\t")
        known = re.sub(r"[-_.]+", "-", name).lower()
        yield _component(name, version, f"pkg:pypi/{known}@{quote(version, safe='')}", licence)


def _crates(crates: list[Mapping[str, str]]) -> Iterator[Json]:
    for crate in crates:
        name, version = crate["name"], crate["version"]
        purl = f"pkg:cargo/{quote(name)}@{quote(version, safe='')}"
        made = _component(name, version, purl, crate["licence"])
        if crate["sha256"]:
            made["hashes"] = [{"alg": "SHA-256", "content": crate["sha256"]}]
        yield {**made, "scope": "required" if crate["use"] == "linked" else "excluded"}


def _component(name: str, version: str, purl: str, licence: str = "") -> Json:
    made: Json = {"type": "library", "bom-ref": purl, "name": name, "version": version}
    if licence:
        is_spdx = _is_expression(licence)
        told: Json = {"expression": licence} if is_spdx else {"license": {"name": licence}}
        made["licenses"] = [told]
    return {**made, "purl": purl}


def _is_expression(licence: str) -> bool:
    """Whether a text is built like an expression of SPDX: single words with operators between."""
    words = licence.replace("(", "").replace(")", "").split()
    return len(words) % 2 == 1 and OPERATORS.issuperset(words[1::2])


def main() -> int:
    """Write the bill. Return 0, or 2 where the file is no image of Temper's."""
    parser = argparse.ArgumentParser(prog="python -m deploy.image_bill", description=__doc__)
    parser.add_argument("image", type=Path, metavar="IMAGE.tar")
    options = parser.parse_args()
    try:
        made = bill(options.image)
    except UnreadableImage as problem:
        sys.stderr.write(f"image_bill: {problem}\n")
        return 2
    json.dump(made, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
