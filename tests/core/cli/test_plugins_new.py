"""``temper plugins new``: what it writes works at once."""

import errno
import io
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from temper_core import InputError
from temper_core.cli.plugins import new

TEMPER = str(Path(sys.executable).with_name("temper"))


def temper(*arguments, **options):
    command = [TEMPER, *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, **options)


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_distribution_passes_its_own_tests(tmp_path):
    done = temper("plugins", "new", "slow-pods", "--directory", tmp_path)
    root = tmp_path / "temper-plugin-slow-pods"
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0
    assert f"wrote {root}" in done.stdout
    assert f"{sys.executable} -m pip install -e '.[test]'" in done.stdout
    assert ("-m ensurepip && " in done.stdout) == (find_spec("pip") is None)
    assert "3 passed" in tests.stdout, tests.stdout + tests.stderr
    assert "$" not in "".join(path.read_text() for path in root.rglob("*.py"))


def test_one_file_is_loaded_from_its_directory(tmp_path):
    temper("plugins", "new", "slow-pods", "--file", "--directory", tmp_path)

    shown = temper("plugins", "--plugins-dir", tmp_path, "--strict-plugins")

    assert files(tmp_path) == ["slow_pods.py"]
    [line] = [line for line in shown.stdout.splitlines() if line.startswith("slow-pods")]
    assert "active" in line
    assert shown.returncode == 0


@pytest.mark.parametrize("options", [(), ("--file",)])
def test_nothing_that_exists_is_overwritten(tmp_path, options):
    given_options = ("plugins", "new", "slow-pods", "--directory", tmp_path, *options)
    temper(*given_options)
    before = {name: (tmp_path / name).read_text() for name in files(tmp_path)}

    again = temper(*given_options)

    assert again.returncode == 2
    assert "File exists" in again.stderr
    assert {name: (tmp_path / name).read_text() for name in files(tmp_path)} == before


def test_the_name_of_an_installed_plugin_is_refused(tmp_path):
    done = temper("plugins", "new", "linter", "--directory", tmp_path)

    assert done.returncode == 2
    assert "is that of a plugin in temper-plugin-linter" in done.stderr
    assert files(tmp_path) == []


@pytest.mark.parametrize("options", [(), ("--file",)])
def test_a_directory_that_is_not_there_is_made_for_its_owner_alone(tmp_path, options):
    made = tmp_path / "plugins"
    given_options = ("plugins", "new", "slow-pods", "--directory", made, *options)

    done = temper(*given_options, umask=0o002)

    assert done.returncode == 0, done.stderr
    assert made.stat().st_mode & 0o777 == 0o755
    assert files(made)


def test_a_directory_without_a_parent_is_refused(tmp_path):
    done = temper("plugins", "new", "slow-pods", "--directory", tmp_path / "none" / "plugins")

    assert done.returncode == 2
    assert done.stderr == f"temper: {tmp_path}/none/plugins: No such file or directory\n"


def test_a_failure_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(new, "_write_new", full)
    done = CliRunner().invoke(new.command, ["slow-pods", "--directory", str(tmp_path)])

    assert done.exit_code != 0
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_no_part_of_a_file(tmp_path, monkeypatch):
    class Full(io.StringIO):
        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

    def open_full(path, *_, **__):
        path.touch()
        return Full()

    monkeypatch.setattr(Path, "open", open_full)
    done = CliRunner().invoke(
        new.command, ["slow-pods", "--file", "--directory", str(tmp_path)], standalone_mode=False
    )

    assert isinstance(done.exception, InputError)
    assert "No space left on device" in str(done.exception)
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=60))
def test_any_name_is_written_within_the_directory_or_refused(name):
    with tempfile.TemporaryDirectory() as folder:
        done = CliRunner().invoke(new.command, ["--directory", folder, "--", name])

        written = list(Path(folder).iterdir())
        assert [path.name for path in written] == ([f"temper-plugin-{name}"] if written else [])
        assert bool(written) == (done.exit_code == 0)
