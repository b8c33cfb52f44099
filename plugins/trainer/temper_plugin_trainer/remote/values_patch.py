"""A trained profile as values for the chart."""

import json
from collections.abc import Sequence

INDENT = 6


def values_patch(profile_id: str, profile: str, comments: Sequence[str]) -> str:
    """Return values of the chart that add *profile*, as YAML. Without a profile, comments alone."""
    lines = [f"# {comment}" for comment in comments]
    if profile:
        lines += ["agent:", "  profiles:", f"    {profile_id}.toml: {_scalar(profile)}"]
    return "\n".join(lines) + "\n"


def _scalar(text: str) -> str:
    """Return *text* as a block, or as a quoted line if a block could not hold it."""
    lines = text.splitlines()
    is_plain = all(line.isascii() and line.isprintable() for line in lines)
    if not is_plain or not text.endswith("\n") or text.startswith((" ", "\n")):
        return json.dumps(text)
    return "|\n" + "\n".join(f"{' ' * INDENT}{line}" if line else "" for line in lines)
