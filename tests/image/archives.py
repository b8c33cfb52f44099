"""OCI archives, read with nothing of what wrote them."""

import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import frozen

from tests.image.recipe import script


@frozen
class Archive:
    """One image in a file."""

    file: Path
    name: str
    manifest_digest: str
    manifest: Mapping[str, Any]
    configuration: Mapping[str, Any]

    @classmethod
    def open(cls, file: Path) -> "Archive":
        with tarfile.open(file) as tar:
            (told,) = _document(tar, "./index.json")["manifests"]
            manifest = _document(tar, _blob(told["digest"]))
            configuration = _document(tar, _blob(manifest["config"]["digest"]))["config"]
        name = told["annotations"]["io.containerd.image.name"]
        return cls(file, name, told["digest"], manifest, configuration)

    @property
    def layers(self) -> Sequence[str]:
        """The digests of the layers, lowest first."""
        return [layer["digest"] for layer in self.manifest["layers"]]


def _blob(digest: str) -> str:
    return "./blobs/" + digest.replace(":", "/")


def _document(tar: tarfile.TarFile, name: str) -> Any:
    file = tar.extractfile(name)
    assert file
    return json.loads(file.read())


@contextmanager
def unpacked(archive: Archive, directory: Path) -> Iterator[Path]:
    """The files of the image, in a directory that is gone afterwards."""
    directory.mkdir()
    yield script("smoke").unpack(archive.file, directory).root
