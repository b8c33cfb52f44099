"""The formats of results: the option -o of a command, and documents as JSON or YAML.

A command distinguishes only tables and documents: YAML is a way to write a document. So ``-o yaml``
reaches a command as ``json``, and ``document_text`` writes YAML for it.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import click

TABLE, JSON, YAML = "table", "json", "yaml"
_WRITES_YAML = "temper_core.result_formats.writes_yaml"
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$")
"""A number of YAML 1.2 (section 10.3.2), of which PyYAML, a reader of YAML 1.1, knows less."""
_OCTAL = re.compile(r"0o[0-7]+$")

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class OutputFormat(click.Choice[str]):
    """A choice of formats. Where ``json`` is one, ``yaml`` is too, and is read as ``json``."""

    def __init__(self, formats: Sequence[str]) -> None:
        after_json = list(formats).index(JSON) + 1
        super().__init__([*formats[:after_json], YAML, *formats[after_json:]])

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        """Return the format, ``json`` for both kinds of document. Fail for an unknown one."""
        chosen = super().convert(value, param, ctx)
        if ctx is not None:
            ctx.meta[_WRITES_YAML] = chosen == YAML
        return JSON if chosen == YAML else chosen


def output_formats(
    *formats: str,
    default: str = TABLE,
    help: str | None = None,  # noqa: A002 - click's name
) -> Callable[[Decorated], Decorated]:
    """Return the option -o, with YAML beside JSON. *formats* are those that the command knows."""
    return click.option(
        "-o",
        "--output",
        type=OutputFormat(formats or (TABLE, JSON)),
        default=default,
        show_default=True,
        help=help,
    )


def document_text(value: object) -> str:
    """Return *value* as JSON, or as YAML if the running command got ``-o yaml``.

    Both are ASCII with escapes, so they keep every character on every terminal.
    """
    import json  # noqa: PLC0415 - slow

    text = json.dumps(value, indent=2)
    return _yaml(json.loads(text)).removesuffix("\n") if writes_yaml() else text


def line_text(value: object) -> str:
    """Return *value* as one of a stream: a line of JSON, or a YAML document of its own."""
    import json  # noqa: PLC0415 - slow

    return f"---\n{document_text(value)}" if writes_yaml() else json.dumps(value)


def writes_yaml() -> bool:
    """Return whether the running command got ``-o yaml``."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(_WRITES_YAML))


def _yaml(value: object) -> str:
    import yaml  # noqa: PLC0415 - slow, and for YAML only

    options: dict[str, Any] = {"sort_keys": False, "width": 100}
    fast = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    try:
        return str(yaml.dump(value, Dumper=_careful(fast), **options))
    except UnicodeEncodeError:  # libyaml takes no lone surrogate, which a thread's name may hold
        return str(yaml.dump(value, Dumper=_careful(yaml.SafeDumper), **options))


@lru_cache
def _careful(dumper: type[Any]) -> type[Any]:
    """Return *dumper*, which also quotes texts that are numbers for readers of YAML 1.2 alone."""
    careful: Any = type("Dumper", (dumper,), {})
    careful.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
    careful.add_implicit_resolver("tag:yaml.org,2002:int", _OCTAL, ["0"])
    made: type[Any] = careful
    return made
