"""Sphinx: the pages of the checkout as one site. ``make docs`` builds it into build/site.

The sections and links of docs/index.md are the navigation of the site.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx

from temper_core import __version__

HERE = Path(__file__).parent

project = "Temper"
author = "the Temper authors"
release = __version__
root_doc = "docs/index"
include_patterns = [
    "README.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "bench/README.md",
    "libs/*/README.md",
    "plugins/*/README.md",
    "plugins/builtin_profiles/recordings/README.md",
    "examples/*/README.md",
]
extensions = ["myst_parser", "sphinx_click", "sphinx_copybutton"]
myst_heading_anchors = 4
copybutton_prompt_text = "$ "

html_theme = "furo"
html_title = f"Temper {release}"
html_extra_path = ["redirect"]
"""The front page of the site is docs/index.html."""

_SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_LINKED_PAGE = re.compile(r"^\| \[[^]]*\]\(([^)#]+)\.md\)", re.MULTILINE)


def add_navigation(_app: Sphinx, page: str, source: list[str]) -> None:
    """Append a hidden table of contents for each section of docs/index.md."""
    if page == root_doc:
        source[0] += "".join(map(_contents, *zip(*_SECTION.findall(source[0]), strict=True)))


def _contents(title: str, text: str) -> str:
    pages = "\n".join(_LINKED_PAGE.findall(text))
    return f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n"


def setup(app: Sphinx) -> None:
    """Register the navigation with Sphinx."""
    app.connect("source-read", add_navigation)
