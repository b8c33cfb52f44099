"""Generates the reference of hooks from the code. Cog runs these functions."""

import inspect
from collections.abc import Iterator

from temper_core import hookspecs
from temper_core.plugin_host import RECORDS


def hook_names() -> Iterator[str]:
    """Yield the names of all hooks, in the module's order."""
    for name, spec in vars(hookspecs).items():
        if hasattr(spec, f"{hookspecs.PROJECT}_spec"):
            yield name


def hook_heading(name: str) -> str:
    """Return the hook's exact signature, as a plugin implements it."""
    arguments = ", ".join(inspect.signature(getattr(hookspecs, name)).parameters)
    return f"{name}({arguments}) -> list[{RECORDS[name].__name__}]"


def hook_reference() -> str:
    """Render every hook as a heading, its first sentence, and its four answers."""
    return "\n".join(f"## `{hook_heading(name)}`\n\n{_words(name)}\n" for name in hook_names())


def _words(name: str) -> str:
    """Turn the docstring's sections into a list that Markdown can render."""
    summary, *sections = (inspect.getdoc(getattr(hookspecs, name)) or "").split("\n\n")
    lines = [summary.replace("``", "`"), ""]
    for line in "\n".join(sections).splitlines():
        text = line.strip().replace("``", "`")
        lines.append(f"  {text}" if line.startswith(" ") else f"- **{text}**")
    return "\n".join(lines)
