"""The metrics of the webhook and of the placement service, of which nobody asked."""

from temper_plugin_density.overcommit.tallies import Tallies
from temper_plugin_density.placement.asking import PodReader
from temper_plugin_density.placement.ledger import Ledger
from temper_plugin_density.placement.measures import Measures
from temper_plugin_density.placement.scoring import Score
from temper_plugin_density.placement.watching import Watches


def pages_of_services():
    return Tallies().page(), _placement()


def _placement():
    ledger = Ledger()
    measures = Measures(ledger, Watches(ledger, PodReader(None)))
    measures.count_scores([Score("any", 0.0, "any")])
    return measures.text()
