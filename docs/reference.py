"""What the documentation says of the code, taken from the code. Cog runs these."""

import inspect
from collections.abc import Iterator

from temper_core import hookspecs
from temper_core.plugin_host import RECORDS


def hook_names() -> Iterator[str]:
    """Yield the names of all hooks, in the order in which the module defines them."""
    for name, spec in vars(hookspecs).items():
        if hasattr(spec, f"{hookspecs.PROJECT}_spec"):
            yield name


def hook_heading(name: str) -> str:
    """Say the hook's exact signature, as a plugin implements it."""
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
        said = line.strip().replace("``", "`")
        lines.append(f"  {said}" if line.startswith(" ") else f"- **{said}**")
    return "\n".join(lines)
