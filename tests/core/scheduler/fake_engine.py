"""A small stand-in for scx_layered and for what the kernel does when it attaches and dies.

It reads the script named by FAKE_SCRIPT at its start, writes a fake sched_ext directory
(FAKE_KERNEL) and speaks the statistics protocol on a Unix socket (FAKE_STATS). As the engine does,
it reads the kernel's state when it has loaded, which is where a gate holds it. A forked watcher
plays the kernel: when the engine is gone, however it went, the state falls back to disabled.
FAKE_STATE is a second name of the state file, which no gate lies over.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
from pathlib import Path

VERSION = "scx_layered 1.1.4 x86_64-unknown-linux-gnu"
OPS = "layered_1.1.4_x86_64_unknown_linux_gnu"


class FakeKernel:
    """The files of /sys/kernel/sched_ext, each replaced as a whole, but the state for its names."""

    def __init__(self, root: Path, state: Path) -> None:
        self.root = root
        self.state = state

    def say(self, word: str) -> None:
        descriptor = os.open(self.state, os.O_WRONLY)
        os.pwrite(descriptor, f"{word:<15}\n".encode(), 0)
        os.close(descriptor)

    def put(self, name: str, value: object) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}")
        beside.write_text(f"{value}\n")
        beside.replace(path)

    @property
    def owner(self) -> Path:
        return self.state.with_name("owner")

    def enable(self, ops: str = OPS) -> None:
        # First of all and at once: from here on the watcher puts right what a kill leaves.
        beside = self.owner.with_name(f"owner.{os.getpid()}")
        beside.write_text(str(os.getpid()))
        beside.replace(self.owner)
        self.say("enabling")
        self.put("root/ops", ops)
        self.put("switch_all", 1)
        self.say("enabled")
        self.put("enable_seq", int((self.root / "enable_seq").read_text()) + 1)

    def disable(self, pid: int) -> None:
        """Take out the scheduler of that process, if it is the one that is in."""
        if self.owner.exists() and self.owner.read_text() == str(pid):
            self.say("disabling")
            shutil.rmtree(self.root / "root", ignore_errors=True)
            self.owner.unlink()  # late: what kills the engine before leaves it to the watcher
            self.say("disabled")


def watch(kernel: FakeKernel) -> None:
    """Fork the kernel's part: wait for the engine's end of a pipe to close, then disable."""
    engine = os.getpid()
    reading, writing = os.pipe()
    os.set_inheritable(writing, False)
    if os.fork():
        os.close(reading)
        return
    os.setsid()
    os.close(writing)
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    os.read(reading, 1)
    kernel.disable(engine)
    os._exit(0)


class Statistics:
    """Answers on the socket as the script says."""

    def __init__(self, path: str, layers: list[str], manner: str, garble: Path) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).unlink(missing_ok=True)
        self.manner = manner
        self.garble = garble
        tables = {name: {"index": n, "cpus": [1 << n]} for n, name in enumerate(layers)}
        self.answer = {"errno": 0, "args": {"resp": {"at": 1.0, "layers": tables}}}
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listening.bind(path)
        self.listening.listen(4)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            connection, _ = self.listening.accept()
            threading.Thread(target=self.converse, args=(connection,), daemon=True).start()

    def converse(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            for _ in connection.makefile("rb"):
                if self.manner == "garbage" or self.garble.exists():
                    connection.sendall(b"\xff{not json\n")
                elif self.manner == "answer":
                    connection.sendall(json.dumps(self.answer).encode() + b"\n")


def load(script: dict, layers: list[str]) -> None:
    """Do what a start may do instead of attaching."""
    if script.get("chatty_bytes"):
        for stream in (sys.stdout, sys.stderr):
            stream.write("x" * int(script["chatty_bytes"]))
            stream.flush()
    while Path(script["hold"]).exists():
        time.sleep(0.005)
    condemned = script.get("die_if_layer")
    if "die" in script and (condemned is None or condemned in layers):
        sys.stderr.write(script["die"])
        sys.stderr.flush()
        os._exit(script.get("exit", 1))
    while script.get("hang"):
        time.sleep(1)


def pass_gate(kernel: FakeKernel) -> None:
    """Look whether another scheduler is there, as the engine does just before it attaches."""
    if (kernel.root / "state").read_text().strip() == "enabled":
        sys.stderr.write("Error: another sched_ext scheduler is already running\n")
        sys.stderr.flush()
        os._exit(1)


def fail_after_the_gate(script: dict, layers: list[str]) -> None:
    """Do what an attach may do instead of succeeding."""
    if script.get("attach_if_layer", layers[0]) not in layers:
        return
    if "attach_die" in script:
        sys.stderr.write(script["attach_die"])
        sys.stderr.flush()
        os._exit(1)
    time.sleep(script.get("attach_hang_s", 0))
    while script.get("attach_hang"):
        time.sleep(1)


def schedule(script: dict, kernel: FakeKernel) -> None:
    """Run until a signal, or until the script's trigger file tells to be ejected."""
    stopped: list[bool] = []  # an Event would wait for its own lock, if a signal comes in its wait
    action = signal.SIG_IGN if script.get("ignore_term") else lambda *_: stopped.append(True)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, action)
    trigger, detach = Path(script["trigger"]), Path(script["detach"])
    while not stopped:
        if trigger.exists():
            kernel.disable(os.getpid())
            sys.stderr.write(trigger.read_text())
            sys.stderr.flush()
            os._exit(script.get("trigger_exit", 1))
        if detach.exists():
            kernel.disable(os.getpid())
            sys.stderr.write(detach.read_text())
            sys.stderr.flush()
            detach.unlink()
            time.sleep(script.get("detached_s", 0.2))
            pass_gate(kernel)
            kernel.enable()
        time.sleep(0.01)
    time.sleep(script.get("stop_s", 0))
    kernel.disable(os.getpid())
    time.sleep(script.get("report_s", 0))
    sys.stderr.write("EXIT: unregistered from user space\n")
    sys.stderr.flush()
    time.sleep(script.get("linger_s", 0))


def main(arguments: list[str]) -> None:
    if "--version" in arguments:
        sys.stdout.write(f"{VERSION}\n")
        return
    script = json.loads(Path(os.environ["FAKE_SCRIPT"]).read_text())
    config = json.loads(Path(arguments[-1].removeprefix("f:")).read_text())
    layers = [layer["name"] for layer in config]
    told = {"pid": os.getpid(), "environment": dict(os.environ), "arguments": arguments}
    beside = Path(f"{script['started']}.{os.getpid()}")
    beside.write_text(json.dumps(told))
    beside.replace(script["started"])
    kernel = FakeKernel(Path(os.environ["FAKE_KERNEL"]), Path(os.environ["FAKE_STATE"]))
    load(script, layers)
    pass_gate(kernel)
    fail_after_the_gate(script, layers)
    if not script.get("keep_attached"):
        watch(kernel)
    is_garbled = script.get("garbage_if_layer", layers[0]) in layers
    manner = script.get("stats", "answer") if is_garbled else "answer"
    names, garble = script.get("names", layers), Path(script["garble"])
    Statistics(os.environ["FAKE_STATS"], names, manner, garble)
    kernel.enable(script.get("ops", OPS))
    schedule(script, kernel)


if __name__ == "__main__":
    main(sys.argv[1:])
