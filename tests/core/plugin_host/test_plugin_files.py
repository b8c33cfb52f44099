"""Plugins that are one file each in a directory."""

import importlib.util
import marshal
import os
import sys
from pathlib import Path

import pytest
from attrs import evolve

from temper_core import Invariant, PluginError
from temper_core.plugin_host import load_host

OWNED = """
from attrs import frozen
from temper_core import Invariant, fit_settings, hookimpl

@frozen
class Limits:
    most: int = 3

@hookimpl
def temper_invariants(settings):
    limits = fit_settings(settings, Limits, plugin="wait-limits")
    return [Invariant(f"at_most_{limits.most}", lambda snapshot: (), why="it holds")]
"""


@pytest.fixture
def directory(tmp_path):
    made = tmp_path / "plugins"
    made.mkdir()
    yield made
    for name in [name for name in sys.modules if name.startswith("temper_plugin_file_")]:
        del sys.modules[name]


@pytest.fixture
def host_of(directory, settings):
    def load(**changes):
        tables = changes.pop("plugins", {})
        return load_host(evolve(settings(directory=str(directory), **changes), plugins=tables))

    return load


def state_of(host, name):
    [state] = [state for state in host.states() if state.name == name]
    return state


def invariants(host):
    return [each.record.name for each in host.gather("temper_invariants", Invariant)]


def test_a_file_is_a_plugin_with_the_name_of_the_file(directory, host_of):
    (directory / "wait_limits.py").write_text(OWNED)

    host = host_of()

    assert "at_most_3" in invariants(host)
    state = state_of(host, "wait-limits")
    assert (state.state, state.distribution) == ("active", str(directory / "wait_limits.py"))


def test_it_has_settings_like_any_other(directory, host_of):
    (directory / "wait_limits.py").write_text(OWNED)

    assert "at_most_9" in invariants(host_of(plugins={"wait-limits": {"most": 9}}))


def test_other_files_are_left_alone(directory, host_of):
    for name in ("_helper.py", ".hidden.py", "notes.txt", "old.py.orig"):
        (directory / name).write_text("raise SystemExit")
    (directory / "wait_limits.py").write_text(OWNED)

    host = host_of()

    files = [state.name for state in host.states() if str(directory) in state.distribution]
    assert files == ["wait-limits"]


def test_a_broken_file_is_set_aside_and_the_next_one_works(directory, host_of):
    (directory / "broken.py").write_text("raise ValueError('no licence')")
    (directory / "wait_limits.py").write_text(OWNED)

    host = host_of()

    assert state_of(host, "broken").failure == "ValueError: no licence (broken.py:1 in <module>)"
    assert "at_most_3" in invariants(host)


def test_a_file_that_is_no_python_is_named_with_the_line_and_no_place_of_the_interpreter(
    directory, host_of
):
    (directory / "broken.py").write_text("\nfoo(")

    failure = state_of(host_of(), "broken").failure

    assert failure == "SyntaxError: '(' was never closed (broken.py, line 2)"


def test_a_file_that_others_may_write_is_not_loaded(directory, host_of):
    (directory / "wait_limits.py").write_text(OWNED)
    (directory / "wait_limits.py").chmod(0o666)

    state = state_of(host_of(), "wait-limits")

    assert state.state == "set_aside"
    path = directory / "wait_limits.py"
    assert state.failure == f"its file is not trusted: every user may write {path}"


@pytest.mark.parametrize("mode", [0o777, 0o1777])
def test_no_file_of_a_directory_to_which_others_may_add_is_loaded(
    directory, host_of, install, steady, capsys, mode
):
    """Not even in one like /tmp: a file could keep an installed plugin from being loaded."""
    install("doubled", steady.format(name="doubled"))
    for name in ("wait_limits", "doubled"):
        (directory / f"{name}.py").write_text(OWNED)
    directory.chmod(mode)

    host = host_of()

    assert "at_most_3" not in invariants(host)
    assert state_of(host, "doubled").state == "active"
    assert f"it is not trusted: every user may write {directory}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["two words.py", "1st.py", "a-b.py"])
def test_a_name_that_is_no_module_says_so(directory, host_of, name):
    (directory / name).write_text(OWNED)

    state = state_of(host_of(), name.removesuffix(".py"))

    assert state.state == "set_aside"
    assert "is no name of a module" in state.failure


def test_a_pipe_without_a_writer_does_not_stop_the_agent(directory, host_of):
    os.mkfifo(directory / "pipe.py")
    (directory / "wait_limits.py").write_text(OWNED)

    host = host_of()

    assert state_of(host, "pipe").failure == "is no regular file"
    assert "at_most_3" in invariants(host)


def test_the_name_of_an_installed_plugin_goes_to_neither(directory, host_of, install, steady):
    install("doubled", steady.format(name="doubled"))
    (directory / "doubled.py").write_text(OWNED)

    assert "is the name of two plugins" in state_of(host_of(), "doubled").failure


def test_one_that_is_not_allowed_is_not_imported(directory, host_of):
    (directory / "wait_limits.py").write_text("raise SystemExit")

    assert state_of(host_of(allow=("another",)), "wait-limits").state == "not_allowed"


def test_nothing_is_written_beside_the_file(directory, host_of):
    (directory / "wait_limits.py").write_text(OWNED)

    host_of()

    assert [path.name for path in directory.iterdir()] == ["wait_limits.py"]


def test_a_directory_that_is_not_there_is_told_and_the_others_are_loaded(
    directory, host_of, install, steady, capsys
):
    install("one", steady.format(name="one"))
    directory.rmdir()

    host = host_of()

    assert state_of(host, "one").state == "active"
    assert (
        f"{directory}': no plugins are loaded from there: No such file" in capsys.readouterr().err
    )


def test_a_strict_host_refuses_a_directory_that_is_not_there(directory, host_of):
    directory.rmdir()

    with pytest.raises(PluginError, match="no plugins are loaded from there"):
        host_of(strict=True)


def test_bytecode_beside_the_file_is_not_run(directory, host_of):
    """It needs no date of the file, so that whoever may write it would be run."""
    (directory / "wait_limits.py").write_text(OWNED)
    code = compile("raise SystemExit('the bytecode was run')", "wait_limits.py", "exec")
    cache = Path(importlib.util.cache_from_source(str(directory / "wait_limits.py")))
    cache.parent.mkdir()
    unchecked = (1).to_bytes(4, "little") + bytes(8)
    cache.write_bytes(importlib.util.MAGIC_NUMBER + unchecked + marshal.dumps(code))

    assert "at_most_3" in invariants(host_of())
