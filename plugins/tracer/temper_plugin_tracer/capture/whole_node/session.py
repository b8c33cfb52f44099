"""A session of Perfetto: its services, and the client that records."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

from attrs import define, field

from temper_core import MachineError
from temper_plugin_tracer.capture.bounds import Bounds, Ending
from temper_plugin_tracer.capture.children import end_with_parent, last_line
from temper_plugin_tracer.capture.tracefs.instance import TracingInstance
from temper_plugin_tracer.capture.whole_node.programs import Programs
from temper_plugin_tracer.capture.whole_node.socket_directory import (
    make_socket_directory,
    remove_socket_directory,
)

EVENTS = (
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_migrate_task",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
    "task/task_newtask",
    "task/task_rename",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
)
KIB = 1024
SHARE_OF_BYTES = 0.9
"""Of the bound on bytes. The rest is for what the service adds to the buffer's content."""
KERNEL_BUFFER_KIB = 4096
START_S, POLL_S = 10.0, 0.05
END_S = 30.0
"""How long the client may write its trace after the recording."""
WORDS_BYTES = 4096


def config_of(bounds: Bounds, instance: str) -> str:
    """Return what is recorded, in the text format of Perfetto's configuration."""
    events = " ".join(f'ftrace_events: "{event}"' for event in EVENTS)
    return f"""
buffers {{ size_kb: {int(bounds.bytes * SHARE_OF_BYTES) // KIB} fill_policy: DISCARD }}
data_sources {{ config {{ name: "linux.ftrace" ftrace_config {{
  instance_name: "{instance}" {events}
  compact_sched {{ enabled: true }} buffer_size_kb: {KERNEL_BUFFER_KIB} drain_period_ms: 100
}} }} }}
data_sources {{ config {{ name: "linux.process_stats"
  process_stats_config {{ scan_all_processes_on_start: true }}
}} }}
data_sources {{ config {{ name: "linux.system_info" }} }}
duration_ms: {max(1, int(bounds.seconds * 1000))}
"""


@define(eq=False)
class Session:
    """The services, with sockets that only this user reaches. They end with this process."""

    _programs: Programs
    _instance: TracingInstance
    _sockets: Path = field(factory=make_socket_directory)
    _children: list["subprocess.Popen[bytes]"] = field(factory=list)
    _words: IO[bytes] = field(factory=tempfile.TemporaryFile)

    def start(self) -> None:
        """Start the services, and wait until they can record. Raises MachineError."""
        for program in ("traced", "traced_probes"):
            self._run(program)
        deadline = time.monotonic() + START_S
        while not self._is_ready():
            if time.monotonic() >= deadline:
                raise MachineError(f"perfetto's services do not start{self._last_words()}")
            time.sleep(POLL_S)

    def record(
        self, bounds: Bounds, into: int, asked_ending: Callable[[], Ending | None]
    ) -> Ending:
        """Record into the file *into*. Raises MachineError."""
        config = config_of(bounds, self._instance.path.name)
        client = self._run("perfetto", "--txt", "-c", "-", "-o", "-", output=into, words=config)
        ending, deadline = Ending.SECONDS, time.monotonic() + bounds.seconds + END_S
        while client.poll() is None:
            if time.monotonic() >= deadline:
                raise MachineError(f"perfetto does not end{self._last_words()}")
            asked = asked_ending() if ending is Ending.SECONDS else None
            if asked is not None:
                ending, deadline = asked, time.monotonic() + END_S
                client.send_signal(signal.SIGINT)
            time.sleep(POLL_S)
        if client.returncode:
            raise MachineError(f"perfetto failed{self._last_words()}")
        return ending

    def close(self) -> None:
        """End the services."""
        for child in reversed(self._children):
            with suppress(OSError):
                child.kill()
            child.wait()
        self._children.clear()
        self._words.close()
        remove_socket_directory(self._sockets)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _is_ready(self) -> bool:
        if any(child.poll() is not None for child in self._children):
            raise MachineError(f"a service of perfetto has ended{self._last_words()}")
        asked = subprocess.run(  # noqa: S603 - a program of the system
            self._programs.command("perfetto", "--query"),
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=START_S,
            check=False,
        )
        return b"linux.ftrace" in asked.stdout + asked.stderr

    def _run(
        self, program: str, *arguments: str, output: int = subprocess.DEVNULL, words: str = ""
    ) -> "subprocess.Popen[bytes]":
        try:
            child = subprocess.Popen(  # noqa: S603 - a program of the system
                self._programs.command(program, *arguments),
                env=self._environment(),
                stdin=subprocess.PIPE if words else subprocess.DEVNULL,
                stdout=output,
                stderr=self._words,
                preexec_fn=end_with_parent,  # noqa: PLW1509 - this process has one thread
            )
        except OSError as error:
            raise MachineError(f"{program}: {error.strerror}") from error
        self._children.append(child)
        if child.stdin is not None:
            with child.stdin as pipe, suppress(BrokenPipeError):
                pipe.write(words.encode())
        return child

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PERFETTO_PRODUCER_SOCK_NAME": str(self._sockets / "producer"),
            "PERFETTO_CONSUMER_SOCK_NAME": str(self._sockets / "consumer"),
        }

    def _last_words(self) -> str:
        size = self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, size - WORDS_BYTES))
        return last_line(self._words.read().decode(errors="replace").splitlines())
