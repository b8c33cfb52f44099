"""The history of a node from a Prometheus that scrapes the agents."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from temper_prometheus.access import Access
from temper_prometheus.answers import Answer
from temper_prometheus.client import Prometheus

TIMEOUT_S = 10.0
LARGEST_BYTES = 1024 * 1024
POINTS = 120
HOUR_S = 3600
SHORTEST_RATE_S = 300
"""The window of a rate: ten scrapes at the usual 30 s."""
QUERIES = {
    "wait": 'max(rate(temper_pressure_seconds_total{{{at}, resource="cpu", kind="some"}}[{rate}]))',
    "background_cpus": (
        'sum(rate(temper_tier_cpu_seconds_total{{{at}, tier="background"}}[{rate}]))'
    ),
    "violations": "sum(temper_lint_violation{{{at}}})",
}
"""By name: the share of time with a waiting thread, the CPUs that background work used, and the
number of broken promises. ``instance`` is the node's name (docs/monitoring.md, "Labels")."""


@frozen
class History:
    """Asks the Prometheus at *access*."""

    access: Access
    clock: Callable[[], float] = time.time

    def of(self, node: str, hours: int) -> Mapping[str, Any]:
        """Return the last *hours* of *node* as columns, with None where there is no value.

        Raises InputError or MachineError if the Prometheus does not answer.
        """
        step_s = max(60, hours * HOUR_S // POINTS)
        end = int(self.clock())
        begin = end - hours * HOUR_S
        times = range(begin, end + 1, step_s)
        label = f"instance={json.dumps(node, ensure_ascii=False)}"
        rate = f"{max(SHORTEST_RATE_S, step_s)}s"
        columns: dict[str, Any] = {"at": list(times)}
        with Prometheus(self.access, timeout_s=TIMEOUT_S, largest_bytes=LARGEST_BYTES) as asked:
            for name, query in QUERIES.items():
                answer = asked.over(query.format(at=label, rate=rate), begin, end, step_s)
                try:
                    columns[name] = _column(answer, times)
                except ValueError as error:
                    raise asked.damaged(error) from error
        return columns


def _column(answer: Answer, times: range) -> list[float | None]:
    found: dict[int, float] = {}
    for series in answer.series:
        found.update((int(at), value) for at, value in series.values())
    return [found.get(at) for at in times]
