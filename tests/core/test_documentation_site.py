"""The documentation site is built without warnings, and the tutorial can be followed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
TUTORIAL = ROOT / "docs" / "tutorial.md"


def build_site(source, target):
    """Build the site of the checkout *source* as ``make docs`` does."""
    options = ["-q", "-W", "--keep-going", "-c", source / "docs" / "site"]
    command = [BIN / "sphinx-build", *options, source, target]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    target = tmp_path_factory.mktemp("site")
    done = build_site(ROOT, target)
    assert done.returncode == 0, done.stderr
    return target


def test_the_front_page_leads_to_every_section(site):
    sections = re.findall(r"^## (.+)$", (ROOT / "docs" / "index.md").read_text(), re.MULTILINE)
    front = (site / "docs" / "index.html").read_text()

    captions = re.findall(r'<span class="caption-text">(.*?)</span>', front)
    assert captions == sections
    assert 'url=docs/index.html"' in (site / "index.html").read_text()


def test_the_page_of_commands_has_those_of_the_core_and_of_plugins(site):
    page = (site / "docs" / "commands.html").read_text()

    for command in ("temper-plan", "temper-profiles-lint", "temper-trace-capture", "temper-top"):
        assert f'id="{command}' in page, command


def test_no_page_loads_anything_from_elsewhere(site):
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img)[^>]*(?:src|href)="(https?://[^"]+)"', page.read_text()
        )
        assert not loaded, page


@pytest.mark.parametrize(
    ("added", "reason"),
    [
        ("[gone](no-such-page.md)", "no-such-page.md"),
        ("[gone](settings.md#no-such-heading)", "no-such-heading"),
    ],
)
def test_a_dead_link_is_an_error(added, reason, tmp_path):
    shutil.copytree(ROOT / "docs" / "site", tmp_path / "docs" / "site")
    (tmp_path / "docs" / "settings.md").write_text("# Settings\n")
    (tmp_path / "docs" / "index.md").write_text(
        f"# Temper\n\n## Start\n\n| page |\n| --- |\n| [Settings](settings.md) |\n\n{added}\n"
    )

    done = build_site(tmp_path, tmp_path / "built")

    assert done.returncode == 1
    assert reason in done.stderr


def test_the_tutorial_can_be_followed(tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    steps = re.findall(r"^ {4}\$ (.*)$", TUTORIAL.read_text(), re.MULTILINE)
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}

    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-x", "-c", "\n".join(steps)],
        check=False,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    assert "slow-pods" in done.stdout
    assert len(steps) >= 10
