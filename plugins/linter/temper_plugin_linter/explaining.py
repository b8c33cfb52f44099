"""``temper lint --explain``: what an invariant means, and what to do about a violation of it."""

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
    """An invariant (None where a plugin's own says nothing of itself), and who breaks it now."""

    rule: Rule | None
    standing: Sequence[Json] = ()
    asked_id: str = ""


def is_invariant(name: str) -> bool:
    """Whether *name* is an invariant that can be explained without asking an agent."""
    return rule_named(name) is not None


def find(asked: str, standing: Sequence[Json]) -> Explained:
    """Find what *asked* names, among the violations that stand: an invariant, or one violation.

    Raises InputError where it is neither.
    """
    rule = rule_named(asked)
    if rule is not None:
        return Explained(rule, [each for each in standing if each.get("invariant") == asked])
    found = [each for each in standing if id_of(each) == asked]
    invariant = asked.rpartition("-")[0]
    if not found and not is_invariant(invariant):
        known = ", ".join(each.name for each in (*RULES, PLUGIN_HEALTH))
        raise InputError(
            f"neither an invariant nor a violation that stands is called {asked!r}; "
            f"the invariants are {known}"
        )
    return Explained(rule_named(invariant), found, asked)


def id_of(violation: Json) -> str:
    """Return a violation's id. An older answer has none, and it follows from the subject."""
    known = violation.get("id")
    invariant, subject = violation.get("invariant", ""), violation.get("subject", "")
    return str(known) if known else violation_id(str(invariant), str(subject))


def explained_lines(explained: Explained, limits: Limits, windows: str) -> Iterator[str]:
    """Yield the explanation line by line. *windows* says when a violation stands and clears."""
    if explained.rule is not None:
        yield from _rule_lines(explained.rule, limits, windows)
    for violation in explained.standing:
        yield ""
        yield from _violation_lines(violation)
    if not explained.standing:
        yield ""
        asked = f" with the id {explained.asked_id}" if explained.asked_id else ""
        yield f"No violation of it{asked} stands."


def explained_document(explained: Explained, limits: Limits, windows: str) -> dict[str, Any]:
    """Say the same in JSON."""
    rule = explained.rule
    told = None
    if rule is not None:
        told = {
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
    return {"invariant": told, "violations": list(explained.standing)}


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
    for name, seen in evidence.items() if isinstance(evidence, Mapping) else ():
        yield f"  {shown(name):11} {_number(seen)}"
    yield f"  what to do  {shown(violation.get('fix', ''))}"


def _number(seen: object) -> str:
    return f"{seen:.3g}" if isinstance(seen, float) else shown(seen)
