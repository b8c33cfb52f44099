"""The power of NVIDIA's GPUs, as nvidia-smi prints it."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from math import isfinite

from attrs import frozen

PROGRAM = "nvidia-smi"
ARGUMENTS = ("--query-gpu=index,power.draw,power.limit", "--format=csv,noheader,nounits")
LONGEST_S = 3.0
MOST_GPUS = 64
LARGEST_ANSWER = 64 * 1024
COLUMNS = 3
NOT_HERE = "nvidia-smi is not installed"


@frozen
class Gpu:
    """A GPU in watts. None is not known."""

    index: int
    watts: float | None
    limit_watts: float | None


class GpuReader:
    """Asks *program* now and then, and never waits for it.

    ``problem`` is why there are no readings.
    """

    def __init__(self, interval_s: float, find: Callable[[str], str | None] = shutil.which) -> None:
        self._interval_s = interval_s
        self._program = find(PROGRAM)
        self._running: subprocess.Popen[bytes] | None = None
        self._began_s = -interval_s
        self.gpus: tuple[Gpu, ...] = ()
        self.problem = "" if self._program else NOT_HERE

    def turn(self, now_s: float) -> None:
        """Take an answer, end a program that takes too long, or start it. Clock: monotonic."""
        if self._running is not None:
            self._take(now_s)
        elif self._program and now_s - self._began_s >= self._interval_s:
            self._start(self._program, now_s)

    def close(self) -> None:
        """End the program."""
        if self._running is not None:
            self._running.kill()
            with suppress(subprocess.TimeoutExpired):
                self._running.wait(1)
            self._close_pipe(self._running)

    def _start(self, program: str, now_s: float) -> None:
        self._began_s = now_s
        try:
            self._running = subprocess.Popen(  # noqa: S603 - a fixed program, without a shell
                (program, *ARGUMENTS),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            )
        except OSError as error:
            self._fail(f"{program}: {error.strerror}")

    def _take(self, now_s: float) -> None:
        running = self._running
        if running is None:
            return
        if running.poll() is None:
            if now_s - self._began_s > LONGEST_S:
                running.kill()
                self._fail(f"{PROGRAM} has not answered within {LONGEST_S:.0f} s")
            return
        self._running = None
        answer = self._answer(running)
        if running.returncode:
            self._fail(f"{PROGRAM} ended with {running.returncode}")
            return
        self.gpus = tuple(read_gpus(answer))
        self.problem = "" if self.gpus else f"{PROGRAM} names no GPU"

    def _answer(self, ended: subprocess.Popen[bytes]) -> str:
        content = b""
        if ended.stdout is not None:
            # A child of the program may hold the pipe open.
            os.set_blocking(ended.stdout.fileno(), False)
            with suppress(BlockingIOError):
                content = os.read(ended.stdout.fileno(), LARGEST_ANSWER)
        self._close_pipe(ended)
        return content.decode(errors="replace")

    def _fail(self, problem: str) -> None:
        self.gpus, self.problem = (), problem

    @staticmethod
    def _close_pipe(ended: subprocess.Popen[bytes]) -> None:
        if ended.stdout is not None:
            ended.stdout.close()


def read_gpus(text: str) -> Iterator[Gpu]:
    """Yield the GPUs of an answer. A line that is not one is skipped."""
    for line in text.splitlines()[:MOST_GPUS]:
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == COLUMNS and cells[0].isascii() and cells[0].isdigit():
            yield Gpu(int(cells[0][:4]), _watts(cells[1]), _watts(cells[2]))


def _watts(cell: str) -> float | None:
    try:
        watts = float(cell)
    except ValueError:
        return None
    return watts if isfinite(watts) and watts >= 0 else None
