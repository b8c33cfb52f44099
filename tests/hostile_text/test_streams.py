"""The streams of a command: no text that goes through them controls the terminal."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile_text.hostile import TEXTS, leaks
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
EVERY_TEXT = "".join(TEXTS.values())
DELIVERED = "from temper_core.standard_output import deliver\nimport sys, click\n"
GIVEN = f"TEXT = {EVERY_TEXT!r}\n"


def ran(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", DELIVERED + GIVEN + code],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
@pytest.mark.parametrize(
    "written",
    [
        "print(TEXT)",
        "click.echo(TEXT)",
        "click.echo(TEXT, err=True)",
        "sys.stderr.write(TEXT)",
        "sys.stderr.writelines([TEXT])",
        "sys.stdout.writelines([TEXT])",
    ],
)
def test_what_a_command_writes_in_any_way_is_visible(written, encoding):
    done = ran(f"deliver(lambda: {written} and 0 or 0)", PYTHONIOENCODING=encoding)

    shown = (done.stdout + done.stderr).decode(encoding)
    lines = "\n".join(line for line in shown.split("\n") if not line.startswith("FORGED"))
    assert done.returncode == 0, shown
    assert "3J" in shown
    assert leaks(lines) == []


def test_the_traceback_of_an_unexpected_error_is_visible_too():
    done = ran("def fail():\n    raise RuntimeError(TEXT)\ndeliver(fail)")

    shown = done.stderr.decode()
    assert "RuntimeError" in shown
    assert not {letter for letter in shown if letter != "\n" and not letter.isprintable()}


def test_a_log_on_a_terminal_is_visible_and_keeps_its_own_colours():
    code = (
        "sys.stderr.isatty = lambda: True\n"
        "def run():\n"
        "    from temper_core.logs import configure_logs\n"
        "    import structlog\n"
        "    configure_logs()\n"
        "    structlog.get_logger().warning(TEXT, pod=TEXT, problems=[TEXT])\n"
        "    return 0\n"
        "deliver(run)"
    )

    shown = ran(code).stderr.decode()

    assert "\x1b[" in shown
    assert len(shown.splitlines()) == 1
    assert leaks(shown) == []


def test_a_log_in_a_pipe_is_json_in_ascii():
    code = (
        "from temper_core.logs import configure_logs\nimport structlog\nconfigure_logs()\n"
        "structlog.get_logger().warning('odd', pod=TEXT)"
    )

    shown = ran(code).stderr

    assert shown.isascii()
    assert json.loads(shown)["pod"] == EVERY_TEXT


APART = {
    "temper_core/cli/help_width.py": "asks the terminal for its width",
    "temper_core/rich_output.py": "is the console itself",
}
"""Modules that may use what others may not, with the reason."""


CALLS = {
    "Console", "rich.print", "click.secho", "click.style", "click.echo_via_pager",
    "click.get_binary_stream", "click.get_text_stream", "os.write(1", "os.write(2",
}  # fmt: skip
NAMES = {"sys.__stdout__", "sys.__stderr__", "sys.stdout.buffer", "sys.stderr.buffer"}


def forbidden(tree):
    """Yield each way past the streams in a module: other streams, buffers, consoles."""
    for node in ast.walk(tree):
        text = ast.unparse(node) if isinstance(node, ast.Attribute | ast.Call) else ""
        name = text.partition("(")[0] if isinstance(node, ast.Call) else text
        if {name, text[: len("os.write(1")]} & (CALLS | NAMES):
            yield f"line {node.lineno}: {text}"


def test_no_module_writes_to_the_terminal_past_the_streams():
    found = {}
    for folder in ("temper_core", "plugins", "libs", "examples"):
        for file in (ROOT / folder).rglob("*.py"):
            name = str(file.relative_to(ROOT))
            ways = list(forbidden(ast.parse(file.read_text())))
            if ways and name not in APART and name != "temper_core/console.py":
                found[name] = ways

    assert found == {}


@pytest.mark.parametrize(
    "code", ["sys.__stdout__.write('x')", "sys.stdout.buffer.write(b'x')", "Console().print('x')"]
)
def test_a_way_past_the_streams_is_seen(code):
    assert list(forbidden(ast.parse(code)))
