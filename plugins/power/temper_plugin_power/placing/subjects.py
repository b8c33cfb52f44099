"""The nodes and pods that are scored, and the settings of scoring."""

from attrs import frozen

from temper_plugin_power.operating.twin import Hardware, Twin
from temper_plugin_power.placing.demands import PodDemand
from temper_plugin_power.placing.marginal import Coefficients
from temper_plugin_power.standing import Standing

OLD_AFTER_S = 300.0
EARLY_S = 60.0
"""How far in the future the time of a twin may be, as clocks differ."""


@frozen
class NodeView:
    """A node. *age_s* is the age of its twin in seconds, None for a stale one."""

    twin: Twin | None = None
    age_s: float | None = None
    hardware: Hardware | None = None
    label_profile: str = ""
    """The node label ``power-profile``."""

    def fresh_twin(self, old_after_s: float = OLD_AFTER_S) -> Twin | None:
        """Return the twin, None if it is older than *old_after_s*."""
        is_fresh = self.age_s is not None and -EARLY_S <= self.age_s <= old_after_s
        return self.twin if is_fresh else None


@frozen
class PodView:
    """A pod."""

    standing: Standing
    demand: PodDemand
    evicted_from: str | None = None
    """The class of the node that its owner was lately evicted from."""
    is_exempt: bool = False
    """No node rejects it."""


@frozen
class Choices:
    """The settings of scoring."""

    is_marginal: bool = True
    coefficients: Coefficients = Coefficients()
    cap_penalty_cpu: float = 40.0
    cap_penalty_gpu: float = 40.0
    twin_staleness_s: float = OLD_AFTER_S
