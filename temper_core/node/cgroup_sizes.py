"""CPU sizes that Kubernetes, Docker, systemd or ``temper run`` wrote into cgroup files."""

import math
from collections.abc import Callable
from pathlib import Path

from temper_core.node.pod_size import CpuSize

WeightScale = Callable[[int], int]

SHARES_PER_CPU = 1024
# The kubelet's value for a pod without a request.
FEWEST_SHARES = 2
DEFAULT_WEIGHT = 100
ROUNDING = 0.02


def linear_shares(weight: int) -> int:
    """Convert a ``cpu.weight`` back to shares by the older conversion of the kubelet and runc."""
    return (weight - 1) * 262_142 // 9_999 + FEWEST_SHARES


def quadratic_shares(weight: int) -> int:
    """Convert a ``cpu.weight`` back to shares by the newer conversion.

    opencontainers/cgroups since 2025: with l = log2(shares), the weight is
    10 ** ((l*l + 125*l) / 612 - 7/34).
    """
    scaled = 612 * (math.log10(weight) + 7 / 34)
    return math.floor(2 ** ((math.sqrt(125**2 + 4 * scaled) - 125) / 2) + 1e-6)


def weight_scale(kubepods: Path, cpus: int) -> WeightScale:
    """Return the conversion in use, judged by the top cgroup, which requests nearly all CPUs.

    The two conversions meet at the largest weight. Above some 160 CPUs they are
    indistinguishable.
    """
    weight = _number(kubepods / "cpu.weight")
    if weight is None or weight <= 1:
        return linear_shares
    machine_shares = cpus * SHARES_PER_CPU

    def distance(scale: WeightScale) -> float:
        ratio = scale(weight) / machine_shares
        # The pods of Kubernetes get at most the whole machine.
        return math.inf if ratio > 1 + ROUNDING else -math.log(ratio)

    return min(linear_shares, quadratic_shares, key=distance)


def read_size(directory: Path, scale: WeightScale = linear_shares) -> CpuSize:
    """Read request and limit in millicores from *directory*, cgroup v2 or v1.

    A cgroup with the kernel's default weight has no request.
    """
    return CpuSize(_request(directory, scale), _limit(directory))


def _request(directory: Path, scale: WeightScale) -> int:
    shares = _number(directory / "cpu.shares")
    if shares is None:
        weight = _number(directory / "cpu.weight")
        shares = None if weight in (None, DEFAULT_WEIGHT) else scale(weight or 1)
    elif shares == SHARES_PER_CPU:
        shares = None
    if shares is None or shares <= FEWEST_SHARES:
        return 0
    return -(-shares * 1000 // SHARES_PER_CPU)


def _limit(directory: Path) -> int | None:
    quota, _, period = (_text(directory / "cpu.max") or "").partition(" ")
    if not period:
        quota = _text(directory / "cpu.cfs_quota_us") or ""
        period = _text(directory / "cpu.cfs_period_us") or ""
    if not (quota.isdecimal() and period.isdecimal() and int(period)):
        return None
    return -(-int(quota) * 1000 // int(period))


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text is not None and text.isdecimal() else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
