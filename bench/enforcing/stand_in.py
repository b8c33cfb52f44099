"""A stand-in for the engine, for a machine whose kernel has no sched_ext.

The agent runs in a mount namespace in which ``/sys/kernel`` has the files of sched_ext, and starts
the fake engine of the tests. It plans, steers by hints and observes as with an engine. Nothing
schedules by the hints, and no thread has a record of the engine.
"""

import json
import sys
from pathlib import Path

TESTS = Path(__file__).parents[2] / "tests"
FAKE_ENGINE = TESTS / "core/scheduler/fake_engine.py"
FILES = ("started", "trigger", "detach", "garble", "hold")
"""What a script of the fake engine names. None of them exists, so that it only runs."""
NAMESPACE = """
at=$1; shift
mkdir -p "$at" && mount -t tmpfs none "$at"
for each in /sys/kernel/*; do
    name=${each##*/}
    if [ -d "$each" ]; then mkdir "$at/$name"; else touch "$at/$name"; fi
    mount --rbind "$each" "$at/$name"
done
mkdir "$at/sched_ext"
echo disabled >"$at/sched_ext/state"
for name in enable_seq switch_all nr_rejected; do echo 0 >"$at/sched_ext/$name"; done
mount --rbind "$at" /sys/kernel
mount --bind "$0" /sys/fs/cgroup
mount -t bpf -o mode=700 bpf /sys/fs/bpf
mount -t tmpfs none /run
exec "$@"
"""


def inside(directory: Path, cgroup_root: Path) -> list[str]:
    """Return the beginning of a command that runs where the kernel seems to have sched_ext."""
    words = ["unshare", "--mount", "sh", "-e", "-c", NAMESPACE, str(cgroup_root)]
    return [*words, str(directory / "kernel")]


def write_engine(directory: Path) -> Path:
    """Write a file that starts the fake engine, in a process that has the engine's name."""
    named = directory / "python/scx_layered"
    named.parent.mkdir(parents=True, exist_ok=True)
    named.unlink(missing_ok=True)
    named.symlink_to(Path(sys.executable).resolve())
    script = directory / "script.json"
    script.write_text(json.dumps({name: str(directory / name) for name in FILES}))
    environment = {
        "FAKE_SCRIPT": script,
        "FAKE_KERNEL": "/sys/kernel/sched_ext",
        "FAKE_STATE": "/sys/kernel/sched_ext/state",
        "FAKE_STATS": "/run/scx/root/stats",
    }
    exports = "".join(f"export {name}='{value}'\n" for name, value in environment.items())
    engine = directory / "scx_layered"
    engine.write_text(f"#!/bin/sh\n{exports}exec '{named}' -I -S '{FAKE_ENGINE}' \"$@\"\n")
    engine.chmod(0o755)
    return engine
