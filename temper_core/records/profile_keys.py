"""Keys of a profile: what is told of them, and how a value is held against a rule."""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import Attribute


def told(help: str, **schema: Any) -> Mapping[str, Any]:  # noqa: A002, ANN401 - attrs' own way
    """Describe a key: what editors show, and what JSON Schema can say of its values."""
    return {"help": help, "schema": schema}


def passes(require: Callable[[str], None]) -> Callable[[object, "Attribute[str]", str], None]:
    """Make a validator of *require*, whose ValueError is told with the key's name."""

    def check(_: object, attribute: "Attribute[str]", value: str) -> None:
        try:
            require(value)
        except ValueError as error:
            raise ValueError(f"{attribute.name!r} {error}") from error

    return check
