"""Preflight: checks of the machine before the engine is started, each with its remedy."""

from collections.abc import Callable, Sequence
from typing import ParamSpec

import structlog
from attrs import frozen

from temper_core.engine.installed import InstalledEngine, find_installed
from temper_core.errors import TemperError
from temper_core.foreign_writers import foreign_writer
from temper_core.records.checks import Check, CheckState, failed, ok, warning
from temper_core.records.snapshots import Mode, SafeModeReason
from temper_core.scheduler.host.roots import Roots
from temper_core.scheduler.preflight import change_checks, kernel_checks, node_checks, rival_checks
from temper_core.scheduler.preflight.foreign_scheduler import foreign_scheduler
from temper_core.settings import Settings

NO_SCHED_EXT = "no_sched_ext"
TESTED_ENGINE = "1.1.4"
"""The version of scx_layered that the project's own tests on a kernel use."""
KERNEL_CHECKS: tuple[Callable[[Roots], Check], ...] = (
    kernel_checks.sched_ext,
    kernel_checks.kernel_version,
    kernel_checks.btf,
    kernel_checks.btf_prototypes,
    kernel_checks.btf_enums,
    kernel_checks.bpf_jit,
    kernel_checks.lockdown,
    kernel_checks.cgroup_v2,
    kernel_checks.kernel_config,
    kernel_checks.cpus_online,
    kernel_checks.cpus_contiguous,
    kernel_checks.cpu_count,
    kernel_checks.topology_size,
    kernel_checks.isolcpus,
    node_checks.privileges,
    node_checks.resctrl,
    node_checks.cgroup_index,
    node_checks.runtime_directory,
)
P = ParamSpec("P")
FindEngine = Callable[[str], InstalledEngine]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Hold:
    """Why the engine must not run: the mode, reason and detail of the node's status."""

    mode: Mode
    reason: str
    detail: str


def run_preflight(
    roots: Roots,
    settings: Settings,
    *,
    find: FindEngine = find_installed,
    own_engine: int | None = None,
) -> tuple[Check, ...]:
    """Run every check. None raises, and all together take some milliseconds.

    *find* looks for the engine's binary and may run it once. *own_engine* is the process id of
    the agent's own engine, which may be attached.
    """
    return (
        *(_made(check, roots) for check in KERNEL_CHECKS),
        _made(node_checks.memory, roots, own_engine=own_engine),
        _made(node_checks.static_cpu_manager, roots, settings),
        _made(engine, settings.scheduler.engine, find),
        _made(foreign_scheduler, roots, own_engine=own_engine),
    )


def _made(check: Callable[P, Check], *args: P.args, **kwargs: P.kwargs) -> Check:
    """Make a check. One that ends by an error has failed: the stock scheduler is the safe state."""
    try:
        return check(*args, **kwargs)
    except (OSError, ValueError, LookupError) as error:
        log.exception("check_not_made", check=check.__name__)
        return failed(check.__name__, f"could not be checked: {error!r}", "see the agent's log")


def look_closely(
    roots: Roots, settings: Settings, *, own_engine: int | None = None
) -> tuple[Check, ...]:
    """Run the checks that only warn, about changes and other software. Some make trials.

    They take tenths of a second at most, and remove the BPF objects and mounts of their trials.
    """
    return (
        change_checks.steering(roots, settings),
        change_checks.warm_swap(roots, settings, own_engine=own_engine),
        change_checks.pinned_pods(roots),
        rival_checks.conflicting_software(roots),
    )


def verdict(checks: Sequence[Check]) -> Hold | None:
    """Return the hold that the failures among *checks* mean, None if the engine may be started.

    A kernel without sched_ext can only be observed. Any other failure means safe mode and a later
    recheck. A foreign scheduler is the reason only if no other check failed.
    """
    failures = {check.name: check for check in checks if check.state is CheckState.FAILED}
    if not failures:
        return None
    if "sched_ext" in failures:
        return Hold(Mode.OBSERVE_ONLY, NO_SCHED_EXT, failures["sched_ext"].detail)
    foreign = failures.pop("foreign_scheduler", None)
    if foreign is not None and not failures:
        return Hold(Mode.SAFE_MODE, SafeModeReason.FOREIGN_SCHEDULER, foreign.detail)
    detail = "; ".join(f"{name}: {check.detail}" for name, check in failures.items())
    return Hold(Mode.SAFE_MODE, SafeModeReason.PREFLIGHT, detail)


def engine(name: str, find: FindEngine) -> Check:
    """Check that the engine is installed in a version that Temper knows."""
    try:
        installed = find(name)
    except TemperError as error:
        return failed(
            "engine",
            str(error),
            f"`cargo install scx_layered --version {TESTED_ENGINE} --locked` builds it (clang, "
            "libelf-dev, zlib1g-dev), and `vm/build-engine` of a checkout with a checksum",
        )
    if installed.assumption:
        return warning("engine", installed.assumption, "install a version that Temper knows")
    if who := foreign_writer(installed.path):
        return warning(
            "engine",
            f"{installed.path}: {who}, and the agent runs it",
            "have root own it, in a directory that only root may write",
        )
    return ok("engine", f"scx_layered {installed.version} at {installed.path}")
