"""A host of a test's own, for real agents and commands that act on all agents of a host.

It has PID, mount and network namespaces, and an empty /run, /var/lib and /etc/temper.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.machine_paths.watch import NOTES
from tests.patience import PATIENCE_S

TEMPER = str(Path(sys.executable).with_name("temper"))
OWN_HOST = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
"""unshare(1), of util-linux."""
EMPTY = (
    "for place in /run /var/lib /etc/temper; do [ ! -d $place ] || mount -t tmpfs none $place; "
    "done; ip link set lo up; "
)
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != NOTES}
"""Without the guard of the machine's own places: these are the host's own."""
OWN_RUN = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "sh")
"""Runs a command with an empty /run of its own: captures lock a file in /run/temper."""
CHILDREN = "/proc/{pid}/task/{pid}/children"
"""Of a kernel with CONFIG_PROC_CHILDREN."""
WAIT = "echo ready; exec cat"


NO_OWN_HOSTS = "making namespaces needs root, util-linux and iproute2"


def has_own_hosts():
    tools = ("unshare", "nsenter", "setpriv", "flock", "ip")
    if not all(map(shutil.which, tools)) or not Path(CHILDREN.format(pid=os.getpid())).exists():
        return False
    made = subprocess.run([*OWN_HOST, "true"], check=False, capture_output=True)
    return made.returncode == 0


class OwnHost:
    """A host on which no other test's agent is visible, for real processes."""

    def __init__(self, folder):
        self.folder = folder
        self.unshare = subprocess.Popen(
            [*OWN_HOST, "sh", "-c", EMPTY + WAIT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.unshare.stdout.readline() == "ready\n"
        self.first = Path(CHILDREN.format(pid=self.unshare.pid)).read_text().split()[0]
        self.processes = Path(f"/proc/{self.first}/ns/pid").readlink()

    def command(self, *words):
        return ["nsenter", f"--target={self.first}", "--mount", "--net", "--pid", *words]

    def temper(self, *arguments):
        command = self.command(TEMPER, *arguments)
        return subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env=ENVIRONMENT,
        )

    def shell(self, script):
        run = subprocess.run(
            self.command("sh", "-c", script), check=True, capture_output=True, text=True
        )
        return run.stdout

    def settings(self, name, more=""):
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        path = folder / "agent.toml"
        path.write_text(
            f'run_directory = "{folder}/run"\nstate_directory = "{folder}/state"\n'
            f"[observe]\nperiod_s = 5.0\n{more or SOCKET_ONLY}"
        )
        return path

    def start(self, settings, *options, under=()):
        """Start an agent, by the command *under* if one is given."""
        command = self.command(*under, TEMPER, "agent", "--observe-only", *options)
        log = settings.with_name("log")
        given = ["--settings", str(settings)] if settings.exists() else []
        with log.open("w") as file:
            process = subprocess.Popen([*command, *given], stderr=file, env=ENVIRONMENT)
        until(lambda: "agent_started" in log.read_text(), log)
        return process

    def pid_of_agent(self):
        """Return the process id of the one agent, as this host has it."""
        [agent] = filter(self._has_agent, Path("/proc").glob("[0-9]*"))
        numbers = (agent / "status").read_text().partition("\nNSpid:")[2].partition("\n")[0]
        return int(numbers.split()[-1])

    def _has_agent(self, process):
        try:
            is_here = (process / "ns/pid").readlink() == self.processes
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:  # it has ended
            return False
        return is_here and words[2:3] == [b"agent"] and words[1].endswith(b"/temper")

    def close(self):
        self.unshare.stdin.close()
        self.unshare.kill()
        self.unshare.wait()
        self.unshare.stdout.close()


SOCKET_ONLY = '[server]\nlisten = ""\n'
TCP_ONLY = '[server]\nsocket = ""\nlisten = "127.0.0.1:0"\n'


def until(condition, log):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
