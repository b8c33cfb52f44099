"""Variants of a profile that differ in one parameter of one thread group."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from temper_plugin_trainer.refining.profile_table import Table, toml_of

TREATMENTS = ("exclusive", "latency", "boost", "normal", "yield")
"""Strongest first. A climb goes from one to the next."""
OWN_LAYER = TREATMENTS[0]
SERVING = ("latency", "boost")
SLICED = TREATMENTS[:2]
"""Treatments with a slice of their own."""
LATENCY_SLICE_US = 1_000
"""The slice of a latency group that has none of its own."""
FIRST_SLICES_US = (1_000, 20_000)
"""Tried for an exclusive group without a slice, which has that of its tier."""
SLICE_LIMITS_US = (100, 1_000_000)
FIRST_WEIGHTS = (50, 200)
WEIGHT_LIMITS = (1, 10_000)
LONGEST_ID = 63
STOCK = "the stock scheduler"
MILLIS = 1_000
THOUSANDTHS = 1_000

Group = dict[str, Any]


@frozen
class Variant:
    """A profile of a climb, and the one change by which it differs from its origin.

    ``table`` has no evidence, and an id of its own: pods with the installed profile of the same id
    must not share its layers. ``is_stock`` is the stock scheduler, under which no profile counts.
    """

    change: str = field(eq=False)
    table: Table = field(eq=False, repr=False)
    is_stock: bool = field(default=False, eq=False)
    text: str = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "text", STOCK if self.is_stock else toml_of(self.table))

    @property
    def key(self) -> str:
        """The start of the SHA-256 of its text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]

    @property
    def groups(self) -> Sequence[Group]:
        """Its thread groups."""
        return tuple(self.table["thread_groups"])

    @property
    def layer_needs(self) -> frozenset[tuple[object, ...]]:
        """Its needs of the engine's layers, beyond those of the tiers.

        Variants with equal needs differ by hints and nice values alone, so that a change from one
        to the other needs no engine.
        """
        if self.is_stock:
            return frozenset({(STOCK,)})
        needs: set[tuple[object, ...]] = {
            (group["name"], *(group.get(key) for key in ("cpu_fraction", "slice_us", "weight")))
            for group in self.groups
            if treatment_of(group) == OWN_LAYER
        }
        slices = [
            group.get("slice_us", LATENCY_SLICE_US)
            for group in self.groups
            if treatment_of(group) == SLICED[1]
        ]
        if slices:
            needs.add(("the tier's slice", min(slices)))
        return frozenset(needs)

    def exclusive_cores(self, request_millis: int | None) -> Mapping[str, int]:
        """Return the whole cores of each exclusive group. Empty if the request is unknown."""
        if request_millis is None:
            return {}
        return {
            str(group["name"]): _cores(group.get("cpu_fraction", 1.0), request_millis)
            for group in self.groups
            if treatment_of(group) == OWN_LAYER
        }


def treatment_of(group: Group) -> str:
    """Return the treatment of *group*."""
    return str(group.get("treatment", "normal"))


def started(table: Table) -> Variant:
    """Return the profile of *table* as the first candidate of a climb."""
    return Variant("the whole profile", _on_trial(table))


def other_starts(table: Table) -> tuple[Variant, ...]:
    """Return other first candidates for a profile with treatments that were not chosen by hand.

    Threads that compute may be the work, or noise beside it. So there are candidates in which they
    yield. Those that are in force by hints and nice values alone come first.
    """
    start = started(table)
    serves = any(treatment_of(group) in SERVING for group in start.groups)
    computing = ("yield",) if serves else ("boost", "yield")
    pairs = [(each, "boost") for each in computing] + [(each, "latency") for each in computing]
    made = [Variant(_named(*pair), _retreated(start.table, *pair)) for pair in pairs]
    known = {start.key, tiers_only(table).key}
    return tuple({each.key: each for each in made if each.key not in known}.values())


def _named(computing: str, serving: str) -> str:
    return f"the whole profile, computing threads {computing}, serving ones {serving}"


def _retreated(table: Table, computing: str, serving: str) -> Table:
    """Return *table* with these treatments. Computing threads without cores are a normal group."""
    instead = {OWN_LAYER: computing, "normal": computing, **dict.fromkeys(SERVING, serving)}
    changed = [
        _treated(group, instead[treatment_of(group)])
        if group.get("match") and treatment_of(group) in instead
        else group
        for group in table["thread_groups"]
    ]
    return {**table, "thread_groups": changed}


def tiers_only(table: Table) -> Variant:
    """Return the baseline: a profile without treatments for the same pods.

    A trial replaces the profile that the pods have, so the baseline is a trial too.
    """
    rest = {"name": "rest", "treatment": "normal"}
    return Variant("the tier alone", {**_on_trial(table), "thread_groups": [rest]})


def stock(table: Table) -> Variant:
    """Return the stock scheduler as an arm for the pods of *table*."""
    return Variant(STOCK, tiers_only(table).table, is_stock=True)


def _on_trial(table: Table) -> Table:
    kept = {key: value for key, value in table.items() if key != "evidence"}
    return {**kept, "id": f"train-{table['id']}"[:LONGEST_ID].rstrip("-")}


def neighbours(origin: Variant, request_millis: int | None = None) -> tuple[Variant, ...]:
    """Return the variants that differ from *origin* in one parameter.

    Those that need the same layers come first. *request_millis* is the pod's CPU request, with
    which fractions go by whole cores.
    """
    made = [
        Variant(change, _with(origin.table, position, changed))
        for position, group in enumerate(origin.groups)
        for change, changed in _changes(group, request_millis)
    ]
    needs = origin.layer_needs
    return tuple(sorted(made, key=lambda variant: variant.layer_needs != needs))


def _with(table: Table, position: int, changed: Group) -> Table:
    groups = list(table["thread_groups"])
    groups[position] = changed
    return {**table, "thread_groups": groups}


def _changes(group: Group, request_millis: int | None) -> Iterator[tuple[str, Group]]:
    """Yield the changed groups, each with a sentence on the change."""
    name, treatment = group["name"], treatment_of(group)
    for other in _beside(treatment):
        yield f"{name}: {treatment} -> {other}", _treated(group, other)
    if treatment == OWN_LAYER:
        for fraction in _fractions(group.get("cpu_fraction"), request_millis):
            yield _changed(group, "cpu_fraction", fraction)
        for weight in _doubled(group.get("weight"), FIRST_WEIGHTS, WEIGHT_LIMITS):
            yield _changed(group, "weight", weight)
    if treatment in SLICED:
        first = FIRST_SLICES_US if treatment == OWN_LAYER else _halved(LATENCY_SLICE_US)
        for slice_us in _doubled(group.get("slice_us"), first, SLICE_LIMITS_US):
            yield _changed(group, "slice_us", slice_us)


def _changed(group: Group, key: str, value: float) -> tuple[str, Group]:
    before = group.get(key, "default")
    return f"{group['name']}: {key} {before} -> {value:g}", {**group, key: value}


def _treated(group: Group, treatment: str) -> Group:
    """Return *group* with another treatment, without the keys that this does not take."""
    dropped = set[str]() if treatment == OWN_LAYER else {"cpu_fraction", "weight"}
    if treatment not in SLICED:
        dropped.add("slice_us")
    return {**{key: group[key] for key in group if key not in dropped}, "treatment": treatment}


def _beside(treatment: str) -> Iterator[str]:
    """Yield the treatments next to *treatment*, the stronger one first."""
    place = TREATMENTS.index(treatment)
    yield from TREATMENTS[max(0, place - 1) : place]
    yield from TREATMENTS[place + 1 : place + 2]


def _fractions(fraction: float | None, request_millis: int | None) -> Iterator[float]:
    """Yield the fractions with a core more and a core less. None if the request is unknown."""
    if request_millis is None:
        return
    now = 1.0 if fraction is None else fraction
    cores, most = _cores(now, request_millis), _cores(1.0, request_millis)
    for each in (cores + 1, cores - 1):
        if 0 < each <= most:
            yield math.floor(THOUSANDTHS * min(1.0, each * MILLIS / request_millis)) / THOUSANDTHS


def _cores(fraction: float, request_millis: int) -> int:
    return math.ceil(round(request_millis * fraction / MILLIS, 6))


def _doubled(value: int | None, first: tuple[int, int], limits: tuple[int, int]) -> Iterator[int]:
    wanted = first if value is None else _halved(value)
    least, most = limits
    yield from (each for each in wanted if least <= each <= most)


def _halved(value: int) -> tuple[int, int]:
    return value // 2, value * 2
