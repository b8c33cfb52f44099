"""Reads the agent's observations and the engine's configuration, and finds leftovers."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]

# Places in which an agent or an engine could leave files.
CGROUPS = "/sys/fs/cgroup"
PLACES = ("/run", "/etc/temper", "/var/lib/temper", "/sys/fs/bpf", CGROUPS)
OWN = Path("/run/demo")
# The record of events and the history of demand outlive the agent on purpose.
KEPT = {
    "/var/lib/temper/events.jsonl",
    "/var/lib/temper/instruments/rightsizer/demand.sqlite",
}


def planned_sizes(config: Sequence[Json]) -> dict[str, tuple[int, int]]:
    """Return smallest and largest number of CPUs of every layer that may own some."""
    sizes = {}
    for layer in config:
        (kind,) = layer["kind"].values()
        if kind.get("cpus_range"):
            least, most = kind["cpus_range"]
            sizes[layer["name"]] = (least, most)
    return sizes


def size_faults(observation: Json, sizes: Mapping[str, tuple[int, int]]) -> list[str]:
    """Return the layers that own too many or too few CPUs, split cores, or others' CPUs."""
    faults: list[str] = []
    owned: set[int] = set()
    for layer in observation["layers"]:
        name, cpus = layer["name"], set(layer["cpus"])
        if name not in sizes:
            continue
        least, most = sizes[name]
        if not least <= len(cpus) <= most:
            faults.append(f"{name} has {len(cpus)} CPUs, not {least} to {most}")
        if any(
            cpus & set(core) not in (set(), set(core))
            for core in observation["machine"]["siblings"]
        ):
            faults.append(f"{name} tears a core: {sorted(cpus)}")
        if owned & cpus:
            faults.append(f"{name} shares {sorted(owned & cpus)}")
        owned |= cpus
    return faults


def layer_of(observation: Json, pod: str) -> Json:
    """Return the layer of all threads of a pod, or an empty string if they differ."""
    names = {thread["layer"] for thread in observation["threads"] if thread["pod"] == pod}
    for layer in observation["layers"]:
        if names == {layer["name"]}:
            return dict(layer)
    return {"name": f"not one layer: {sorted(names)}", "cpus": [], "tasks": 0}


def leftovers() -> Iterator[str]:
    """Yield every file and socket below the places, and every cgroup."""
    for place in PLACES:
        for path in Path(place).rglob("*"):
            if path.is_dir() == (place == CGROUPS) and OWN not in path.parents:
                yield str(path)
