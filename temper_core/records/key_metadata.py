"""Declare the keys of a profile: their help, JSON Schema and validators."""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import Attribute


def key_help(help: str, **schema: Any) -> Mapping[str, Any]:  # noqa: A002, ANN401 - attrs' own way
    """Return a key's metadata: the help that editors show, and its JSON Schema."""
    return {"help": help, "schema": schema}


def passes(require: Callable[[str], None]) -> Callable[[object, "Attribute[str]", str], None]:
    """Make a validator of *require*. Its ValueError is raised again with the key's name."""

    def check(_: object, attribute: "Attribute[str]", value: str) -> None:
        try:
            require(value)
        except ValueError as error:
            raise ValueError(f"{attribute.name!r} {error}") from error

    return check
