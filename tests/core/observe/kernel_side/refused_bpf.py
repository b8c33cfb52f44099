"""Has the kernel refuse bpf(2) to this process and its children."""

import ctypes
import platform
import struct
import sys

from temper_core.bpf.system_call import NUMBERS

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def refuse_bpf(with_errno):
    """Answer bpf(2) with that number from now on, by a seccomp filter."""
    instructions = (
        (LOAD, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, NUMBERS[platform.machine()]),
        (RETURN, 0, 0, ERRNO | with_errno),
        (RETURN, 0, 0, ALLOW),
    )
    packed = b"".join(struct.pack("<HBBI", *instruction) for instruction in instructions)
    program = ctypes.create_string_buffer(packed, len(packed))
    described = struct.pack("<HxxxxxxQ", len(instructions), ctypes.addressof(program))
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        sys.exit("cannot set no_new_privs")
    if library.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, described, 0, 0):
        sys.exit("cannot install a seccomp filter")
