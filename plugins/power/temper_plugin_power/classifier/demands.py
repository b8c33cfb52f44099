"""How a workload drives one device, and why the rules think so."""

from attrs import frozen


@frozen
class Demand:
    """How a workload drives the CPUs or the GPUs."""

    intensity: str
    """high, medium or low; none for GPUs that it does not use."""
    bound: str
    """compute, memory, io or mixed; none for GPUs that it does not use."""
    cap_sensitivity: str
    """How much a power cap slows it: high, medium, low or none."""
    util_pct: float | None = 0.0
    """Average utilisation; None if it is not known."""


@frozen
class Judgement:
    """A demand, and the fragments of the reason for it, in order of evaluation."""

    demand: Demand
    reasons: tuple[str, ...] = ()

    def changed(
        self, reason: str, *, intensity: str = "", bound: str = "", cap_sensitivity: str = ""
    ) -> "Judgement":
        """Return this with one more *reason*, and with what it changes."""
        demand = Demand(
            intensity or self.demand.intensity,
            bound or self.demand.bound,
            cap_sensitivity or self.demand.cap_sensitivity,
            self.demand.util_pct,
        )
        return Judgement(demand, (*self.reasons, reason))
