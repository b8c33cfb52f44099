"""scripts/build-bpf with the real compiler, where it is; it is never installed from here."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from temper_core.bpf.object_file import parse
from temper_core.bpf.package import load_object

ROOT = Path(__file__).parents[3]
OBJECTS = Path(__file__).parent / "objects"

pytestmark = pytest.mark.skipif(
    shutil.which("clang-19") is None or not Path("/usr/include/bpf/bpf_helpers.h").exists(),
    reason="there is no clang-19 with libbpf's headers here",
)


def build(*arguments):
    command = [ROOT / "scripts" / "build-bpf", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def plugin(tmp_path):
    """A package of somebody else, outside of this checkout, with a source and a header."""
    package = tmp_path / "temper_plugin_theirs"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "answer.h").write_text("#define ANSWER 42\n")
    (package / "answer.bpf.c").write_text(
        '#include "temper_core/bpf/kernel.h"\n'
        '#include "answer.h"\n'
        'char LICENSE[] SEC("license") = "GPL";\n'
        'SEC("syscall") int answer(void *unused) { return ANSWER; }\n'
    )
    return package


def test_every_object_that_is_shipped_is_what_its_source_gives():
    checked = build("--check")

    assert checked.returncode == 0, checked.stderr


@pytest.mark.usefixtures("bpf_allowed")
def test_a_plugin_builds_and_ships_an_object_of_its_own(plugin, monkeypatch):
    built = build(plugin)
    monkeypatch.syspath_prepend(plugin.parent)

    assert built.returncode == 0, built.stderr
    with load_object("temper_plugin_theirs", "answer") as theirs:
        assert theirs.run("answer") == 42


@pytest.mark.usefixtures("bpf_allowed")
def test_the_example_of_the_manual_builds_and_runs(tmp_path, monkeypatch):
    manual = (ROOT / "docs" / "bpf.md").read_text()
    [source] = re.findall(r"```c\n(.*?)```", manual, flags=re.DOTALL)
    [script] = re.findall(r"```python\n(import struct.*?)```", manual, flags=re.DOTALL)
    package = tmp_path / "temper_plugin_forks"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "forks.bpf.c").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)

    built = build(package)
    shown = {}
    exec(script, shown)

    assert built.returncode == 0, built.stderr
    assert shown["count"] >= 0


def test_no_path_of_the_machine_is_in_what_is_built(plugin):
    build(plugin)

    content = (plugin / "answer.bpfl").read_bytes()

    assert [each.name for each in parse(content).programs] == ["answer"]
    assert b"answer.bpf.c" in content
    assert str(plugin).encode() not in content
    assert str(ROOT).encode() not in content


def test_the_same_source_in_another_folder_gives_the_same_bytes(plugin, tmp_path):
    shutil.copytree(plugin, tmp_path / "elsewhere" / "below")

    built = build(tmp_path)

    assert built.returncode == 0, built.stderr
    one, other = (path.read_bytes() for path in tmp_path.glob("**/answer.bpfl"))
    assert one == other


def test_a_check_names_what_is_missing_and_what_differs(plugin):
    missing = build("--check", plugin)
    build(plugin)
    same = build("--check", plugin)
    (plugin / "answer.h").write_text("#define ANSWER 43\n")
    other = build("--check", plugin)

    assert (missing.returncode, same.returncode, other.returncode) == (1, 0, 1)
    assert missing.stderr == f"build-bpf: {plugin}/answer.bpfl is missing\n"
    assert same.stderr == ""
    assert "answer.bpfl is not what answer.bpf.c gives" in other.stderr


def test_a_check_does_not_compare_what_other_tools_made(plugin):
    build(plugin)
    made = plugin / "answer.bpfl"
    made.write_bytes(made.read_bytes().replace(b"version 19", b"version 18"))

    checked = build("--check", plugin)

    assert checked.returncode == 0
    assert "answer.bpfl was made by clang version 18" in checked.stderr


def test_a_source_that_does_not_compile_ends_the_build(plugin):
    (plugin / "answer.bpf.c").write_text("no C\n")

    built = build(plugin)

    assert built.returncode == 2
    assert "answer.bpf.c:1:1: error: " in built.stderr
    assert not (plugin / "answer.bpfl").exists()


@pytest.mark.parametrize(
    ("place", "complaint"),
    [("empty", "finds no *.bpf.c in "), ("none", "is no directory")],
)
def test_a_folder_without_sources_is_told(tmp_path, place, complaint):
    (tmp_path / "empty").mkdir()

    built = build(tmp_path / place)

    assert built.returncode == 2
    assert complaint in built.stderr
