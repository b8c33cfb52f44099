"""Lenient access to an observation, for commands. Nothing here raises.

An observation may come from an agent of another version, or from a file of something else.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Row = Mapping[str, Any]


def rows(document: object, key: str) -> list[Row]:
    """Return the objects in the list at *key*."""
    value = document.get(key) if isinstance(document, Mapping) else None
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def table(document: object, key: str) -> Row:
    """Return the object at *key*, or an empty one."""
    value = document.get(key) if isinstance(document, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def text(row: Row, key: str) -> str:
    """Return the text at *key*, or an empty one."""
    value = row.get(key)
    return value if isinstance(value, str) else ""


def number(row: Row, key: str) -> float | None:
    """Return the number at *key* if it is finite."""
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def count(row: Row, key: str) -> int | None:
    """Return the number at *key*, None for -1, which stands for an unknown count."""
    value = number(row, key)
    return None if value is None or value < 0 else int(value)


def whole_numbers(row: Row, key: str) -> tuple[int, ...]:
    """Return the whole numbers in the list at *key*, such as CPU ids."""
    value = row.get(key)
    return tuple(integers(value)) if isinstance(value, list) else ()


def integers(values: Iterable[object]) -> Iterator[int]:
    """Yield the whole numbers among *values*."""
    return (value for value in values if isinstance(value, int) and not isinstance(value, bool))


def pod_key(row: Row) -> str:
    """Return a row's pod: ``namespace/name``, a workload's bare name, or empty without one."""
    return "/".join(part for key in ("namespace", "pod") if (part := text(row, key)))


def is_thread(row: Row) -> bool:
    """Whether the row is of one thread, and not the sum of a pod's other threads."""
    return row.get("tid") is not None


def thread_name(row: Row) -> str:
    """Return a thread's name, or the number of a pod's other threads."""
    return text(row, "comm") if is_thread(row) else f"{count(row, 'threads') or 0} others"


def layer_of(row: Row) -> str:
    """Return a thread's layer, and the expected one if that is another. ``?`` marks inference.

    Without an engine the expected layer is in brackets.
    """
    layer, expected = text(row, "layer"), text(row, "expected_layer")
    if not layer:
        return f"({expected})" if expected else ""
    marked = f"{layer}?" if row.get("layer_is_known") is False else layer
    return marked if expected in ("", layer) else f"{marked} (should be {expected})"


def headline(document: Row) -> str:
    """Return the node, its mode with the reason, the plan's generation, the engine, the time."""
    state = " ".join(part for key in ("mode", "reason") if (part := text(document, key)))
    return (
        f"{text(document, 'node')}  {state}  generation {count(document, 'generation') or 0}  "
        f"{text(document, 'engine') or 'no engine'}  {text(document, 'at')}"
    )


def pressure_of(document: Row, pod: str = "", resource: str = "cpu") -> float | None:
    """Return the pressure of a pod or the node: the 10 s average of ``some``, as a ratio."""
    pressure = table(document, "pressure")
    place = table(table(pressure, "pods"), pod) if pod else table(pressure, "node")
    return number(table(table(place, resource), "some"), "avg10")


def cpu_list(cpus: Iterable[int]) -> str:
    """Return CPU ids in the kernel's list format: ``0-3,8``."""
    runs: list[list[int]] = []
    for cpu in sorted({*cpus}):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1][1:] = [cpu]
        else:
            runs.append([cpu])
    return ",".join("-".join(map(str, run)) for run in runs)
