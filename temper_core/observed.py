"""What commands read of an observation: whatever it says, nothing here raises.

An observation may come from an agent of another version, or from a file that is none.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Row = Mapping[str, Any]


def rows(document: object, key: str) -> list[Row]:
    """Return the objects in the list at *key*."""
    found = document.get(key) if isinstance(document, Mapping) else None
    return [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []


def table(document: object, key: str) -> Row:
    """Return the object at *key*, an empty one where there is none."""
    found = document.get(key) if isinstance(document, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def text(row: Row, key: str) -> str:
    """Return the text at *key*, empty where there is none."""
    found = row.get(key)
    return found if isinstance(found, str) else ""


def number(row: Row, key: str) -> float | None:
    """Return the number at *key* as far as it is finite."""
    found = row.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    try:
        return float(found) if math.isfinite(found) else None
    except OverflowError:
        return None


def count(row: Row, key: str) -> int | None:
    """Return the number at *key*; None for -1, which says that nobody can tell."""
    found = number(row, key)
    return None if found is None or found < 0 else int(found)


def whole_numbers(row: Row, key: str) -> tuple[int, ...]:
    """Return the whole numbers in the list at *key*, such as CPU ids."""
    found = row.get(key)
    return tuple(integers(found)) if isinstance(found, list) else ()


def integers(found: Iterable[object]) -> Iterator[int]:
    """Pass on the whole numbers among *found*."""
    return (each for each in found if isinstance(each, int) and not isinstance(each, bool))


def pod_key(row: Row) -> str:
    """Name the pod of a row: ``namespace/name``, or a workload's bare name. Empty without one."""
    return "/".join(part for key in ("namespace", "pod") if (part := text(row, key)))


def is_thread(row: Row) -> bool:
    """Whether the row is of one thread, and not of all the others of a pod."""
    return row.get("tid") is not None


def thread_name(row: Row) -> str:
    """Name a thread, or say how many a pod has that are not listed."""
    return text(row, "comm") if is_thread(row) else f"{count(row, 'threads') or 0} others"


def layer_of(row: Row) -> str:
    """Say where a thread is: ``?`` marks what is inferred, and where it should be if elsewhere.

    In brackets, where the plan would have it while nobody puts it anywhere.
    """
    layer, expected = text(row, "layer"), text(row, "expected_layer")
    if not layer:
        return f"({expected})" if expected else ""
    told = f"{layer}?" if row.get("layer_is_known") is False else layer
    return told if expected in ("", layer) else f"{told} (should be {expected})"


def headline(document: Row) -> str:
    """Return the node, its mode with the reason, the plan's generation, the engine, the time."""
    state = " ".join(part for key in ("mode", "reason") if (part := text(document, key)))
    return (
        f"{text(document, 'node')}  {state}  generation {count(document, 'generation') or 0}  "
        f"{text(document, 'engine') or 'no engine'}  {text(document, 'at')}"
    )


def pressure_of(document: Row, pod: str = "", resource: str = "cpu") -> float | None:
    """Return the 10 s average of ``some`` of a pod, or of the node, as a ratio."""
    pressure = table(document, "pressure")
    place = table(table(pressure, "pods"), pod) if pod else table(pressure, "node")
    return number(table(table(place, resource), "some"), "avg10")


def cpu_list(cpus: Iterable[int]) -> str:
    """Write CPU ids as the kernel does: ``0-3,8``."""
    runs: list[list[int]] = []
    for cpu in sorted({*cpus}):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1][1:] = [cpu]
        else:
            runs.append([cpu])
    return ",".join("-".join(map(str, run)) for run in runs)
