"""The figures of a record. A new column of the report is one entry of ``MEASURES``."""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

Json = dict[str, Any]


@frozen
class Measure:
    """One figure of a record. *of* returns None where the record lacks it.

    ``less_is_better`` is None for a figure that is no merit of its own.
    """

    title: str
    of: Callable[[Json], float | None]
    places: int = 2
    less_is_better: bool | None = True


def _latency(kind: str, percentile: str) -> Callable[[Json], float | None]:
    return lambda record: record[f"{kind}_ms"].get(percentile)


def _served(key: str) -> Callable[[Json], float | None]:
    return lambda record: record["threads"]["server"][key]


def _client_delay(record: Json) -> float | None:
    requests = record["requests"]
    client = record["threads"].get("client")
    return client["delay_ms"] / requests if client and requests else None


def _noise(record: Json) -> float | None:
    noise = record["threads"].get("noise")
    return noise["run_ms"] / record["seconds"] / 1e3 if noise else None


def _longest_noise_wait(record: Json) -> float | None:
    noise = record["threads"].get("noise")
    return noise.get("longest_wait_ms") if noise else None


def _bursts(record: Json) -> float | None:
    burst = record["threads"].get("burst")
    return burst["delay_ratio"] if burst else None


def _outside(record: Json) -> float | None:
    shares = [share for share in record["threads"]["server"]["outside"] if share is not None]
    return 100 * max(shares) if shares else None


MEASURES: Mapping[str, Measure] = {
    "p50": Measure("p50, ms", _latency("total", "p50")),
    "p99": Measure("p99, ms", _latency("total", "p99")),
    "max": Measure("max, ms", _latency("total", "max")),
    "wait_p50": Measure("wait p50, ms", _latency("wait", "p50")),
    "wait_p99": Measure("wait p99, ms", _latency("wait", "p99")),
    "delay": Measure("run-queue delay / run", _served("delay_ratio"), 4),
    "client": Measure("client's delay per request, ms", _client_delay),
    "idle": Measure("idle CPU, %", lambda record: 100 * record["idle"]["cpu"], 0, None),
    "background": Measure(
        "background, million turns/s",
        lambda record: record["background_mturns_per_s"],
        0,
        less_is_better=False,
    ),
    "noise": Measure("log writers, CPUs", _noise, 2, None),
    "noise_wait": Measure("log writers' longest wait, ms", _longest_noise_wait, 0, None),
    "bursts": Measure("GC threads' run-queue delay / run", _bursts, 2, None),
    "migrations": Measure("migrations", _served("migrations"), 0, None),
    "outside": Measure("outside its CPUs, %", _outside, 1),
    "throttled": Measure(
        "throttled, ms", lambda record: record["throttled"]["throttled_usec"] / 1e3, 0
    ),
    "agent": Measure(
        "agent and engine, % of a CPU", lambda record: 100 * record["agent_cpu"], 1, None
    ),
    "events": Measure("recorded events", lambda record: record.get("events"), 0, None),
}
