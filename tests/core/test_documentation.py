"""What the documentation shows must be there, and must run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("bench/*.md"),
    *ROOT.glob("libs/*/README.md"),
    *ROOT.glob("plugins/*/README.md"),
]
LINKS = [
    (page, target)
    for page in PAGES
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
]
ELSEWHERE = (
    *("sudo", "kubectl", "helm", "curl", "make"),
    *(".venv/bin/temper top", ".venv/bin/temper lint"),
)
"""What needs another machine, a running agent, or rights that a test need not have."""


@pytest.mark.parametrize(
    ("page", "target"), LINKS, ids=[f"{page.name}-{target}" for page, target in LINKS]
)
def test_a_link_leads_to_a_file(page, target):
    assert (page.parent / target).exists()


def commands_of_the_readme():
    shown = re.findall(r"^ {4}\$ (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    return [command.partition("#")[0] for command in shown if not command.startswith(ELSEWHERE)]


@pytest.mark.parametrize("command", commands_of_the_readme())
def test_a_command_of_the_readme_runs(command, tmp_path):
    settings = tmp_path / "agent.toml"
    settings.write_text(f'run_directory = "{tmp_path}"\n[server]\nlisten = ""\n')
    # These two ask the agent that may run on this machine.
    command = re.sub(r"temper (doctor|map)\b", rf"temper \1 --settings {settings}", command)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.replace(".venv/bin", str(BIN))],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    expected = (0, 3) if "doctor" in command else (0,)  # 3: this machine cannot enforce
    assert done.returncode in expected, done.stderr
    assert done.stdout


def test_the_readme_shows_the_two_commands_first():
    first = re.search(r"^ {4}(.*)\n {4}(.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)

    assert first is not None
    assert first.group(1).startswith("make run")
    assert first.group(2).startswith("make test")


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
ROOMS = ARCHITECTURE.partition("## The rooms")[2].partition("\n## ")[0]
PLACES = [ROOT, ROOT / "temper_core", ROOT / "temper_core" / "scheduler", ROOT / "examples"]
NAMED = [
    name for name in re.findall(r"`(\w[\w./-]*)`", ROOMS) if "/" in name or name.endswith(".py")
]


def rooms_of_the_tree():
    """Return the modules and packages of the core, and the folders of distributions and charts."""
    own = [path for path in (ROOT / "temper_core").iterdir() if path.stem[0] != "_"]
    modules = [path.name for path in own if path.suffix == ".py" or any(path.glob("*.py"))]
    folders = [
        f"{parent}/{path.name}"
        for parent in ("plugins", "libs", "deploy")
        for path in (ROOT / parent).iterdir()
        if path.is_dir() and path.name[0] not in "_."
    ]
    return sorted([*modules, *folders])


@pytest.mark.parametrize("room", rooms_of_the_tree())
def test_every_room_of_the_tree_is_in_the_page_of_the_architecture(room):
    assert re.search(rf"[`/]{re.escape(room)}[`/]", ROOMS)


@pytest.mark.parametrize("named", sorted(set(NAMED)))
def test_every_path_that_the_page_of_the_architecture_names_is_there(named):
    assert any((place / named).exists() for place in PLACES)
