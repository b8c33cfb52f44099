"""The kernel's count of context switches, for the node's rate of switches."""

from pathlib import Path

from temper_core import MachineError


def read_switches(proc_root: str = "/proc") -> int:
    """Return the switches of all CPUs since boot. Raise MachineError if the count is missing.

    It is the line ``ctxt`` of /proc/stat (fs/proc/stat.c).
    """
    path = Path(proc_root, "stat")
    try:
        content = path.read_bytes()
        return int(content[content.index(b"\nctxt ") + 6 :].split(None, 1)[0])
    except (OSError, ValueError, IndexError) as error:
        raise MachineError(f"{path} has no count of switches: {error}") from error
