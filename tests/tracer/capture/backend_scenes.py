"""Scenes of the recorders, run in a process of its own: ``python -m ... SCENE [ARGUMENT ...]``.

``scenes.scene`` starts it, and reads what it prints: what the scene has seen, as JSON.
"""

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import numpy as np

from temper_core import BpfError, remove_tracing_instances, tracefs_mounts
from temper_core.bpf.system_call import call
from temper_core.testing import MadeContext
from temper_plugin_tracer.capture.backends import OPENERS
from temper_plugin_tracer.capture.bpf_recorder import BpfRecorder
from temper_plugin_tracer.capture.captures import Captures
from temper_plugin_tracer.capture.checks import bcc_check, perfetto_check, tracefs_check
from temper_plugin_tracer.capture.kernel_layout import names_of
from temper_plugin_tracer.capture.near_events import is_about
from temper_plugin_tracer.capture.recording import boot_ns
from temper_plugin_tracer.capture.request import TraceRequest
from temper_plugin_tracer.capture.selection import Selection
from temper_plugin_tracer.capture.tracefs.instance import TracingInstance
from temper_plugin_tracer.trace.events import Kind
from temper_plugin_tracer.trace.perfetto.reader import PerfettoTrace
from tests.tracer.capture.conftest import (
    SLEEPER,
    SPIN,
    has_attached,
    hidden_threads,
    merged,
    merged_blocks,
    run_of,
    schedstat,
)

ROUNDS = 200
MIB = 1024 * 1024
KIB_OF_A_SMALL_BUFFER, BITS_OF_A_SMALL_RING = 8, 6
LOADING_S, FREEING_S = 300, 60
"""In an emulator bcc compiles for 80 s."""
NEXT_PROGRAM = 11
"""BPF_PROG_GET_NEXT_ID."""
RENAMER = "open('/proc/self/comm', 'w').write('renamed-once')"


@contextmanager
def thread(script, *arguments):
    """Yield a process of one thread that has begun."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdout.readline()
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def work(process, rounds=ROUNDS):
    """Have a sleeper sleep and work as often."""
    process.stdin.write(f"{rounds}\n")
    process.stdin.flush()
    process.stdout.readline()
    time.sleep(0.05)  # it is asleep again, at its standard input


def agreement(*backends):
    """Record one load by several recorders at once, and by schedstat."""
    return agree({name: OPENERS[name] for name in backends}, Selection)


def selection(*backends):
    """Do so for a selected process only."""
    return agree(
        {name: OPENERS[name] for name in backends},
        lambda process: Selection("a process", processes=(process.pid,)),
    )


def plain_object():
    """Hold the BPF object for kernels before 6.7 against schedstat."""
    return agree(
        {"plain": lambda chosen: BpfRecorder.open(chosen, objects=("recorder_plain",))}, Selection
    )


def agree(openers, select):
    cpu = min(os.sched_getaffinity(0))
    with thread(SLEEPER, cpu) as sleeper, thread(SPIN, cpu), ExitStack() as opened:
        chosen = Selection() if select is Selection else select(sleeper)
        recorders = {n: opened.enter_context(each(chosen)) for n, each in openers.items()}
        drains = {name: [] for name in recorders}

        def drain():
            for name, recorder in recorders.items():
                drains[name].append(recorder.drain())

        for recorder in recorders.values():
            recorder.begin()
        drain()
        began_ns = boot_ns()
        before = schedstat(sleeper.pid)
        work(sleeper)
        after = schedstat(sleeper.pid)
        child = subprocess.Popen([sys.executable, "-S", "-c", RENAMER])
        child.wait()
        time_ns = began_ns, boot_ns()
        for recorder in recorders.values():
            recorder.end()
        drain()
        seen = {
            n: seen_by(recorders[n], drains[n], (sleeper.pid, child.pid), time_ns)
            for n in recorders
        }
        return {
            "kernel": {"runs": after[2] - before[2], "run_ns": after[0] - before[0]},
            "selected": [] if chosen.is_whole_node else [sleeper.pid],
            "seen": seen,
        }


def seen_by(recorder, drains, tids, time_ns):
    """Return what a recorder has seen of two threads, and of all while every recorder recorded."""
    events, (tid, child) = merged(drains), tids
    known = dict(name for drained in drains for name in names_of(drained.names))
    own = events[(events["kind"] == Kind.WAKING) & (events["next"] == tid)]
    return seen_in(events, tid, time_ns) | {
        "tgids": sorted(set(own["tgid"].tolist())),
        "is_in_order": bool((np.diff(events["ns"].astype(np.int64)) >= 0).all()),
        "lost": recorder.losses().count,
        "sleeper": known.get(tid),
        "child": known.get(child),
        "selected": selected_in(drains),
        "is_child_seen": bool((events["next"] == child).any()),
    }


def selected_in(drains):
    """Return the ids of the threads that are noted as selected."""
    noted = (drained.names for drained in drains)
    return sorted({int(tid) for names in noted for tid in names["tid"][names["is_selected"] > 0]})


def seen_in(events, tid, time_ns):
    """Return the runs of a thread, and the number of all events of a time by kind."""
    common = events[(events["ns"] >= time_ns[0]) & (events["ns"] < time_ns[1])]
    runs, run_ns = run_of(events, tid)
    kinds = {Kind(kind).name: int((common["kind"] == kind).sum()) for kind in Kind}
    left = common[(common["kind"] == Kind.SWITCH) & (common["prev"] == tid)]
    woken = common[(common["kind"] == Kind.WAKING) & (common["next"] == tid)]
    woken = woken[~np.isin(woken["prev"], hidden_threads())]
    return {
        "runs": runs,
        "run_ns": run_ns,
        "kinds": kinds,
        "states": {str(state): count for state, count in Counter(left["state"].tolist()).items()},
        "woken_by": sorted(Counter(woken["prev"].tolist()).items()),
        "woken_on": sorted(set(woken["target"].tolist())),
        "prios": sorted(set(woken["prio"].tolist())),
    }


SMALL = {
    "tracefs": {"buffer_kib": KIB_OF_A_SMALL_BUFFER},
    "bcc": {"bits": BITS_OF_A_SMALL_RING},
}


def losses(backend):
    """Record a storm into small buffers, beside a recorder that loses nothing."""
    cpu = min(os.sched_getaffinity(0))
    with (
        thread(SLEEPER, cpu) as sleeper,
        OPENERS[backend](Selection(cpus=(cpu,)), **SMALL[backend]) as small,
        BpfRecorder.open(Selection(cpus=(cpu,))) as whole,
    ):
        whole.begin()
        small.begin()
        began_ns = boot_ns()
        work(sleeper, 5 * ROUNDS)
        ended_ns = boot_ns()
        small.end()
        whole.end()
        kept, every = merged([small.drain()]), merged([whole.drain()])
        every = every[(every["ns"] >= began_ns) & (every["ns"] < ended_ns)]
        lost = small.losses()
        return {
            "kept": len(kept),
            "every": len(every),
            "lost_by_cpu": dict(lost.by_cpu),
            "lost_by_other": whole.losses().count,
            "cpu": cpu,
            "of_others": int((~is_about(kept, (cpu,))).sum()),
        }


def killed():
    """Kill a process that records, and look at what is left of its instance."""
    script = (
        "import time; from temper_plugin_tracer.capture.tracefs.recorder import TracefsRecorder\n"
        "from temper_plugin_tracer.capture.selection import Selection\n"
        "recorder = TracefsRecorder.open(Selection()); recorder.begin()\n"
        "print(recorder._instance.path, flush=True); time.sleep(600)\n"
    )
    with (
        TracingInstance.make() as live,
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as one,
    ):
        path = Path(one.stdout.readline().strip())
        seen = {"while_alive": str(path) in removed(), "is_on": on(path), "kib": size(path)}
        one.send_signal(signal.SIGKILL)
        one.wait()
        seen |= {"is_on_after": on(path), "kib_after": size(path)}
        seen["would_remove"] = str(path) in remove_tracing_instances(is_dry=True).removed
        with TracingInstance.make():
            seen["is_left"] = path.exists()
        seen["is_live_left"] = live.path.exists() and str(live.path) not in removed()
    return seen | {"is_own_left": live.path.exists()}


def removed():
    return remove_tracing_instances().removed


def on(path):
    return (path / "tracing_on").read_text().strip() == "1"


def size(path):
    return int((path / "buffer_size_kb").read_text().split()[0])


def captured(folder, backend, capabilities="", **request):
    """Capture as an agent does, without some capabilities, and read the trace."""
    if capabilities:
        again = ["captured", folder, backend]
        dropped = ",".join(f"-{name}" for name in capabilities.split(","))
        command = ["setpriv", f"--bounding-set={dropped}", sys.executable, "-m", __spec__.name]
        return json.loads(subprocess.run([*command, *again], check=True, stdout=-1).stdout)
    with context(folder) as captures:
        entry = captures.begin(TraceRequest(seconds=0.5, backend=backend, **request), "a test")
        pid = captures.running.helper.pid
        entry = ended(captures, entry["id"])
        if entry["state"] == "finished":
            entry["read"] = read(captures.trace(entry["id"]))
        return entry | {"left": left(captures, pid)}


def killed_helper(folder, backend):
    """Kill the helper of a capture, and look at what is left."""
    before = programs()
    with context(folder) as captures:
        entry = captures.begin(TraceRequest(seconds=30, backend=backend), "a test")
        pid = captures.running.helper.pid
        wait_for(lambda: instances(pid) or has_attached(pid), LOADING_S)
        during = {"instances": len(instances(pid)), "programs": programs() - before}
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)
        entry = ended(captures, entry["id"])
        seen = {"during": during, "state": entry["state"], "left": left(captures, pid)}
    with suppress(TimeoutError):  # the kernel frees them a moment later
        wait_for(lambda: programs() <= before, FREEING_S)
    return seen | {"programs_left": programs() - before}


def whole_node(folder):
    """Have Perfetto record beside the BPF recorder, and hold both against schedstat."""
    cpu = min(os.sched_getaffinity(0))
    with (
        thread(SLEEPER, cpu) as sleeper,
        thread(SPIN, cpu),
        BpfRecorder.open(Selection()) as whole,
        context(folder) as captures,
    ):
        entry = captures.begin(TraceRequest(seconds=30, backend="perfetto"), "a test")
        pid = captures.running.helper.pid
        wait_for(lambda: any(map(records, instances(pid))), LOADING_S)
        others = reached_by_others()
        whole.begin()
        drains, began_ns, before = [whole.drain()], boot_ns(), schedstat(sleeper.pid)
        work(sleeper)
        after, time_ns = schedstat(sleeper.pid), (began_ns, boot_ns())
        whole.end()
        captures.end(entry["id"], "a test")
        drains.append(whole.drain())
        entry = ended(captures, entry["id"])
        seen = {"bpf": seen_in(merged(drains), sleeper.pid, time_ns)}
        if entry["state"] == "finished":
            trace = PerfettoTrace(captures.trace(entry["id"]))
            seen["perfetto"] = seen_in(merged_blocks(trace), sleeper.pid, time_ns)
        kernel = {"runs": after[2] - before[2], "run_ns": after[0] - before[0]}
        found = {"entry": entry, "seen": seen, "kernel": kernel, "left": left(captures, pid)}
        return found | {"others": others}


def reached_by_others():
    """Return the outcome of connect(2) by another user, for each socket of Perfetto's services."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    names = {line.split()[-1] for line in lines if "temper-" in line}
    program = (
        "import os, socket, sys\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "for name in sys.argv[1:]:\n"
        "    address = '\\0' + name[1:] if name[0] == '@' else name\n"
        "    print(socket.socket(socket.AF_UNIX).connect_ex(address))\n"
    )
    asked = subprocess.run(
        [sys.executable, "-c", program, *names], capture_output=True, text=True, check=True
    )
    return dict(zip(names, map(int, asked.stdout.split()), strict=True))


def records(instance):
    """Return whether an instance records the switches."""
    try:
        enabled = Path(instance, "events/sched/sched_switch/enable").read_text().strip()
        return on(Path(instance)) and enabled == "1"
    except OSError:  # it is being made
        return False


def wait_for(question, seconds):
    """Ask *question* until it is true. Raise TimeoutError if it is not in time."""
    deadline = time.monotonic() + seconds
    while not question():
        if time.monotonic() >= deadline:
            raise TimeoutError
        time.sleep(0.05)


def programs():
    """Return how many BPF programs the kernel has, of all processes."""
    count, last = 0, 0
    while True:
        try:
            _, answer = call(NEXT_PROGRAM, struct.pack("<III", last, 0, 0), "no next program")
        except BpfError:
            return count
        count, last = count + 1, struct.unpack("<III", answer)[1]


@contextmanager
def context(folder):
    made = MadeContext(folder=Path(folder), with_processes=True, state_limit_bytes=264 * MIB)
    captures = Captures(made, lock_directory=Path(folder) / "run", free_bytes=0)
    try:
        yield captures
    finally:
        captures.close()
        made.close()


def ended(captures, capture):
    deadline = time.monotonic() + 300
    while captures.is_running(capture):
        assert time.monotonic() < deadline, captures.documents()
        time.sleep(0.05)
    return next(entry for entry in captures.documents() if entry["id"] == capture)


def read(path):
    trace = PerfettoTrace(path)
    events = sum(len(block) for block in trace.blocks())
    return {"events": events, "threads": len(trace.threads), "cut": trace.cut}


def left(captures, pid):
    captures.files.disk.ask(lambda: None)  # it has removed the notes
    names = sorted(path.name for path in captures.store.directory.iterdir())
    return {"files": names, "instances": instances(pid), "processes": children()}


def instances(pid):
    return [
        str(path)
        for mount in tracefs_mounts()[:1]
        for path in (mount / "instances").glob(f"temper-{pid}-*")
    ]


def children():
    """Return the names of this process's descendants that still run."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        pids = (task / "children").read_text().split()
        found += [Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids]
    return found


def checks():
    """Return what ``temper doctor`` says of the backends that need a mount or a package."""
    made = {"tracefs": tracefs_check(), "bcc": bcc_check(), "perfetto": perfetto_check()}
    return {name: [str(check.state), check.detail] for name, check in made.items()}


SCENES = (
    agreement,
    selection,
    plain_object,
    losses,
    whole_node,
    killed,
    captured,
    killed_helper,
    checks,
)

if __name__ == "__main__":
    scene = next(each for each in SCENES if each.__name__ == sys.argv[1])
    # A capture logs to standard output.
    output = os.dup(1)
    os.dup2(2, 1)
    seen = scene(*sys.argv[2:])
    os.write(output, json.dumps(seen).encode())
