"""Generates the table of event kinds. Cog writes it into ``events.md``."""

from temper_core.events.kinds import KINDS


def events_reference() -> str:
    """Render every kind of event that the agent itself records, with its level and meaning."""
    rows = [f"| `{kind.name}` | {kind.level} | {kind.summary} |" for kind in KINDS]
    return "\n".join(["| kind | level | meaning |", "| --- | --- | --- |", *rows])
