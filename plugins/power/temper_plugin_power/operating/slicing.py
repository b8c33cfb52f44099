"""How the GPUs of a node could be shared, by how hard its workloads drive them."""

from collections.abc import Iterable

from attrs import frozen

TIME_SLICING, MIG, WHOLE = "time-slicing", "mig", "none"
SURE_OF = 10
"""Workloads with which the advice is as sure as it gets."""


@frozen
class Slicing:
    """How to share each GPU of a node. *gain* is of its utilisation, in percentage points."""

    mode: str
    """time-slicing, mig, or none for the whole GPU."""
    slice_type: str
    """A profile of MIG, empty for another mode."""
    per_gpu: int
    gain: float
    confidence: float
    """From 0 to 1."""
    reason: str


def slicing_of(intensities: Iterable[str]) -> Slicing:
    """Return how to share the GPUs, by the GPU intensity of each workload that uses them.

    The gains are conventions of power-aware placement, and follow from no measurement.
    """
    known = [each for each in intensities if each in ("low", "medium", "high")]
    low, medium, high = (known.count(each) for each in ("low", "medium", "high"))
    count = len(known)
    if not count:
        return Slicing(TIME_SLICING, "", 4, 10.0, 0.3, "no workload uses the GPUs")
    confidence = min(1.0, count / SURE_OF)
    if 2 * low > count:
        reason = f"{low} of {count} workloads are of low GPU intensity"
        return Slicing(MIG, "1g.10gb", 7, 40.0, confidence, reason)
    if medium >= high:
        reason = f"{medium} workloads are of medium GPU intensity, and {high} of high"
        return Slicing(MIG, "3g.40gb", 2, 25.0, confidence, reason)
    reason = f"{high} of {count} workloads are of high GPU intensity"
    return Slicing(WHOLE, "", 1, 0.0, confidence, reason)
