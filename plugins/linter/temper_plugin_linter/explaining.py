"""``temper lint --explain``: the meaning of an invariant, and the remedy of a violation."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from temper_core import InputError, violation_id
from temper_core.console import shown
from temper_plugin_linter.limits import Limits
from temper_plugin_linter.rules import PLUGIN_HEALTH, RULES, Rule, rule_named

Json = Mapping[str, Any]


@frozen
class Explained:
    """An invariant (None for another plugin's, which has no rule here), and its violations."""

    rule: Rule | None
    standing: Sequence[Json] = ()
    asked_id: str = ""


def is_invariant(name: str) -> bool:
    """Whether *name* is an invariant that can be explained without an agent."""
    return rule_named(name) is not None


def find(asked: str, standing: Sequence[Json]) -> Explained:
    """Find the invariant or the violation that *asked* names, with the current violations.

    Raises InputError if it is neither.
    """
    rule = rule_named(asked)
    if rule is not None:
        return Explained(
            rule, [violation for violation in standing if violation.get("invariant") == asked]
        )
    matching = [violation for violation in standing if id_of(violation) == asked]
    invariant = asked.rpartition("-")[0]
    if not matching and not is_invariant(invariant):
        known = ", ".join(violation.name for violation in (*RULES, PLUGIN_HEALTH))
        raise InputError(
            f"{asked!r} is neither an invariant nor the id of a current violation; "
            f"the invariants are {known}"
        )
    return Explained(rule_named(invariant), matching, asked)


def id_of(violation: Json) -> str:
    """Return a violation's id. It is computed for answers of older agents, which have none."""
    present_id = violation.get("id")
    invariant, subject = violation.get("invariant", ""), violation.get("subject", "")
    return str(present_id) if present_id else violation_id(str(invariant), str(subject))


def explained_lines(explained: Explained, limits: Limits, windows: str) -> Iterator[str]:
    """Yield the explanation line by line. *windows* explains when violations begin and end."""
    if explained.rule is not None:
        yield from _rule_lines(explained.rule, limits, windows)
    for violation in explained.standing:
        yield ""
        yield from _violation_lines(violation)
    if not explained.standing:
        yield ""
        suffix = f" with the id {explained.asked_id}" if explained.asked_id else ""
        yield f"No current violation{suffix}."


def explained_document(explained: Explained, limits: Limits, windows: str) -> dict[str, Any]:
    """Return the explanation as a JSON document."""
    rule = explained.rule
    invariant = None
    if rule is not None:
        invariant = {
            "name": rule.name,
            "severity": str(rule.severity),
            "judged": rule.judged,
            "what": rule.what,
            "when": rule.when_under(limits),
            "windows": windows if rule.check else "",
            "why": rule.why,
            "todo": rule.todo,
            "thresholds": {name: getattr(limits, name) for name in rule.thresholds},
        }
    return {"invariant": invariant, "violations": list(explained.standing)}


def _rule_lines(rule: Rule, limits: Limits, windows: str) -> Iterator[str]:
    yield f"{rule.name} ({rule.severity}), judged {rule.judged}"
    yield f"  promise     {rule.what}"
    yield f"  broken when {rule.when_under(limits)}"
    if rule.check is not None:
        yield f"              {windows}"
    yield f"  why         {rule.why}"
    yield f"  what to do  {rule.todo}"
    for name in rule.thresholds:
        yield f"  threshold   {name} = {getattr(limits, name)}"


def _violation_lines(violation: Json) -> Iterator[str]:
    yield f"{shown(id_of(violation))}: {shown(violation.get('subject', ''))}"
    yield f"  {shown(violation.get('message', ''))}"
    yield f"  since       {shown(violation.get('since', ''))}"
    evidence = violation.get("evidence")
    for name, value in evidence.items() if isinstance(evidence, Mapping) else ():
        yield f"  {shown(name):11} {_number(value)}"
    yield f"  what to do  {shown(violation.get('fix', ''))}"


def _number(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else shown(value)
