"""No file of the pages names another host, so a browser without a network shows all of them."""

import re
from importlib.resources import as_file, files
from pathlib import Path

import pytest

COMMENT = re.compile(r"/\*.*?\*/|<!--.*?-->", re.DOTALL)
FOREIGN = re.compile(r"(?:\w+:)?//[\w-]+(?:\.[\w-]+)+[^\s\"'`)]*")
NAMESPACES = {"http://www.w3.org/2000/svg"}
"""Names of XML, which no browser fetches."""

with as_file(files("temper_plugin_dashboard") / "assets") as folder:
    ASSETS = [path for path in Path(folder).rglob("*") if path.suffix]


def foreign_names(text):
    return set(FOREIGN.findall(COMMENT.sub("", text))) - NAMESPACES


@pytest.mark.parametrize("path", ASSETS, ids=[path.name for path in ASSETS])
def test_an_asset_names_no_other_host(path):
    assert foreign_names(path.read_text()) == set()


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example.org/a.js"></script>',
        "@import url(//fonts.example.org/css);",
        'fetch("http://203.0.113.9/x")',
    ],
)
def test_a_reference_to_another_host_is_found(text):
    assert foreign_names(text)


def test_there_are_scripts_styles_and_pages():
    assert {".js", ".css", ".html", ".svg"} <= {path.suffix for path in ASSETS}
