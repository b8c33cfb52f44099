"""Runs a command as systemd runs the agent by the unit of a plain host.

``python tests/systemd_unit.py [--cgroup DIRECTORY] COMMAND...``, as root. The directives are read
from the unit. They are applied by the same means as systemd's: mounts, the capability bounding set,
seccomp and no_new_privs, and with a cgroup MemoryMax and TasksMax. RestrictRealtime,
RestrictSUIDSGID, LockPersonality and SystemCallArchitectures are left out.
"""

import argparse
import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

UNIT = Path(__file__).parents[1] / "deploy/systemd/temper.service"
BASES = {"RuntimeDirectory": Path("/run"), "StateDirectory": Path("/var/lib")}
API_FILE_SYSTEMS = (Path("/dev"), Path("/proc"), Path("/sys"))
"""ProtectSystem=strict leaves these as they are (systemd.exec(5))."""
CGROUPS = Path("/sys/fs/cgroup")
TEMPORARY = (Path("/tmp"), Path("/var/tmp"))
LIBSECCOMP = "libseccomp.so.2"

CLONE_NEWNS = 0x20000
NAMESPACES = {
    "mnt": CLONE_NEWNS,
    "cgroup": 0x2000000,
    "uts": 0x4000000,
    "ipc": 0x8000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
MS_BIND, MS_REC, MS_SLAVE = 0x1000, 0x4000, 0x80000
AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = -100, 0x8000, 1
SYS_MOUNT_SETATTR = 442
PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP = 38, 24
SCMP_ACT_ALLOW, SCMP_ACT_ERRNO = 0x7FFF0000, 0x00050000
SCMP_CMP_EQ, SCMP_CMP_GT, SCMP_CMP_MASKED_EQ = 4, 6, 7
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
CAPABILITIES = {
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYS_NICE": 23,
    "CAP_SYS_RESOURCE": 24,
    "CAP_SYSLOG": 34,
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
}
"""The numbers of capabilities (linux/capability.h) that the unit may name."""


def directives(unit: Path = UNIT) -> Mapping[str, str]:
    """Return the directives of the section ``[Service]``. Of one given twice, the last."""
    found, section = {}, ""
    for line in unit.read_text().splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found[name] = value
    return found


def writable(given: Mapping[str, str]) -> list[Path]:
    """Return the directories that the unit has made and left writable."""
    return [base / name for key, base in BASES.items() for name in given[key].split()]


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


class _Argument(ctypes.Structure):
    """``struct scmp_arg_cmp`` (seccomp_rule_add(3))."""

    _fields_ = [
        ("number", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    ]


_libc = ctypes.CDLL(None, use_errno=True)


def _require(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: Path | None, target: Path, flags: int, kind: str | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    _require(_libc.mount(*words, ctypes.c_ulong(flags), None), f"mount {target}")


def _set_read_only(path: Path, is_read_only: bool) -> None:
    attributes = _MountAttributes(
        set=MOUNT_ATTR_RDONLY * is_read_only, clear=MOUNT_ATTR_RDONLY * (not is_read_only)
    )
    size = ctypes.sizeof(attributes)
    arguments = (AT_FDCWD, os.fsencode(path), AT_RECURSIVE, ctypes.byref(attributes), size)
    _require(_libc.syscall(SYS_MOUNT_SETATTR, *arguments), f"mount_setattr {path}")


def make_directories(given: Mapping[str, str]) -> None:
    """Make the runtime and the state directories, as systemd does before the start."""
    modes = {"RuntimeDirectory": int(given["RuntimeDirectoryMode"], 8), "StateDirectory": 0o755}
    for key, base in BASES.items():
        for name in given[key].split():
            (base / name).mkdir(parents=True, exist_ok=True)
            (base / name).chmod(modes[key])


def enter_mounts(given: Mapping[str, str]) -> None:
    """Enter a mount namespace that is a slave of the host's, read-only but for what is given."""
    assert given["ProtectSystem"] == "strict"
    _require(_libc.unshare(CLONE_NEWNS), "unshare")
    _mount(None, Path("/"), MS_REC | MS_SLAVE)
    spared = [*API_FILE_SYSTEMS, *writable(given)]
    for path in spared:
        _mount(path, path, MS_BIND | MS_REC)
    _set_read_only(Path("/"), True)
    for path in spared:
        _set_read_only(path, False)
    if given.get("PrivateTmp") == "yes":
        for path in TEMPORARY:
            if not UNIT.is_relative_to(path):  # a checkout there has to stay visible
                _mount(Path("tmpfs"), path, 0, "tmpfs")
    if given.get("ProtectControlGroups") == "yes":
        _set_read_only(CGROUPS, True)


def bound_capabilities(given: Mapping[str, str]) -> None:
    """Drop all capabilities but those of the unit from the bounding set."""
    kept = {CAPABILITIES[name] for name in given["CapabilityBoundingSet"].split()}
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    for number in range(last + 1):
        if number not in kept:
            _require(_libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0), "prctl PR_CAPBSET_DROP")


def filter_calls(given: Mapping[str, str]) -> None:
    """Load a seccomp filter of what the unit denies. Needs libseccomp and systemd-analyze."""
    library = ctypes.CDLL(LIBSECCOMP)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(SCMP_ACT_ALLOW))
    for name, error, arguments in _denied(given):
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number < 0:  # not of this architecture
            continue
        array = (_Argument * len(arguments))(*arguments)
        action = SCMP_ACT_ERRNO | error
        added = library.seccomp_rule_add_array(context, action, number, len(arguments), array)
        assert added == 0, f"seccomp_rule_add {name}: {os.strerror(-added)}"
    loaded = library.seccomp_load(context)
    assert loaded == 0, f"seccomp_load: {os.strerror(-loaded)}"


def _denied(given: Mapping[str, str]) -> Iterator[tuple[str, int, Sequence[_Argument]]]:
    """Yield the name, the error and the arguments of each system call that is refused."""
    error = getattr(errno, given["SystemCallErrorNumber"])
    for name in denied_calls(given):
        yield name, error, ()
    allowed = {NAMESPACES[name] for name in given["RestrictNamespaces"].split()}
    for flag in set(NAMESPACES.values()) - allowed:
        for name, number in (("unshare", 0), ("clone", 0), ("setns", 1)):
            yield name, errno.EPERM, [_Argument(number, SCMP_CMP_MASKED_EQ, flag, flag)]
    yield "clone3", errno.ENOSYS, ()
    families = {FAMILIES[name] for name in given["RestrictAddressFamilies"].split()}
    for family in set(range(max(families))) - families:
        yield "socket", errno.EAFNOSUPPORT, [_Argument(0, SCMP_CMP_EQ, family, 0)]
    yield "socket", errno.EAFNOSUPPORT, [_Argument(0, SCMP_CMP_GT, max(families), 0)]


def denied_calls(given: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of the system calls that SystemCallFilter denies."""
    yield from _calls(given["SystemCallFilter"].removeprefix("~").split())


def _calls(names: Iterable[str]) -> Iterator[str]:
    """Yield the system calls of *names*, with those of groups such as ``@swap``."""
    for name in names:
        if not name.startswith("@"):
            yield name
            continue
        listed = subprocess.run(
            ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True
        )
        lines = (line.strip() for line in listed.stdout.splitlines()[1:])
        yield from _calls(line for line in lines if line and not line.startswith("#"))


def enter_cgroup(given: Mapping[str, str], cgroup: Path) -> None:
    """Join *cgroup*, of a hierarchy of version 2, with the unit's bounds on memory and tasks."""
    cgroup.mkdir(exist_ok=True)
    (cgroup / "memory.max").write_text(given["MemoryMax"])
    (cgroup / "pids.max").write_text(given["TasksMax"])
    (cgroup / "cgroup.procs").write_text("0")


def main(words: Sequence[str]) -> None:
    """Apply the unit to this process, and execute a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cgroup", type=Path, help="a cgroup to be made or joined")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(words)
    command, given = options.command, directives()
    if options.cgroup:
        enter_cgroup(given, options.cgroup)
    make_directories(given)
    enter_mounts(given)
    bound_capabilities(given)
    assert given["NoNewPrivileges"] == "yes"
    _require(_libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl PR_SET_NO_NEW_PRIVS")
    filter_calls(given)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
