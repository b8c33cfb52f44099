"""Captures once, as an agent does: FOLDER FREE_BYTES REQUEST [ERRNO].

Prints the helper's process id, then the outcome. With ERRNO the kernel answers bpf(2) with it.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

from temper_core.testing import MadeContext
from temper_plugin_tracer.capture.captures import Captures
from temper_plugin_tracer.capture.request import TraceRequest
from tests.core.observe.kernel_side.refused_bpf import refuse_bpf


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if len(sys.argv) > 4:
    refuse_bpf(int(sys.argv[4]))
folder = Path(sys.argv[1])
context = MadeContext(folder=folder, with_processes=True, state_limit_bytes=264 << 20)
captures = Captures(context, lock_directory=folder / "run", free_bytes=int(sys.argv[2]))
captures.documents()
before = resident()
begun = captures.begin(TraceRequest(**json.loads(sys.argv[3])), "me")
sys.stdout.write(f"{captures.running.helper.pid}\n")
sys.stdout.flush()
while captures.is_running(begun["id"]):
    time.sleep(0.05)
captures.files.disk.ask(lambda: None)  # it has removed the notes
outcome = {
    "entry": captures.documents()[0],
    "files": sorted(path.name for path in captures.store.directory.iterdir()),
    "grown_bytes": resident() - before,
    "has_numpy": "numpy" in sys.modules,
    "helpers_peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
}
sys.stderr.write(json.dumps(outcome) + "\n")
context.close()
