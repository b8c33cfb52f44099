"""Draws what commands print on a terminal, as SVG: ``python docs/terminal_pictures.py``.

The commands read files of this repository only, so the same sources give the same pictures.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping
from contextlib import suppress
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

from temper_core.observe.document import observe_document
from temper_core.testing import recorded_snapshots
from temper_plugin_console.top.history import History, longer
from temper_plugin_console.top.pane_boxes import PaneInput
from temper_plugin_console.top.screen import whole_text

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
COLUMNS, LINES = 112, 100
PODS = ("--pods", "examples/podlists/mixed-node.yaml")
MACHINE = ("--machine", "examples/machines/16-cores.toml")
PICTURES: Mapping[str, tuple[str, ...]] = {
    "explain.svg": ("temper", "explain", "shop/mysql-0", *PODS, *MACHINE),
}
PLOTS: Mapping[str, tuple[str, ...]] = {
    "simulate.svg": (
        *("temper", "simulate", "examples/recordings/busy-node.rec.gz", "--steered"),
        *("--machine", "examples/machines/16-cores.toml"),
    ),
}
"""Commands that draw their picture themselves, by ``--save``."""
SCREENS = ("top.svg",)
"""The screen of ``temper top``, of the last look of a recording."""
RECORDING = ROOT / "examples/recordings/busy-node.rec.gz"
THREADS = 12
FONT = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def picture(name: str) -> str:
    """Return the SVG of what the command of *name* prints, without fonts from elsewhere."""
    if name in PLOTS:
        return _saved(PLOTS[name])
    command = ("temper", "top", "--once") if name in SCREENS else PICTURES[name]
    shown = _top() if name in SCREENS else Text.from_ansi(printed(command))
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text(f"$ {' '.join(command)}\n", style="bold"), shown, sep="", soft_wrap=True)
    drawn = console.export_svg(title="temper", unique_id=name.partition(".")[0])
    return FONT.sub("", drawn)


def _top() -> Text:
    """Return the screen after all looks of the recording, without what is of this host."""
    documents = [observe_document(look, THREADS) for look in recorded_snapshots(RECORDING)]
    history: History = {}
    for document in documents:
        history = longer(history, document)
    return Text("\n").join(whole_text(PaneInput(documents[-1], history=history), COLUMNS))


def _saved(command: tuple[str, ...]) -> str:
    """Return the picture that *command* saves; raise an error without one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plot.svg"
        program = Path(sys.executable).with_name(command[0])
        words = [str(program), *command[1:], "--save", str(path)]
        # The exit code is 1 if the simulated node has findings.
        subprocess.run(words, cwd=ROOT, check=False, capture_output=True)  # noqa: S603 - ours
        return path.read_text()


def printed(command: tuple[str, ...]) -> str:
    """Return what *command* prints on a terminal of ``COLUMNS``; raise CalledProcessError."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    program = Path(sys.executable).with_name(command[0])
    environment = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    words = [str(program), *command[1:]]
    process = subprocess.Popen(words, stdout=end, cwd=ROOT, env=environment)  # noqa: S603 - ours
    os.close(end)
    parts = []
    with suppress(OSError):  # the kernel's answer when the last end of a terminal is closed
        while part := os.read(terminal, 1 << 16):
            parts.append(part)
    os.close(terminal)
    if process.wait():
        raise subprocess.CalledProcessError(process.returncode, command)
    return b"".join(parts).decode().replace("\r\n", "\n").rstrip()


def main() -> None:
    """Write all pictures."""
    for name in (*PICTURES, *PLOTS, *SCREENS):
        (IMAGES / name).write_text(picture(name))


if __name__ == "__main__":
    main()
