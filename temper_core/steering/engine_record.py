"""The place of each thread's layer in the maps of a running engine.

scx_layered has a task storage map ``task_ctxs``, whose ``struct task_ctx`` has a ``layer_id``. The
engine's own BTF gives its offset.
"""

import errno
import os
from pathlib import Path

from temper_core.bpf import btf, maps
from temper_core.errors import BpfError
from temper_core.steering.kernel_records import EngineRecord

MAP = "task_ctxs"
STRUCT = "task_ctx"
MEMBER = "layer_id"


def find_engine_record(pid: int, proc_root: Path | str = "/proc") -> EngineRecord | None:
    """Find it among the maps that process *pid* holds open. None before the map is loaded.

    Raises ``BpfError`` if the map's types cannot be read or have another layout.
    """
    for map_id in maps.map_ids_of(pid, proc_root):
        info = _info(map_id)
        if info is not None and info.name == MAP:
            return EngineRecord(map_id, btf.member_offset(info.btf_id, STRUCT, MEMBER))
    return None


def _info(map_id: int) -> maps.MapInfo | None:
    try:
        descriptor = maps.open_by_id(map_id)
    except BpfError as error:
        if error.errno == errno.ENOENT:  # it was removed since the listing
            return None
        raise
    try:
        return maps.info(descriptor)
    finally:
        os.close(descriptor)
