"""Asks the system's interpreter for the loaded recorder.

bcc's module belongs to the system's interpreter, which may be of another version than ours, and its
library has the whole of LLVM. So a process of that interpreter compiles and loads, passes the
descriptors of the maps and links (unix(7), SCM_RIGHTS) and ends. The recording is done here, by the
rings that the BPF object has as well.
"""

import json
import mmap
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Self

from attrs import define

from temper_core import MachineError
from temper_plugin_tracer.capture.bcc.installed import INTERPRETER, find_bcc
from temper_plugin_tracer.capture.children import end_with_parent, last_line

HERE = Path(__file__).parent
SOURCE = HERE / "recorder.c"
COMPILING = HERE / "compiling.py"
COMPILE_S = 300.0
"""It takes 1.4 s of CPU time, and 80 s in an emulator."""
MOST_BYTES, MOST_DESCRIPTORS = 65_536, 64


@define
class Descriptors:
    """The maps and the links of the loaded recorder, which ``close`` removes from the kernel."""

    _numbers: dict[str, int]

    @classmethod
    def load(cls, sizes: Mapping[str, int]) -> Self:
        """Compile with *sizes* as constants, load and attach. Raises MachineError, OSError."""
        find_bcc()
        flags = [f"-I{HERE.parent}", *(f"-D{name}={size}" for name, size in sizes.items())]
        return cls(_asked({"text": SOURCE.read_text(), "flags": flags}))

    def memory(self, name: str, size: int) -> mmap.mmap:
        """Map the first *size* bytes of a map. Raises OSError."""
        return mmap.mmap(self._numbers[name], size)

    def detach(self, programs: Sequence[str]) -> None:
        """Close the links of *programs*. A second call does nothing."""
        for program in programs:
            number = self._numbers.pop(program, -1)
            if number >= 0:
                os.close(number)

    def close(self) -> None:
        """Close all. A second call does nothing."""
        self.detach(tuple(self._numbers))


def _asked(order: Mapping[str, Any]) -> dict[str, int]:
    ours, theirs = socket.socketpair()
    with ours, ExitStack() as opened, tempfile.TemporaryFile() as words:
        opened.enter_context(theirs)
        child = subprocess.Popen(  # noqa: S603 - a program of the system
            [str(INTERPRETER), "-I", str(COMPILING)],
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=words,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - this process has one thread
        )
        opened.callback(child.wait)
        opened.callback(child.kill)
        theirs.close()
        ours.settimeout(COMPILE_S)
        try:
            ours.sendall(json.dumps(order).encode() + b"\n")
            content, numbers, *_ = socket.recv_fds(
                ours, MOST_BYTES, MOST_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
            )
        except TimeoutError as error:
            raise MachineError(f"bcc has not compiled in {COMPILE_S:.0f} s") from error
        except ConnectionError:
            content, numbers = b"", []
        answer = json.loads(content) if content.endswith(b"\n") else {}
        if "names" in answer:
            return dict(zip(answer["names"], numbers, strict=True))
        raise MachineError(answer.get("error", "bcc has ended") + _words_of(words))


def _words_of(words: IO[bytes]) -> str:
    words.seek(0)
    lines = words.read(MOST_BYTES).decode(errors="replace").splitlines()
    return last_line(line for line in lines if "error:" in line) or last_line(lines)
