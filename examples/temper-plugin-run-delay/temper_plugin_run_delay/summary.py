"""The function of the helper process, which reads a whole log."""

import json
from collections import defaultdict
from pathlib import Path
from statistics import quantiles
from typing import Any

HUNDREDTHS = 100


def summarize(path: str) -> dict[str, Any]:
    """Return count, median and 99th percentile of the run delay of each pod in a log."""
    values: defaultdict[str, list[float]] = defaultdict(list)
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        for pod, delay in json.loads(line)["delays"].items():
            values[pod].append(delay)
    return {pod: _statistics(delays) for pod, delays in sorted(values.items())}


def _statistics(delays: list[float]) -> dict[str, float]:
    cuts = quantiles(delays, n=HUNDREDTHS) if len(delays) > 1 else delays * (HUNDREDTHS - 1)
    return {"count": len(delays), "median": cuts[HUNDREDTHS // 2 - 1], "p99": cuts[-1]}
