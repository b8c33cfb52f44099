"""The virtual machine of a real node, as the processes of this machine see it."""

import subprocess
import time
from contextlib import suppress
from pathlib import Path

LOOK_S = 1.0


class GuestDied(Exception):  # noqa: N818 - reads as the fact it reports
    """The node's virtual machine has ended; nothing that is asked of the node will be answered."""


class Guest:
    """The virtual machine that ``kube/node-up`` booted in a directory."""

    def __init__(self, directory):
        self._directory = directory
        self._death = ""

    def run(self, command, given=None, timeout=300, environment=None):
        """Run a command that needs the node; return it ended, or raise GuestDied at once."""
        self._must_live()
        with subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                printed, complained = self._communicate(process, given, timeout)
            except BaseException:
                process.kill()
                raise
        return subprocess.CompletedProcess(command, process.returncode, printed, complained)

    def _communicate(self, process, given, timeout):
        deadline = time.monotonic() + timeout
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.communicate(given, timeout=LOOK_S)
            given = None  # it has been taken over, and is written on
            self._must_live()
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(process.args, timeout)

    def _must_live(self):
        """Raise with the console's last lines, or where they were printed already with one line."""
        if self._death:
            raise GuestDied(f"the node's guest died in an earlier test: {self._death}")
        if self._is_alive():
            return
        lines = (self._directory / "node.log").read_text(errors="replace").splitlines()
        self._death = next((line for line in lines if "the guest died" in line), "without a word")
        raise GuestDied("\n".join(["the node's guest died:", *lines]))

    def _is_alive(self):
        with suppress(OSError):
            pid = (self._directory / "node.pid").read_text().strip()
            return str(self._directory).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
        return False
