"""Has bcc compile and load the recorder, and hands its descriptors to the process that asked.

This file is run by the interpreter that bcc is installed for, which may be an older one without any
package of Temper's. So it imports nothing but the standard library and bcc. It ends before the
recording: the kernel keeps what the passed descriptors refer to.
"""

import array
import importlib
import json
import socket
import sys
from typing import Any

MAPS = ("events", "nested", "rings", "names", "name_rings", "is_open")
TRACE_POINTS = {
    "on_fork": "sched_process_fork",
    "on_exec": "sched_process_exec",
    "on_rename": "task_rename",
    "on_exit": "sched_process_exit",
    "on_switch": "sched_switch",
    "on_waking": "sched_waking",
    "on_migration": "sched_migrate_task",
    "on_interrupt": "irq_handler_entry",
    "after_interrupt": "irq_handler_exit",
    "on_softirq": "softirq_entry",
    "after_softirq": "softirq_exit",
}


class NotUsableError(Exception):
    """Why bcc cannot be used."""


def import_bcc() -> Any:  # noqa: ANN401 - a module of the other interpreter
    """Return the module. Raise NotUsableError if it is missing, or another of that name."""
    try:
        bcc = importlib.import_module("bcc")
    except ImportError as error:
        if error.name == "bcc":
            raise NotUsableError(f"python3-bpfcc is not installed for {sys.executable}") from error
        raise NotUsableError(f"{sys.executable}: {error}") from error
    except OSError as error:  # its library
        raise NotUsableError(str(error)) from error
    if not hasattr(bcc, "BPF"):
        raise NotUsableError(
            f"{getattr(bcc, '__file__', 'bcc')} is another package of the name bcc; "
            "install python3-bpfcc"
        )
    return bcc


def loaded(order: dict[str, Any]) -> tuple[Any, dict[str, int]]:
    """Compile, load and attach. Return the object, which holds all, and its descriptors by name."""
    bcc = import_bcc()
    try:
        bpf = bcc.BPF(text=order["text"].encode(), cflags=order["flags"])
        descriptors = {name: bpf[name.encode()].map_fd for name in MAPS}
        for program, point in TRACE_POINTS.items():
            bpf.load_func(program.encode(), bcc.BPF.RAW_TRACEPOINT)
            bpf.attach_raw_tracepoint(tp=point.encode(), fn_name=program.encode())
            descriptors[program] = bpf.raw_tracepoint_fds[point.encode()]
    except Exception as error:  # bcc raises the class itself
        raise NotUsableError(f"bcc: {error}") from error
    return bpf, descriptors


def main() -> None:
    """Answer on the socket that is standard input."""
    with socket.socket(fileno=0) as asker, asker.makefile("rb") as asked:
        order = json.loads(asked.readline())
        try:
            _held, descriptors = loaded(order)
        except NotUsableError as error:
            answer: dict[str, Any] = {"error": str(error)}
            descriptors = {}
        else:
            answer = {"names": list(descriptors)}
        numbers = array.array("i", descriptors.values())
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)] if descriptors else []
        asker.sendmsg([json.dumps(answer).encode() + b"\n"], control)


if __name__ == "__main__":
    main()
