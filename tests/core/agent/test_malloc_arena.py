import platform
import subprocess
import sys

import pytest

THREADS_THAT_ALLOCATE = """
import re, sys, threading
from temper_core.agent.malloc_arena import keep_one_malloc_arena

if sys.argv[1] == "one":
    keep_one_malloc_arena()
kept, done = [], threading.Barrier(7)

def allocate():
    kept.extend(bytes(5_000 + n) for n in range(40))
    done.wait()

for _ in range(6):
    threading.Thread(target=allocate).start()
done.wait()
# An arena of a thread reserves 64 MiB, of which it makes a part accessible: malloc/arena.c.
maps = open("/proc/self/maps").read()
reserved = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) ---p 0+ 00:00 0", maps, re.M)
print(sum(int(end, 16) - int(start, 16) > 32 * 1024 * 1024 for start, end in reserved))
"""


def arenas_of_threads(limit):
    done = subprocess.run(
        [sys.executable, "-c", THREADS_THAT_ALLOCATE, limit],
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="this C library has no arenas")
def test_threads_allocate_from_one_arena():
    assert arenas_of_threads("default") > 0
    assert arenas_of_threads("one") == 0
