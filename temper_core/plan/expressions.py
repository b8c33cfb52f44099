"""Join addresses of cgroups into regular expressions, as few as the engine's bound allows.

The engine's expressions see the absolute directory without the trailing slash, unanchored.
"""

from collections import defaultdict
from collections.abc import Iterable
from operator import itemgetter

from temper_core.engine.regex_syntax import LARGEST_COST
from temper_core.plan.addresses import CGROUP_MOUNT, Address, AddressForm
from temper_core.records.engine_matchers import Matcher

ESCAPES = str.maketrans({letter: rf"\{letter}" for letter in r"\.+*?()|[]{}^$"})
SYNTAX_COST = 64
"""What an expression has besides the texts of addresses costs less, for each stem."""


def expressions(addresses: Iterable[Address]) -> tuple[Matcher, ...]:
    """Return regular expressions, one of which holds at each of *addresses*."""
    bundles: list[list[Address]] = []
    room, last = 0, None
    # Neighbours share a stem, which an expression has once.
    for stem, rest, address in sorted(map(_divided, addresses), key=itemgetter(0)):
        stem_cost = len(stem[1].encode()) + SYNTAX_COST
        cost = len(rest.encode()) + (1 if stem == last else stem_cost)
        if cost > room:
            bundles.append([])
            room, cost = LARGEST_COST, len(rest.encode()) + stem_cost
        bundles[-1].append(address)
        room, last = room - cost, stem
    return tuple(map(_one_expression, bundles))


Stem = tuple[str, str]


def _divided(address: Address) -> tuple[Stem, str, Address]:
    """Return the form of *address* and the path that it shares with others, and its own text."""
    shared, rest = address.within, address.text
    if address.form is AddressForm.PATH:
        shared, _, rest = rest.rpartition("/")
    return (address.form.name, shared), rest, address


def _one_expression(addresses: Iterable[Address]) -> Matcher:
    by_form: defaultdict[tuple[AddressForm, str], set[str]] = defaultdict(set)
    for address in addresses:
        by_form[address.form, address.within].add(address.text)
    parts = [
        rf"^{_literal(CGROUP_MOUNT)}/{_literal(within)}/.*{_EXPRESSIONS[form](texts)}"
        if within
        else _EXPRESSIONS[form](texts)
        for (form, within), texts in by_form.items()
    ]
    return Matcher("CgroupRegex", "|".join(sorted(parts)))


def _paths(texts: set[str]) -> str:
    by_parent: defaultdict[str, list[str]] = defaultdict(list)
    for text in sorted(texts):
        parent, slash, name = text.rpartition("/")
        by_parent[parent + slash].append(name)
    # Writing a parent once halves the length of a full node's expression.
    places = [f"{_literal(parent)}{_any(names)}" for parent, names in by_parent.items()]
    return rf"^{_literal(CGROUP_MOUNT)}/(?:{'|'.join(places)})(?:/|$)"


def _slices(texts: set[str]) -> str:
    names = sorted(text.removeprefix("pod").removesuffix(".slice") for text in texts)
    return rf"pod{_any(names)}\.slice(?:/|$)"


def _directories(texts: set[str]) -> str:
    names = sorted(text.removeprefix("pod") for text in texts)
    return rf"/pod{_any(names)}(?:/|$)"


def _containers(texts: set[str]) -> str:
    return _any(sorted(texts))


_EXPRESSIONS = {
    AddressForm.PATH: _paths,
    AddressForm.SYSTEMD: _slices,
    AddressForm.CGROUPFS: _directories,
    AddressForm.CONTAINER: _containers,
}


def _any(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(_literal(name) for name in names)})"


def _literal(text: str) -> str:
    # Python's own escape also escapes blanks, which the engine's expressions do not take.
    return text.translate(ESCAPES)
