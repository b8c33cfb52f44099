import os
import subprocess
import sys

import pytest

from temper_plugin_console.occupants import Occupant, running_threads
from tests.core.node.trees import write_files

linux_only = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")  # noqa: PTH110 - evaluated at import
ID = "0123456789abcdef" * 4


def stat_line(tid, comm, state, cpu):
    return f"{tid} ({comm}) {state} " + " ".join(["0"] * 35) + f" {cpu} 0 0\n"


def test_running_threads_are_told_with_cpu_and_owner(tmp_path):
    write_files(
        tmp_path,
        {
            "10/task/10/stat": stat_line(10, "idle", "S", 0),
            "10/task/11/stat": stat_line(11, "odd) R (name", "R", 3),
            "10/task/11/cgroup": f"0::/docker/{ID}\n",
            "12/task/12/stat": stat_line(12, "mysqld", "R", 1),
            "12/task/12/cgroup": "0::/system.slice/mysql.service\n",
            "13/task/13/stat": "13 (cut",
            "14/comm": "gone",
        },
    )

    assert running_threads(tmp_path) == [
        Occupant(1, 12, 12, "mysqld", "mysql.service"),
        Occupant(3, 11, 10, "odd) R (name", f"docker-{ID[:12]}"),
    ]


@linux_only
def test_a_busy_process_of_this_machine_is_seen_running():
    spinner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        seen = any(thread.tgid == spinner.pid for _ in range(100) for thread in running_threads())
    finally:
        spinner.kill()
        spinner.wait()

    assert seen
