"""The settings by topic. ``docs/settings.md`` is generated from these classes."""

import os
from collections.abc import Mapping
from typing import Any

from attrs import Factory, field, frozen
from attrs.validators import and_, deep_iterable, ge, gt, in_, le, matches_re, optional

from temper_core.documents import FORM
from temper_core.http.address import Address, read_address
from temper_core.quantities import cpu_millis
from temper_core.records.tiers import Tier
from temper_core.settings.fields import MILLISECOND_US, SECOND_US, setting
from temper_core.settings.tiers import PlanSettings, PriorityMapping, Tiers

RUN_DIRECTORY = "/run/temper"
STATE_DIRECTORY = "/var/lib/temper"
OF_ITS_OWN = (
    "a state_directory, a run_directory and a [server] listen of its own ([server] socket and "
    "[safe_mode] state, too, where they are set)"
)
"""What an agent beside another one needs."""
ABSOLUTE_PATH = r"(/[^/\x00]+)+"
ABSOLUTE_PATH_FORM = "an absolute path without needless slashes"
FILE = r"(?s)(?!.*/\.{1,2}\Z)/[^\x00]*[^/\x00]"
OPTIONAL_FILE = rf"{FILE}|"
FILE_FORM = "the absolute path of a file"
"""Of files that several processes share, whose working directories differ."""
PATH = r"[^\x00]*"
PATH_FORM = "a path without NUL"
FIRE_AFTER = 3
LONGEST_PERIOD_S = 60.0
"""Seconds between two looks. A violation takes several looks, so it is found within minutes."""


@frozen
class SchedulerSettings:
    """The engine's life cycle."""

    enforce: bool = setting(True, "Whether to run the engine at all; false only observes.")
    engine: str = setting(
        "scx_layered",
        "The engine's binary: a path, or a name on PATH.",
        validator=matches_re(PATH),
        form=PATH_FORM,
    )
    start_deadline_s: float = setting(
        60.0,
        "CPU seconds a started engine may use until it is attached and proven, most of them in the "
        "kernel's verifier. Ten times that is the limit in wall-clock time, and this many seconds "
        "the limit without any progress.",
        validator=gt(0),
    )
    stop_deadline_s: float = setting(10.0, "Seconds after SIGTERM before SIGKILL.", validator=gt(0))
    stats_timeout_s: float = setting(
        5.0, "Seconds to wait for the engine's statistics.", validator=gt(0)
    )
    stats_silence_s: float = setting(
        60.0,
        "Seconds without any statistics after which the engine counts as hung.",
        validator=gt(0),
    )
    max_exec_us: int = setting(
        20 * MILLISECOND_US,
        "Longest time in µs that a thread keeps its CPU while other CPUs idle. The engine's own "
        "default of 20 slices makes best effort wait up to 400 ms.",
        validator=and_(ge(1_000), le(SECOND_US)),
    )
    watchdog_ms: int = setting(
        30_000,
        "The kernel ejects the engine when a task waits this long; 30000 is the kernel's maximum.",
        validator=and_(ge(1_000), le(30_000)),
    )
    steering: str = setting(
        "auto",
        "Assignment of threads to layers: auto steers them by hints if the kernel allows it; "
        "static uses the engine's own matchers, with which more changes need a new engine.",
        validator=in_(["auto", "static"]),
    )
    steering_pin: str = setting(
        "/sys/fs/bpf/temper/hints",
        "Absolute path of the pinned map of hints for the engine, in a directory of its own.",
        validator=matches_re(r"(/[^/\x00]+){2,}"),
        form="an absolute path in a directory of its own",
    )
    steer_s: float = setting(
        1.0,
        "Seconds between two walks that give every thread its hint. Three times as long at most on "
        "a node with many threads, while the walks find nothing to do.",
        validator=ge(0.1),
    )
    warm_swap: bool = setting(
        True,
        "Whether the next engine loads while the old one still schedules; this takes twice the "
        "engine's memory for that time.",
    )
    quiet_s: float = setting(
        2.0, "Seconds without a further change before a reload.", validator=ge(0)
    )
    min_interval_s: float = setting(30.0, "Seconds between two reloads, at least.", validator=ge(0))
    reloads_per_hour: int = setting(20, "Reloads within an hour, at most.", validator=ge(1))
    backoff_s: float = setting(
        10.0, "Seconds before the first try after an ejection; doubles.", validator=gt(0)
    )
    backoff_limit_s: float = setting(600.0, "Longest back-off in seconds.", validator=gt(0))
    crash_budget: int = setting(
        5, "Ejections within an hour after which the node stays in safe mode.", validator=ge(1)
    )
    recheck_s: float = setting(
        60.0,
        "Seconds between two looks at a failed preflight or a foreign scheduler.",
        validator=gt(0),
    )
    loop_deadline_s: float = setting(
        60.0,
        "Seconds without a turn of the agent's loop after which the agent ends itself, and the "
        "engine with it. A turn takes milliseconds; a real-time thread may keep the loop from its "
        "CPU for half of this before the kernel ejects the engine.",
        validator=and_(ge(0.1), le(86_400)),
    )
    sysrq: bool = setting(
        False, "Whether SysRq-S may be used when the engine does not die by SIGKILL."
    )
    allow_static_cpu_manager: bool = setting(
        False, "Whether to enforce although the kubelet pins containers to CPUs."
    )


@frozen
class SafeModeSettings:
    """The files that request safe mode and store requests for it."""

    file: str = setting(
        f"{STATE_DIRECTORY}/safe-mode",
        "While this file exists, the node is in safe mode. Default: safe-mode in state_directory.",
        validator=matches_re(FILE),
        form=FILE_FORM,
    )
    state: str = setting(
        f"{STATE_DIRECTORY}/safe-mode-requests.json",
        "File of the other requests for safe mode. Default: safe-mode-requests.json in "
        "state_directory.",
        validator=matches_re(FILE),
        form=FILE_FORM,
    )
    poll_s: float = setting(1.0, "Seconds between two looks at the file.", validator=gt(0))


@frozen
class PodSettings:
    """The source of the node's pods."""

    source: str = setting("local", "The pod source: local, file, or one that a plugin adds.")
    file: str = setting(
        "",
        "The PodList (JSON or YAML) that the source 'file' reads.",
        validator=matches_re(PATH),
        form=PATH_FORM,
    )
    cgroup_driver: str = setting(
        "auto",
        "The kubelet's naming of pod cgroups, for those not seen: auto, systemd or cgroupfs.",
        validator=in_(["auto", "systemd", "cgroupfs"]),
    )
    poll_s: float = setting(2.0, "Seconds between two looks at the pods.", validator=gt(0))
    units: bool = setting(True, "Whether systemd units count as pods on hosts without Kubernetes.")

    def __attrs_post_init__(self) -> None:
        if self.source == "file" and not self.file:
            raise ValueError("file must name a PodList where source is 'file'")


def _is_cpu_quantity(_rule: object, _attribute: object, quantity: str) -> None:
    cpu_millis(quantity)


@frozen
class WorkloadRule:
    """A workload of a host without Kubernetes: its processes, tier, profile and size."""

    name: str = field(
        validator=matches_re(r"[a-zA-Z0-9][a-zA-Z0-9._@-]{0,62}"),
        metadata={FORM: "1 to 63 letters, digits and ._@-, the first a letter or digit"},
    )
    cgroup: str | None = None
    unit: str | None = None
    process: str | None = None
    tier: Tier | None = None
    profile: str | None = None
    cpu_request: str | None = field(default=None, validator=optional(_is_cpu_quantity))
    cpu_limit: str | None = field(default=None, validator=optional(_is_cpu_quantity))

    def __attrs_post_init__(self) -> None:
        if (self.cgroup, self.unit, self.process).count(None) == 3:  # noqa: PLR2004 - none given
            raise ValueError(f"workload {self.name!r} needs one of cgroup, unit, process")
        if self.process is not None and self.process[:1] in ("", "*", "?", "["):
            raise ValueError(
                f"workload {self.name!r}: process = {self.process!r} must begin with a character "
                "of the name"
            )


@frozen
class ObserveSettings:
    """Observation of the node."""

    period_s: float = setting(
        5.0,
        "Seconds between two looks at every thread, 0.2 to 60.",
        validator=and_(ge(0.2), le(LONGEST_PERIOD_S)),
    )
    budget_cpu_ratio: float = setting(
        0.01,
        "Share of one core that observing may cost; over it the period stretches.",
        validator=and_(gt(0), le(1)),
    )
    tier: str = setting(
        "auto",
        "Tier of observation: bpf, bpf-iter or proc; auto takes the first that works.",
        validator=in_(["auto", "bpf", "bpf-iter", "proc"]),
    )
    detail_threads: int = setting(
        256,
        "Threads that are listed one by one per look, the busiest and longest waiting; the others "
        "are summed by cgroup, if the kernel side can do that.",
        validator=and_(ge(16), le(20_000)),
    )
    top_threads: int = setting(
        50, "Busiest threads that /observe lists.", validator=and_(ge(1), le(5_000))
    )
    series_limit: int = setting(
        5_000, "Series that /metrics may hold; the rest is dropped and counted.", validator=ge(100)
    )


@frozen
class LintSettings:
    """The number of windows after which a violation is reported or cleared."""

    windows: int = setting(5, "Number of last windows that are evaluated.", validator=ge(1))
    fire_after: int = setting(
        Factory(lambda lint: min(FIRE_AFTER, lint.windows), takes_self=True),
        "Broken windows among them before a violation is reported; at most windows.",
        validator=ge(1),
    )
    clear_after: int = setting(5, "Clean windows in a row before it is cleared.", validator=ge(1))
    warn_every_s: float = setting(
        300.0, "Seconds between two warnings about the same subject.", validator=ge(0)
    )

    def __attrs_post_init__(self) -> None:
        if self.fire_after > self.windows:
            raise ValueError(
                f"fire_after, {self.fire_after}, must be at most windows, {self.windows}"
            )


def _listen_address(listen: str) -> Address | None:
    return read_address(listen, or_else="'' for the socket only") if listen else None


def _is_listen(_server: object, _attribute: object, listen: str) -> None:
    _listen_address(listen)


@frozen
class ServerSettings:
    """The agent's HTTP server."""

    listen: str = setting(
        "127.0.0.1:9100",
        "Address and port; an empty string serves the socket only.",
        validator=_is_listen,
    )
    socket: str = setting(
        f"{RUN_DIRECTORY}/agent.sock",
        "Local socket (mode 0600) that may act; an empty string serves the address only. Default: "
        "agent.sock in run_directory.",
        validator=matches_re(OPTIONAL_FILE),
        form=f"{FILE_FORM}, or empty",
    )
    token_file: str = setting(
        "",
        "File with the bearer token that acting over TCP needs, or with lines name: token.",
        validator=matches_re(PATH),
        form=PATH_FORM,
    )
    hosts: tuple[str, ...] = setting(
        (),
        "More names that requests over TCP may call the agent by, such as an ingress's; "
        ".example.org stands for all names below it, * for every name.",
        validator=deep_iterable(matches_re(r"\*|\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")),
        form="the name of a host, such a name after a dot, or *",
    )

    def __attrs_post_init__(self) -> None:
        if not (self.listen or self.socket):
            raise ValueError(
                "listen and socket are both empty, so that no client could reach the agent; set "
                "one of them"
            )

    @property
    def address(self) -> Address | None:
        """The address of ``listen``, None if only the socket is served."""
        return _listen_address(self.listen)


@frozen
class ProfileSettings:
    """The directory of profile files, and disabled profiles that are enabled."""

    directory: str = setting(
        "/etc/temper/profiles",
        "Directory of *.toml profiles; may be missing.",
        validator=matches_re(PATH),
        form=PATH_FORM,
    )
    enable: tuple[str, ...] = setting(
        (), "Ids of profiles that ship disabled and that detectors, images and processes choose."
    )


@frozen
class PluginHostSettings:
    """The plugin host."""

    allow: tuple[str, ...] | None = setting(None, "Names of the plugins to load; absent loads all.")
    directory: str = setting(
        "",
        "Absolute path of a directory of plugins that are one file each; empty for none. A file "
        "that other users may change is not loaded.",
        validator=matches_re(f"({ABSOLUTE_PATH})?"),
        form=f"{ABSOLUTE_PATH_FORM}, or empty",
    )
    strict: bool = setting(False, "Whether a plugin that fails ends the program.")
    deadline_s: float = setting(
        5.0,
        "Seconds that one call into a plugin may take.",
        validator=and_(gt(0), le(86_400)),
    )
    call_memory_mib: int = setting(
        256,
        "Memory in MiB by which one call into a plugin may grow the agent, measured when the call "
        "has returned. An agent with all first-party plugins takes less than this as a whole.",
        validator=gt(0),
    )
    helpers: int = setting(
        4, "Helper processes that plugins may have at once; 0 forbids them.", validator=ge(0)
    )
    helper_memory_mib: int = setting(
        512,
        "Memory in MiB that all helper processes may have together, by their bounds; it counts "
        "towards the agent's own limit.",
        validator=ge(0),
    )


@frozen
class Settings:
    """Everything that can be set, by topic."""

    node: str = setting(
        "", "The node's name; empty takes the environment's NODE_NAME, then the host's."
    )
    run_directory: str = setting(
        RUN_DIRECTORY,
        "Absolute path of the directory for files that end with the agent: its socket, and the "
        "files of its engine. Each agent of a node has its own.",
        validator=matches_re(ABSOLUTE_PATH),
        form=ABSOLUTE_PATH_FORM,
    )
    state_directory: str = setting(
        STATE_DIRECTORY,
        "Absolute path of the directory for files that outlive the agent: requests for safe mode. "
        "Each agent of a node has its own.",
        validator=matches_re(ABSOLUTE_PATH),
        form=ABSOLUTE_PATH_FORM,
    )
    priority_mapping: PriorityMapping = PriorityMapping()
    tiers: Tiers = Tiers()
    plan: PlanSettings = PlanSettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    safe_mode: SafeModeSettings = SafeModeSettings()
    pods: PodSettings = PodSettings()
    workloads: tuple[WorkloadRule, ...] = ()
    observe: ObserveSettings = ObserveSettings()
    lint: LintSettings = LintSettings()
    server: ServerSettings = ServerSettings()
    profiles: ProfileSettings = ProfileSettings()
    plugin_host: PluginHostSettings = PluginHostSettings()
    plugins: Mapping[str, Mapping[str, Any]] = field(factory=dict)

    @property
    def node_name(self) -> str:
        """The name of this node. In a pod the host name would be the pod's."""
        return self.node or os.environ.get("NODE_NAME") or os.uname().nodename
