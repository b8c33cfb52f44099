"""Runs in the guest as root: ``python tests/kernel/recognition --engine PATH``.

Containers begin their program below an init, or after a while. The time is taken from the exec of
the program until the agent's plan has the profile of the program for the container.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "profiles"))
sys.path.insert(0, str(Path(__file__).parents[3] / "examples/demo"))

import agent as demo_agent
import kernel
from outcomes import Report

CGROUPS = Path("/sys/fs/cgroup")
PROFILES = demo_agent.DIRECTORY / "profiles"
PROGRAM = demo_agent.DIRECTORY / "mysqld"
RECOGNISED_S = 2.0
GIVEN_UP_S = 60.0
LOOK_S = 0.05
QUIET_S = 60.0
PROFILE = "of-mysqld"
PROFILE_FILE = f"""
schema_version = 1
id = "{PROFILE}"
[fingerprint]
processes = ["mysqld"]
[[thread_groups]]
name = "rest"
treatment = "normal"
"""
SETTINGS = """
[scheduler]
engine = "{engine}"
start_deadline_s = 240.0

[pods]
source = "local"
units = false

[profiles]
directory = "{profiles}"

[server]
listen = "{address}"
"""
ENTER = 'echo $$ > "$0/cgroup.procs"; exec "$@"'
NOTED = 'read now rest < /proc/uptime; echo $now > "$NOTE"; '
LATE = f'sleep "$1"; {NOTED}exec "$0" 900'
CHILD = f'sleep "$1"; {NOTED}"$0" 900; exit'
SAFE = f'#!/bin/sh\nsleep "$1"\nwhile :; do {NOTED}{PROGRAM} 900; done\n'
INITS = {"tini": ["-s", "--"], "dumb-init": [], "catatonit": ["--"]}


@dataclass
class Container:
    """One container, by its command. Its shell notes the moment at which the program begins."""

    name: str
    number: int
    command: list[str | Path]
    program: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def key(self) -> str:
        """The name of the pod that the agent makes of it."""
        return f"docker-{self._id[:12]}"

    @property
    def note(self) -> Path:
        """The file with the seconds since the boot at which the program began."""
        return demo_agent.DIRECTORY / f"{self.name}.began"

    def start(self) -> None:
        """Make the cgroup, and start the command in it."""
        cgroup = CGROUPS / f"docker-{self._id}.scope"
        cgroup.mkdir()
        self.program = subprocess.Popen(
            ["/bin/sh", "-c", ENTER, cgroup, *self.command],
            env={"PATH": "/usr/bin:/bin", "NOTE": str(self.note)},
        )

    def end(self) -> None:
        """Kill all that is in it."""
        (CGROUPS / f"docker-{self._id}.scope" / "cgroup.kill").write_text("1")
        if self.program is not None:
            self.program.wait()

    @property
    def _id(self) -> str:
        return f"{self.number:012x}" + "0" * 52


def late(after_s: int) -> list[str | Path]:
    """Return the command of a shell that executes the program after a while."""
    return ["/bin/sh", "-c", LATE, PROGRAM, str(after_s)]


def below_inits() -> Iterator[tuple[str, list[str | Path]]]:
    """Yield the commands of containers whose first process stays an init, by name."""
    safe = demo_agent.DIRECTORY / "mysqld_safe"
    safe.write_text(SAFE)
    safe.chmod(0o755)
    yield "mysqld_safe", [safe, "4"]
    yield "shell", ["/bin/sh", "-c", CHILD, PROGRAM, "4"]
    for init, options in INITS.items():
        if (path := shutil.which(init)) is not None:
            yield init, [path, *options, *late(4)]


def recognised_after_s(agent: demo_agent.Agent, container: Container) -> float:
    """Return the seconds from the exec of the program to its profile, or raise NotInTime."""
    kernel.wait_until(f"{container.name} begins", container.note.exists, GIVEN_UP_S * 4)

    def is_recognised() -> bool:
        time.sleep(LOOK_S)
        return agent.ask(f"/explain?pod={container.key}").get("profile") == PROFILE

    kernel.wait_until(f"{container.name} is recognised", is_recognised, GIVEN_UP_S)
    return time.clock_gettime(time.CLOCK_BOOTTIME) - float(container.note.read_text())


def walk(engine: Path, report: Report) -> None:
    """Start one container after the other, and judge how soon its program is recognised."""
    PROFILES.mkdir(parents=True)
    (PROFILES / "of-mysqld.toml").write_text(PROFILE_FILE)
    shutil.copy(shutil.which("sleep") or "/bin/sleep", PROGRAM)
    given = {"profiles": PROFILES, "address": demo_agent.ADDRESS}
    demo_agent.SETTINGS.write_text(SETTINGS.format(engine=json.dumps(str(engine))[1:-1], **given))
    agent = demo_agent.Agent()
    mode = agent.wait_for("enforcing")["steering"]["mode"]
    report.claim("enforcing", mode == "hints", mode)
    execs = [(f"exec_{after_s}", late(after_s)) for after_s in (4, 30, 100)]
    for number, (name, command) in enumerate([*execs, *below_inits()], start=1):
        container = Container(name, number, command)
        container.start()
        took_s = recognised_after_s(agent, container)
        report.claim(name, took_s <= RECOGNISED_S, f"{took_s:.2f} s after its exec")
        container.end()
    before = agent.ask("/observe")["overhead"]
    time.sleep(QUIET_S)
    report.tell(f"overhead while nothing executes: {before}, {agent.ask('/observe')['overhead']}")
    agent.stop()


def main() -> None:
    """Walk; exit with 1 where something was not as claimed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", type=Path, required=True)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    report = Report(options.report)
    try:
        walk(options.engine, report)
    except kernel.NotInTime as missed:
        report.claim("in_time", False, str(missed))
        sys.stdout.write(demo_agent.last_words() + "\n")
    sys.exit(1 if report.failed else 0)


main()
