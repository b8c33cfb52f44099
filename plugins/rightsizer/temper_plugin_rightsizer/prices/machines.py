"""The prices of a core and a GiB of a machine, by its type."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from attrs import frozen

from temper_core import fit
from temper_plugin_rightsizer.prices.settings import UNKNOWN, Prices

_AWS = re.compile(r"([a-z0-9-]+)\.(nano|micro|small|medium|large|(\d{0,3})xlarge)")
_GOOGLE = re.compile(r"([a-z0-9]+-[a-z]+)-(\d{1,3})")
_AZURE = re.compile(r"(Standard_[A-Z]{1,2})(\d{1,4})([a-z]*_v\d{1,2})")
_OF_LARGE = {"nano": 1 / 16, "micro": 1 / 8, "small": 1 / 4, "medium": 1 / 2, "large": 1.0}
BY_SETTINGS = "the settings"


@frozen
class Provider:
    """List prices of a provider in one region, with their date and where they were read.

    ``families`` has the price for an hour of the size large, or of one vCPU with its memory
    (``unit``: large, vcpu, azure vcpu). ``machines`` has the types that cost something else.
    """

    name: str
    at: str
    source: str
    unit: str
    families: Mapping[str, float]
    machines: Mapping[str, float] = {}


@frozen
class ListPrices:
    """All list prices."""

    providers: tuple[Provider, ...]


@frozen
class Machine:
    """A node: its machine type, empty if unknown, and its CPUs and GiB of memory."""

    kind: str
    cores: float
    gib: float


@frozen
class MachinePrice:
    """The price of a machine for an hour, and the parts of a core and a GiB in it.

    ``source`` names the source of the price.
    """

    hour: float
    core_hour: float
    gib_hour: float
    source: str


@cache
def list_prices() -> tuple[Provider, ...]:
    """Return the list prices of the package."""
    name = "list_prices.toml"
    content = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return fit(tomllib.loads(content), ListPrices, source=name).providers


def listed(kind: str) -> tuple[float, Provider] | None:
    """Return the list price of a machine type for an hour, and whose it is. None if unknown."""
    for provider in list_prices():
        if kind in provider.machines:
            return provider.machines[kind], provider
        family, units = _size(kind, provider.unit)
        if family in provider.families:
            return provider.families[family] * units, provider
    return None


def priced(machine: Machine, prices: Prices) -> MachinePrice:
    """Return the price of *machine*: by the settings, by the list, or per core and GiB.

    The price is shared out among its cores and GiB by the ratio of ``core_hour`` to ``gib_hour``,
    as no provider prices them apart. Without a ratio all of it is for the cores.
    """
    core, gib = prices.core_hour, prices.gib_hour
    by_parts = machine.cores * core + machine.gib * gib
    if machine.kind in prices.machines:
        hour, source = prices.machines[machine.kind], BY_SETTINGS
    elif found := listed(machine.kind):
        hour = found[0]
        source = f"list price of {found[1].name}, {found[1].at}"
    else:
        return MachinePrice(by_parts, core, gib, UNKNOWN)
    if not by_parts:
        return MachinePrice(hour, hour / machine.cores if machine.cores else 0.0, 0.0, source)
    share = hour / by_parts
    return MachinePrice(hour, core * share, gib * share, source)


def mean_prices(machines: Iterable[tuple[Machine, MachinePrice]]) -> tuple[float, float]:
    """Return what a core and a GiB cost in the mean of all *machines*, by their sizes."""
    known = list(machines)
    cores, gib = (sum(getattr(each, name) for each, _ in known) for name in ("cores", "gib"))
    core_hour = sum(each.cores * price.core_hour for each, price in known)
    gib_hour = sum(each.gib * price.gib_hour for each, price in known)
    return (core_hour / cores if cores else 0.0), (gib_hour / gib if gib else 0.0)


def _size(kind: str, unit: str) -> tuple[str, float]:
    """Return the family of a type, and how many units of its price it is."""
    if unit == "azure vcpu":
        match = _AZURE.fullmatch(kind)
        return (match[1] + match[3], float(match[2])) if match else ("", 0.0)
    if unit == "vcpu":
        match = _GOOGLE.fullmatch(kind)
        return (match[1], float(match[2])) if match else ("", 0.0)
    match = _AWS.fullmatch(kind)
    if match is None:
        return "", 0.0
    return match[1], _OF_LARGE.get(match[2]) or 2.0 * int(match[3] or 1)
