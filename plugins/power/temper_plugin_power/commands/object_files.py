"""Reads Kubernetes objects from files."""

from collections.abc import Mapping
from pathlib import Path

from temper_core import DocumentError, parse_yaml, read_json, read_text

YAML = (".yaml", ".yml")


def read_documents(path: Path) -> list[object]:
    """Return the documents of a file, JSON or YAML by its name; ``-`` is JSON of standard input.

    Raises DocumentError if it is invalid.
    """
    if path.suffix not in YAML:
        return [read_json(path)]
    parsed = parse_yaml(read_text(path, pipes=True), source=str(path))
    documents = [document for document in parsed if document is not None]
    if not documents:
        raise DocumentError(str(path), ["is empty"])
    return documents


def read_objects(path: Path) -> list[object]:
    """Return the objects of a file. A List stands for its items. Raises as ``read_documents``."""
    objects: list[object] = []
    for document in read_documents(path):
        items = document.get("items") if isinstance(document, Mapping) else None
        objects += items if isinstance(items, list) else [document]
    return objects
