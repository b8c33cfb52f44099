"""The metrics as a page, taken from the table that exports them; cog writes it to metrics.md."""

from temper_core.server.families import DROPPED, FAMILIES


def metrics_reference() -> str:
    """Render every family of the core with its type, labels and meaning."""
    rows = [
        f"| `{family.name}` | {family.kind} | {_labels(family.labels)} | {family.help} |"
        for family in sorted((*FAMILIES, DROPPED), key=lambda family: family.name)
    ]
    return "\n".join(["| metric | type | labels | meaning |", "| --- | --- | --- | --- |", *rows])


def _labels(labels: tuple[str, ...]) -> str:
    return ", ".join(f"`{label}`" for label in labels) or "none"
