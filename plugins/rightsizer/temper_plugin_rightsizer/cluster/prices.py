"""The prices of a cluster, by the settings of its agents."""

import json
from collections import Counter

from attrs import asdict, define, field

from temper_core import DocumentError, fit
from temper_core.console import Row
from temper_core.observed import table
from temper_plugin_rightsizer.prices.settings import Prices

DISAGREE = "the agents do not agree on prices, so the default ones are used"


@define
class AgreedPrices:
    """The prices that more than half of the agents have: one agent must not set them for all."""

    answers: int = field(default=0, init=False)
    _agents: Counter[str] = field(factory=Counter, init=False)
    """The number of agents by their prices, as JSON."""

    def add(self, answer: Row) -> None:
        """Count the prices of an agent's *answer*. Malformed ones are those of no other agent."""
        self.answers += 1
        try:
            prices = fit(dict(table(answer, "price_settings")), Prices, source="prices")
        except DocumentError:
            return
        self._agents[json.dumps(asdict(prices), sort_keys=True)] += 1

    @property
    def agreed(self) -> Prices | None:
        """The prices of most agents. None if there are none."""
        for text, agents in self._agents.most_common(1):
            if 2 * agents > self.answers:
                return Prices(**json.loads(text))
        return None
