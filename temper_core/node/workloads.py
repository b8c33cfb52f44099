"""``[[workloads]]``: rules that make pods from cgroups, units and processes."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from attrs import frozen

from temper_core.node.cgroup_names import CgroupKind, identify, is_named_by_system
from temper_core.node.pod_size import CpuSize
from temper_core.quantities import cpu_millis
from temper_core.records.pods import PROFILE_ANNOTATIONS, Container, Origin, Pod, QosClass
from temper_core.records.thread_groups import LONGEST_COMM
from temper_core.settings.models import WorkloadRule

UNIT_SUFFIXES = (".service", ".scope", ".slice")
MOST_NAMES = 16
"""Process names of one rule. A layer has room for a bounded number of those of all rules."""
WILDCARDS = re.compile(r"[*?\[]")


@frozen
class Workload:
    """A rule with its quantities parsed: CPU in millicores, ``None`` where the rule has none."""

    rule: WorkloadRule
    cpu_request_millis: int | None = None
    cpu_limit_millis: int | None = None

    @classmethod
    def of(cls, rule: WorkloadRule) -> "Workload":
        """Parse the rule's quantities, which the settings have judged."""
        return cls(rule, _millis(rule.cpu_request), _millis(rule.cpu_limit))


@frozen
class Claim:
    """The cgroup paths, without outer slashes, and process names that a workload takes."""

    workload: Workload
    cgroups: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()

    def covers(self, path: str) -> bool:
        """Whether *path* is one of the claimed cgroups or lies below one."""
        return any(f"{path}/".startswith(f"{claimed}/") for claimed in self.cgroups)


def claims(
    workloads: Sequence[Workload], paths: Iterable[str], names: frozenset[str]
) -> list[Claim]:
    """Return the claim of each workload on the cgroups *paths* and the process *names*.

    If several workloads match one cgroup, the first gets it. A workload without a match is left
    out.
    """
    claimed: list[Claim] = []
    ordered = sorted(filter(None, paths))
    for workload in workloads:
        cgroups = tuple(
            path
            for path in ordered
            if _takes_cgroup(workload.rule, path)
            and not any(claim.covers(path) for claim in claimed)
        )
        claim = Claim(workload, _outermost(cgroups), _processes_of(workload.rule, names))
        if claim.cgroups or claim.processes:
            claimed.append(claim)
    return claimed


def workload_pod(claim: Claim, size: CpuSize) -> Pod:
    """Make the pod of a workload. Without sizes in the rule, *size* of its cgroups counts."""
    rule = claim.workload.rule
    request, limit = claim.workload.cpu_request_millis, claim.workload.cpu_limit_millis
    limit = size.limit if limit is None else limit or None
    request = size.request if request is None else request
    annotations = {PROFILE_ANNOTATIONS[0]: rule.profile} if rule.profile else {}
    return Pod(
        uid=f"workload:{rule.name}",
        namespace="",
        name=rule.name,
        qos_class=qos_class_of(CpuSize(request, limit)),
        containers=(Container(rule.name, "", request, limit, processes=claim.processes),),
        cpu_request_millis=request,
        cpu_limit_millis=limit,
        annotations=annotations,
        cgroups=tuple(f"{path}/" for path in claim.cgroups),
        origin=Origin.WORKLOAD,
        tier=rule.tier,
        tier_rule=_said_by(rule) if rule.tier else "",
    )


def qos_class_of(size: CpuSize) -> QosClass:
    """Return the QoS class of a pod outside of Kubernetes, from its CPU size alone."""
    if size.limit is not None and size.request == size.limit:
        return QosClass.GUARANTEED
    if size.request or size.limit is not None:
        return QosClass.BURSTABLE
    return QosClass.BEST_EFFORT


def _millis(quantity: str | None) -> int | None:
    return None if quantity is None else cpu_millis(quantity)


def _said_by(rule: WorkloadRule) -> str:
    keys = [(key, getattr(rule, key)) for key in ("cgroup", "unit", "process")]
    conditions = ", ".join(f"{key} = {value!r}" for key, value in keys if value is not None)
    return f"workload rule {rule.name!r} ({conditions})"


def _takes_cgroup(rule: WorkloadRule, path: str) -> bool:
    if rule.cgroup is not None and _is_matched_by(path, rule.cgroup):
        return True
    return rule.unit is not None and _is_unit(path, rule.unit)


def _is_matched_by(path: str, pattern: str) -> bool:
    """Whether every part of *path* matches the same part of *pattern*. ``*`` stops at a slash."""
    parts, patterns = path.split("/"), pattern.strip("/").split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _is_unit(path: str, pattern: str) -> bool:
    name = path.rpartition("/")[2]
    if not (name.endswith(UNIT_SUFFIXES) and is_named_by_system(path)):
        return False
    if not pattern.endswith((*UNIT_SUFFIXES, "*")):
        pattern += ".service"
    return fnmatchcase(name, pattern) and identify(path).kind is not CgroupKind.POD


def _outermost(paths: Sequence[str]) -> tuple[str, ...]:
    """Drop every path below another. *paths* must be sorted, parents first."""
    outermost: dict[str, None] = {}
    for path in paths:
        above = path.rpartition("/")[0]
        while above and above not in outermost:
            above = above.rpartition("/")[0]
        if not above:
            outermost[path] = None
    return tuple(outermost)


def _processes_of(rule: WorkloadRule, names: frozenset[str]) -> tuple[str, ...]:
    """Return the names that the rule matches, at most ``MOST_NAMES``.

    Every user may start processes with such names. Of more than that number the text before the
    rule's first wildcard takes their place, since the engine matches beginnings.
    """
    if rule.process is None:
        return ()
    # The kernel truncates process names.
    truncated = _truncated(rule.process)
    matched = sorted(n for n in names if n == truncated or fnmatchcase(n, rule.process))
    if len(matched) > MOST_NAMES:
        return (_truncated(WILDCARDS.split(rule.process)[0]),)
    return tuple(matched)


def _truncated(name: str) -> str:
    return name.encode()[:LONGEST_COMM].decode(errors="ignore")
