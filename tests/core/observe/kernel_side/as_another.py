"""Opens a tier as somebody with fewer rights, and prints what came of it.

`TIER [ERRNO]`: with ERRNO a seccomp filter first answers bpf(2) with that number.
"""

import sys

from temper_core.errors import MachineError
from temper_core.observe.tiers import open_reader
from tests.core.observe.kernel_side.refused_bpf import refuse_bpf

if len(sys.argv) > 2:
    refuse_bpf(int(sys.argv[2]))
try:
    opened = open_reader(sys.argv[1])
except MachineError as error:
    sys.stdout.write(f"refused\n{error}")
else:
    seen = opened.reader.snapshot(0).threads_seen
    sys.stdout.write(f"{opened.reader.tier}\n{opened.reason}\n{seen > 1}")
