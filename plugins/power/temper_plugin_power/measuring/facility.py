"""Reads the values of a facility from a Prometheus."""

from collections.abc import Mapping

from attrs import frozen

from temper_plugin_power.measuring.measuring import Pace, Server, answers
from temper_plugin_power.operating.facility import Facility
from temper_prometheus.answers import Answer

MOST_CELSIUS = 100.0
MOST_ZONES = 1000
"""Cooling zones that are kept of an answer."""
BY_ZONE = "ambient_by_zone"


@frozen
class FacilityMetrics:
    """The names of the metrics. An empty one is not asked for."""

    ambient: str
    """Degrees Celsius. The average of its series counts."""
    it_power: str
    """Watts, as below. The sum of their series counts."""
    cooling_power: str
    zone_label: str = ""
    """The label of the temperature's series that names the cooling zone. Empty is none."""

    @property
    def queries(self) -> Mapping[str, str]:
        """The queries by signal."""
        known = {
            "ambient": ("avg", self.ambient),
            "it_power": ("sum", self.it_power),
            "cooling_power": ("sum", self.cooling_power),
        }
        asked = {signal: f"{how}({name})" for signal, (how, name) in known.items() if name}
        if self.ambient and self.zone_label:
            asked[BY_ZONE] = f"avg by ({self.zone_label}) ({self.ambient})"
        return asked


def read_facility(
    server: Server, moment: int, metrics: FacilityMetrics, pace: Pace | None = None
) -> Facility:
    """Return the values at *moment*, in seconds. A metric without series is not known.

    Negative values, and a temperature above ``MOST_CELSIUS``, are not known either. Raises
    MachineError or InputError if a query fails for good.
    """
    told = dict(answers(server, moment, metrics.queries, pace or Pace()))
    by_zone = told.pop(BY_ZONE, Answer(()))
    try:
        zones = _zones(by_zone, metrics.zone_label)
        found = {signal: _value(answer) for signal, answer in told.items()}
    except ValueError as error:
        raise server.damaged(error) from error
    ambient = found.get("ambient")
    is_usual = ambient is not None and ambient <= MOST_CELSIUS
    return Facility(
        ambient if is_usual else None, found.get("it_power"), found.get("cooling_power"), zones
    ).steady


def _zones(answer: Answer, label: str) -> Mapping[str, float]:
    """Return the temperature of each zone. Series without the label are of no zone."""
    known = {
        series.labels[label]: celsius
        for series in answer.series
        if series.labels.get(label)
        for _, celsius in series.values()
        if celsius <= MOST_CELSIUS
    }
    return dict(sorted(known.items())[:MOST_ZONES])


def _value(answer: Answer) -> float | None:
    """Return the only value of an aggregation, None if there is none."""
    values = [value for series in answer.series for _, value in series.values()]
    return values[0] if values else None
