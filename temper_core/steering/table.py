"""The plan as the kernel side's table, and the cgroups whose threads user space classifies."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from attrs import evolve, field, frozen

from temper_core.records.plans import LayerPlan
from temper_core.records.steering import OPEN, ScopeKind, SteeredPlace, SteeringRule
from temper_core.steering.kernel import MOST_POLICIES, MOST_RULES, KernelRule, Policy
from temper_core.steering.scopes import PlacedCgroups


@frozen
class SteeringTable:
    """The arguments of ``SteeringKernel.set_table``, and the cgroups they do not fully cover.

    ``judged_here`` are the cgroups with threads that only user space can classify. The kernel side
    applies the first rule to them that it can evaluate. ``omitted`` is the number of cgroups
    without a policy because the table is full. User space classifies their threads.
    """

    policies: Mapping[int, Policy] = field(factory=dict)
    processes: tuple[KernelRule, ...] = ()
    default_hint: int = 0
    judged_here: frozenset[int] = frozenset()
    omitted: int = 0


@frozen
class _Judged:
    """The kernel's rules for one place. ``is_whole`` is false if some rules are missing."""

    rules: tuple[KernelRule, ...]
    otherwise: int
    is_whole: bool


def build_table(plan: LayerPlan, cgroups: PlacedCgroups) -> SteeringTable:
    """Build the table of *plan* for the present cgroups."""
    process_rules = _named_processes(plan)
    judged: dict[int, _Judged] = {}  # by id(place): hashing a place hashes all its rules
    policies: dict[int, Policy] = {}
    omitted = _omitted(cgroups)
    for number, place in cgroups.entries.items():
        if id(place) not in judged:
            judged[id(place)] = _judged(place, plan.hints, process_rules)
        entry = judged[id(place)]
        if number in omitted:
            judged[id(place)] = evolve(entry, is_whole=False)
        else:
            policies[number] = Policy(entry.rules, entry.otherwise, exact=place.scope.exact)
    return SteeringTable(
        policies,
        process_rules.rules,
        plan.hints[OPEN],
        frozenset(_judged_here(cgroups, judged, process_rules)),
        len(omitted),
    )


def _omitted(cgroups: PlacedCgroups) -> AbstractSet[int]:
    """Return the cgroups that have no room in the kernel's table: the deepest.

    A policy covers the cgroups below it too, so that the others of a pod cover most of its threads.
    """
    if len(cgroups.entries) <= MOST_POLICIES:
        return frozenset()
    by_depth = sorted(cgroups.entries, key=lambda number: cgroups.paths[number].count("/"))
    return frozenset(by_depth[MOST_POLICIES:])


def _judged_here(
    cgroups: PlacedCgroups, judged: Mapping[int, _Judged], process_rules: _Judged
) -> Iterator[int]:
    for number, place in cgroups.places.items():
        if not (process_rules if place is None else judged[id(place)]).is_whole:
            yield number


def _named_processes(plan: LayerPlan) -> _Judged:
    """Return the rules of all process scopes in one sequence. The longest name comes first."""
    places = [place for place in plan.steering if place.scope.kind is ScopeKind.PROCESS]
    rules: list[KernelRule] = []
    is_whole = True
    for place in sorted(places, key=lambda place: -len(place.scope.text)):
        mine = _judged(place, plan.hints)
        last = KernelRule(mine.otherwise)
        candidates = (_within(rule, place.scope.text) for rule in (*mine.rules, last))
        rules.extend(rule for rule in candidates if rule is not None)
        is_whole = is_whole and mine.is_whole
    return _bounded(rules, plan.hints[OPEN], is_whole=is_whole)


def _judged(
    place: SteeredPlace, hints: Mapping[str, int], process_rules: _Judged | None = None
) -> _Judged:
    """Return the kernel's rules for a place. *process_rules* may outrank it."""
    first = process_rules if process_rules is not None and not place.outranks_processes else None
    rules: list[KernelRule] = [*first.rules] if first else []
    is_whole = first is None or first.is_whole
    otherwise = hints[OPEN]
    for rule in place.rules:
        if rule.nice:
            is_whole = False  # the kernel side sets hints only
        if not rule.is_for_kernel:
            is_whole = False
        elif rule.match is None and not rule.root_only:
            otherwise = hints[rule.layer]
            break
        else:
            rules.append(_kernel_rule(rule, hints[rule.layer]))
    return _bounded(rules, otherwise, is_whole=is_whole)


def _bounded(rules: Sequence[KernelRule], otherwise: int, *, is_whole: bool) -> _Judged:
    return _Judged(tuple(rules[:MOST_RULES]), otherwise, is_whole and len(rules) <= MOST_RULES)


def _kernel_rule(rule: SteeringRule, hint: int) -> KernelRule:
    match = rule.match
    if match is None:
        return KernelRule(hint, root_only=rule.root_only)
    return KernelRule(
        hint,
        comm=match.comm_prefix or "",
        process=match.process or "",
        leader=match.leader,
        root_only=rule.root_only,
    )


def _within(rule: KernelRule, process: str) -> KernelRule | None:
    """Return the rule restricted to processes of that name, None if it can never match."""
    longer, shorter = sorted((rule.process, process), key=len, reverse=True)
    if not longer.startswith(shorter):
        return None
    return KernelRule(rule.hint, rule.comm, longer, rule.leader, rule.root_only)
