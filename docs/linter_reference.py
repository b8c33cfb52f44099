"""Generates the reference of the linter's invariants. Cog writes it into ``linter.md``."""

from collections.abc import Iterator

from temper_plugin_linter.limits import Limits, meanings
from temper_plugin_linter.rules import PLUGIN_HEALTH, RULES, Rule


def linter_reference() -> str:
    """Render every invariant: its meaning, the condition of a violation, the reason, the remedy."""
    return "\n".join(line for rule in (*RULES, PLUGIN_HEALTH) for line in _section(rule))


def thresholds_reference() -> str:
    """Render every threshold with its default and meaning."""
    rows = [f"| `{name}` | {default} | {means} |" for name, default, means in meanings()]
    return "\n".join(["| key | default | meaning |", "| --- | --- | --- |", *rows])


def _section(rule: Rule) -> Iterator[str]:
    yield f"### `{rule.name}`"
    yield ""
    yield rule.what
    yield ""
    yield f"- **Severity** {rule.severity}. Judged {rule.judged}."
    yield f"- **Broken when** {rule.when_under(Limits())}."
    yield f"- **Why it matters** {rule.why}"
    yield f"- **What to do** {rule.todo}"
    if rule.thresholds:
        yield f"- **Thresholds** {', '.join(f'`{name}`' for name in rule.thresholds)}"
    yield ""
