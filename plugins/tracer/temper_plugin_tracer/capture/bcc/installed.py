"""Whether bcc is installed, and has what it needs to compile for the running kernel."""

import os
import platform
from pathlib import Path

from temper_core import MachineError

INTERPRETER = Path("/usr/bin/python3")
"""Debian's python3-bpfcc is a module of the system's interpreter alone."""
MODULES = ("usr/local/lib/python3*/dist-packages", "usr/lib/python3/dist-packages")
"""The module search path of that interpreter, in its order. pip installs into the first."""
OF_BPF = "libbcc.py"
"""A file that the module has, and no other of the name: on PyPI ``bcc`` is another project."""
HEADERS = "lib/modules/{release}/build"
"""Without them bcc unpacks those of the kernel itself into ``/tmp/kheaders-RELEASE``. Before 0.30
any user could put other headers there (CVE-2024-2314), so they are not used.
"""
MACHINE = "x86_64"
NOT_INSTALLED = "python3-bpfcc is not installed"
OTHER_MACHINE = "its recorder relies on the order of stores of x86-64"


def find_bcc(root: Path = Path("/")) -> Path:
    """Return the directory of the module. Raise MachineError if bcc cannot be used here.

    Only a capture shows whether it can: compiling takes seconds and 160 MiB.
    """
    found = [path for place in MODULES for path in sorted(root.glob(f"{place}/bcc"))]
    if not found or not (root / INTERPRETER.relative_to("/")).exists():
        raise MachineError(NOT_INSTALLED)
    if not (found[0] / OF_BPF).is_file():
        raise MachineError(
            f"{found[0]} is another package of the name bcc; remove it and install python3-bpfcc"
        )
    if platform.machine() != MACHINE:
        raise MachineError(OTHER_MACHINE)
    release = os.uname().release
    if not (root / HEADERS.format(release=release)).exists():
        raise MachineError(
            f"python3-bpfcc is installed, and the headers of the kernel are not; "
            f"install linux-headers-{release}"
        )
    return found[0]
