"""The pod source ``file``: a PodList that another program updates, joined with real cgroups.

Tenants choose the size of their pods, so that reading a list may take longer than a call into a
plugin may. Each version is read on a thread of its own.
"""

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from pathlib import Path

from attrs import evolve, field, frozen

from temper_core.errors import DocumentError, InputError, MachineError
from temper_core.node.host_cgroups import HostCgroups
from temper_core.node.podlist_file import read_pod_file
from temper_core.records.contributions import PodSourceContext, Staleness
from temper_core.records.pods import Pod

WAIT_S = 4.0
"""The longest wait for a version, below the 5 s of a call. Lists of up to some 40 MB are read."""

Version = tuple[int, int, int]


@frozen
class _Reading:
    """The reading of one version of the file, on a thread that ends by itself."""

    path: Path
    node: str | None
    version: Version | None
    began_at: float = field(factory=time.monotonic)
    listed: Future[tuple[Pod, ...]] = field(factory=Future)

    def begin(self) -> "_Reading":
        """Read, and wait a moment for the end."""
        threading.Thread(target=self._read, name="pod-list", daemon=True).start()
        wait_for([self.listed], WAIT_S)
        return self

    @property
    def problem(self) -> str:
        """Say that it has not ended."""
        return f"{self.path}: is being read, for {time.monotonic() - self.began_at:.0f} s by now"

    def _read(self) -> None:
        try:
            listed = read_pod_file(self.path, node=self.node, report=_warn)
        except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
            self.listed.set_exception(error)
        else:
            self.listed.set_result(listed)


class FilePods:
    """The pods of a PodList, which is read again when the file changes.

    A version that cannot be read is logged once, and the last good one stays in force. It stays in
    force, too, while a version is read. ``stale`` has its age and the reason.
    """

    def __init__(self, context: PodSourceContext) -> None:
        if not context.options.file:
            raise InputError("pods.file: must name a PodList")
        self._path = Path(context.options.file)
        self._node = context.node or None
        self._host = _host(context)
        self._read_version: Version | None = None
        self._listed: tuple[Pod, ...] | None = None
        self._paths: Mapping[str, str] = {}
        self._pods: tuple[Pod, ...] | None = None
        self._read_at = 0.0
        self._refused = ""
        self._reading: _Reading | None = None

    def pods(self) -> tuple[Pod, ...]:
        """Return the listed pods with their cgroups, the same tuple while nothing has changed.

        Raises MachineError if no version of the file could be read yet.
        """
        is_new = self._read_again()
        has_moved = self._join_again()
        if is_new or has_moved or self._pods is None:
            self._pods = tuple(self._joined(pod) for pod in self._listed or ())
        return self._pods

    def stale(self) -> Staleness | None:
        """Return the age of the pods while the file's last version cannot be read."""
        reason = self._reading.problem if self._reading is not None else self._refused
        return Staleness(time.monotonic() - self._read_at, reason) if reason else None

    def close(self) -> None:
        """Drop the pods. No file is held open between polls."""
        self._read_version, self._listed, self._pods = None, None, None

    def _read_again(self) -> bool:
        """Take up what has been read, or begin to read it. Return whether the pods differ."""
        if self._reading is None:
            version = _version(self._path)
            if version == self._read_version and self._listed is not None:
                self._read_at = self._read_at if self._refused else time.monotonic()
                return False
            self._reading = _Reading(self._path, self._node, version).begin()
        if not self._reading.listed.done():
            if self._listed is None:
                raise MachineError(self._reading.problem)
            return False
        ended, self._reading = self._reading, None
        return self._take(ended)

    def _take(self, ended: _Reading) -> bool:
        try:
            listed = ended.listed.result()
        except DocumentError as error:
            self._refuse(ended.version, error)
            return False
        self._read_version, self._read_at, self._refused = ended.version, time.monotonic(), ""
        self._listed, is_new = listed, listed != self._listed
        return is_new

    def _refuse(self, version: Version | None, error: DocumentError) -> None:
        if self._listed is None:
            raise MachineError(str(error)) from error
        self._read_version, self._refused = version, str(error)
        import structlog  # noqa: PLC0415 - slow to import, and rarely needed

        structlog.get_logger(__name__).warning(
            "pod_list_refused", file=str(self._path), problems=list(error.problems[:5])
        )

    def _join_again(self) -> bool:
        if self._host is None or not self._host.refresh():
            return False
        before = self._paths
        self._paths = {
            owner.identity.uid: f"{owner.path}/"
            for owner in self._host.owners
            if owner.identity.uid and owner.is_unified
        }
        return self._paths != before

    def _joined(self, pod: Pod) -> Pod:
        path = self._paths.get(pod.uid)
        return evolve(pod, cgroups=(path,)) if path else pod


def _warn(reason: str) -> None:
    import structlog  # noqa: PLC0415 - slow to import, and rarely needed

    structlog.get_logger(__name__).warning("pod_left_out", reason=reason)


def _host(context: PodSourceContext) -> HostCgroups | None:
    try:
        return HostCgroups(context.proc_root, context.cgroup_root)
    except MachineError:
        # A plan needs no cgroups. Without them only the exact paths are missing.
        return None


def _version(path: Path) -> Version | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
