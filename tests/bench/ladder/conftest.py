from collections.abc import Callable
from typing import Any

import pytest

Json = dict[str, Any]


def record(arm: str, level: int = 8, seed: int = 1, **changed: Any) -> Json:
    latencies = {"p50": 2.0, "p99": 8.0, "max": 12.0}
    return {
        "format": 1,
        "kernel": "6.18.15",
        "engine": "" if arm == "stock" else "1.1.4",
        "plan": "" if arm == "stock" else "ab12",
        "profile": "",
        "boot": "b007",
        "cpus": 4,
        "clock": "virtual",
        "load": "weight",
        "level": level,
        "arm": arm,
        "seed": seed,
        "scheduler": "stock" if arm == "stock" else "engine",
        "requests": 500,
        "seconds": 4.0,
        "unanswered": 0,
        "total_ms": {**latencies, "p99": changed.pop("p99", 8.0)},
        "wait_ms": latencies,
        "service_ms": latencies,
        "threads": {
            "server": {
                "delay_ratio": changed.pop("delay", 0.5),
                "migrations": None,
                "outside": changed.pop("outside", [None]),
            },
            "client": {"delay_ms": 250.0},
            **changed.pop("others", {}),
        },
        "idle": {"cpu": 0.45},
        "agent_cpu": 0.05,
        "background_mturns_per_s": 200.0,
        "throttled": {"nr_throttled": 0, "throttled_usec": 0},
        **changed,
    }


@pytest.fixture
def make_record() -> Callable[..., Json]:
    return record
