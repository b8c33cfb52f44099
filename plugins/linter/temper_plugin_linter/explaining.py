"""``temper lint --explain``: the meaning of an invariant, and the remedy of a violation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from temper_core import InputError, did_you_mean, violation_id
from temper_core.console import folded, shown
from temper_plugin_linter.limits import Limits
from temper_plugin_linter.rules import PLUGIN_HEALTH, RULES, Rule, rule_named

Json = Mapping[str, Any]
LABEL_WIDTH = 14
"""Columns before the texts."""


@frozen
class Explained:
    """An invariant and its current violations.

    Attributes:
        rule: None for an invariant of another plugin.
        other: Name, plugin, severity and why of that, None if the agent did not list it.

    """

    rule: Rule | None
    standing: Sequence[Json] = ()
    asked_id: str = ""
    other: Json | None = None


def is_invariant(name: str) -> bool:
    """Whether *name* is an invariant that can be explained without an agent."""
    return rule_named(name) is not None


def meant_invariant(name: str, others: Iterable[str] = ()) -> str:
    """Return the end of a message on *name*, which is no invariant: which was meant, or nothing."""
    return did_you_mean(name, (*(rule.name for rule in (*RULES, PLUGIN_HEALTH)), *others))


def find(asked: str, standing: Sequence[Json], others: Mapping[str, Json]) -> Explained:
    """Find the invariant or the violation that *asked* names, with the current violations.

    *others* are the invariants of other plugins, by name.

    Raises InputError if it is neither.
    """
    rule = rule_named(asked)
    if rule is not None or asked in others:
        own = [violation for violation in standing if violation.get("invariant") == asked]
        return Explained(rule, own, other=others.get(asked))
    matching = [violation for violation in standing if id_of(violation) == asked]
    invariant = asked.rpartition("-")[0]
    if not matching and not is_invariant(invariant) and invariant not in others:
        known = (*(rule.name for rule in (*RULES, PLUGIN_HEALTH)), *map(shown, others))
        raise InputError(
            f"{asked!r} is neither an invariant nor the id of a current violation; "
            f"the invariants are {', '.join(known)}{meant_invariant(asked, others)}"
        )
    return Explained(rule_named(invariant), matching, asked, others.get(invariant))


def id_of(violation: Json) -> str:
    """Return a violation's id. It is computed for answers of older agents, which have none."""
    present_id = violation.get("id")
    invariant, subject = violation.get("invariant", ""), violation.get("subject", "")
    return str(present_id) if present_id else violation_id(str(invariant), str(subject))


def explained_lines(explained: Explained, limits: Limits, windows: str) -> Iterator[str]:
    """Yield the explanation line by line. *windows* explains when violations begin and end."""
    if explained.rule is not None:
        yield from _rule_lines(explained.rule, limits, windows)
    elif explained.other is not None:
        yield from _other_lines(explained.other, windows)
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
    invariant: dict[str, Any] | None = None
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
    elif explained.other is not None:
        invariant = {**explained.other, "windows": windows}
    return {"invariant": invariant, "violations": list(explained.standing)}


def _rule_lines(rule: Rule, limits: Limits, windows: str) -> Iterator[str]:
    yield f"{rule.name} ({rule.severity}), judged {rule.judged}"
    yield _labelled("promise", rule.what)
    yield _labelled("broken when", rule.when_under(limits))
    if rule.check is not None:
        yield _labelled("", windows)
    yield _labelled("why", rule.why)
    yield _labelled("what to do", rule.todo)
    for name in rule.thresholds:
        yield _labelled("threshold", f"{name} = {getattr(limits, name)}")


def _other_lines(other: Json, windows: str) -> Iterator[str]:
    name, severity, plugin = (shown(other.get(key, "")) for key in ("name", "severity", "plugin"))
    yield f"{name} ({severity}), of the plugin {plugin}"
    yield _labelled("why", shown(other.get("why", "")))
    yield _labelled("", windows)


def _labelled(label: str, text: str) -> str:
    return f"  {label:11} {folded(text, LABEL_WIDTH)}"


def _violation_lines(violation: Json) -> Iterator[str]:
    yield f"{shown(id_of(violation))}: {shown(violation.get('subject', ''))}"
    yield f"  {folded(shown(violation.get('message', '')), 2)}"
    yield _labelled("since", shown(violation.get("since", "")))
    evidence = violation.get("evidence")
    for name, value in evidence.items() if isinstance(evidence, Mapping) else ():
        yield _labelled(shown(name), _number(value))
    yield _labelled("what to do", shown(violation.get("fix", "")))


def _number(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else shown(value)
