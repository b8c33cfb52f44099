"""The engine's types by their Rust names, and the JSON values that fit each."""

from collections.abc import Callable, Mapping

from temper_core.engine.capabilities import Capabilities
from temper_core.engine.config_text import ConfigTable

INTEGERS: Mapping[str, tuple[int, int]] = {
    "i32": (-(2**31), 2**31 - 1),
    "u32": (0, 2**32 - 1),
    "u64": (0, 2**64 - 1),
    "usize": (0, 2**64 - 1),
}
PLACEMENTS = ("Standard", "Sticky", "Floating")
LONGEST_SHOWN = 40


def misfit(kind: str, value: object, capabilities: Capabilities) -> str | None:
    """Return why *value* is not a *kind* for the engine. None if it fits."""
    if kind.startswith("Option<"):
        return None if value is None else misfit(kind[7:-1], value, capabilities)
    if kind.startswith("Vec<"):
        return _list_misfit(kind[4:-1], value, capabilities)
    if "," in kind:
        return _tuple_misfit(kind.strip("()").split(", "), value, capabilities)
    if kind in INTEGERS:
        return _integer_misfit(kind, value)
    if kind in ("LayerGrowthAlgo", "LayerPlacement"):
        variants = capabilities.growth_algos if kind == "LayerGrowthAlgo" else PLACEMENTS
        return _variant_misfit(value, variants)
    noun, fits = _PLAIN[kind]
    return None if fits(value) else f"must be {noun}, not {shown(value)}"


def variant_of(value: object) -> str:
    """Return the name of a unit variant, which the engine also accepts as ``{"Name": null}``."""
    if isinstance(value, ConfigTable) and len(value.pairs) == 1:
        name, content = value.pairs[0]
        empty = content is None or (isinstance(content, ConfigTable) and not content.pairs)
        return name if empty else ""
    return value if isinstance(value, str) else ""


def shown(value: object) -> str:
    """Return *value* as short text for a message."""
    if isinstance(value, ConfigTable):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def is_integer(value: object) -> bool:
    """Whether *value* was written as a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether *value* was written as a number."""
    return is_integer(value) or isinstance(value, float)


def _integer_misfit(kind: str, value: object) -> str | None:
    low, high = INTEGERS[kind]
    if isinstance(value, int) and is_integer(value):
        return None if low <= value <= high else f"must be {low} to {high}, not {value}"
    fraction = " written with a fraction" if isinstance(value, float) else ""
    return f"must be a whole number, not {shown(value)}{fraction}"


def _list_misfit(item: str, value: object, capabilities: Capabilities) -> str | None:
    if not isinstance(value, list):
        return f"must be a list, not {shown(value)}"
    whys = (
        (position, misfit(item, element, capabilities)) for position, element in enumerate(value)
    )
    return next((f"[{position}] {why}" for position, why in whys if why), None)


def _tuple_misfit(items: list[str], value: object, capabilities: Capabilities) -> str | None:
    if not isinstance(value, list) or len(value) != len(items):
        return f"must be a list of {len(items)} numbers, not {shown(value)}"
    whys = [misfit(item, element, capabilities) for item, element in zip(items, value, strict=True)]
    return next((f"[{position}] {why}" for position, why in enumerate(whys) if why), None)


def _variant_misfit(value: object, allowed: tuple[str, ...]) -> str | None:
    if variant_of(value) in allowed:
        return None
    return f"must be one of {', '.join(allowed)}, not {shown(value)}"


_PLAIN: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "bool": ("true or false", lambda value: isinstance(value, bool)),
    "f64": ("a number", is_number),
    "String": ("a string", lambda value: isinstance(value, str)),
}
