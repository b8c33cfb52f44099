"""Read a configuration's layers as serde does. Report every misfit and every ignored key."""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from temper_core.engine.capabilities import Capabilities, known_versions
from temper_core.engine.config_text import ConfigTable, NotJson, decode
from temper_core.engine.config_types import misfit, shown
from temper_core.engine.problems import Problem, ignored, refused

WHOLE = "configuration"
LONGEST_LABEL = 40
LAYER_KEYS = ("name", "comment", "template", "matches", "kind")
REQUIRED_KEYS = ("name", "matches", "kind")


@frozen
class Condition:
    """One matcher. ``kind`` is empty if it could not be read."""

    where: str
    kind: str = ""
    value: Any = None


Block = tuple[Condition, ...]


@frozen
class LayerText:
    """One layer as far as it could be read. Parts that do not fit are ``None`` or empty."""

    position: int
    name: str | None
    matches: tuple[Block, ...] | None = None
    template: Condition | None = None
    kind: str = ""
    options: Mapping[str, Any] = field(factory=dict)

    @property
    def where(self) -> str:
        """The layer's name in messages."""
        return label(self.position, self.name)

    def option(self, name: str) -> str:
        """Return the path of the option *name*."""
        return f"{self.where}: kind.{self.kind}.{name}"

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The OR blocks. Empty if they could not be read."""
        return self.matches or ()


def label(position: int, name: str | None) -> str:
    """Return the name in messages of the layer at *position*, counted from 0 as in JSON."""
    if name is None:
        return f"layer[{position}]"
    return f"layer[{position}] {name[:LONGEST_LABEL]!r}"


def read_layers(
    text: str, capabilities: Capabilities
) -> tuple[tuple[LayerText, ...], list[Problem]]:
    """Return the layers of *text* and all misfits. Never raises."""
    try:
        value = decode(text)
    except NotJson as error:
        return (), [refused(WHOLE, str(error))]
    if not isinstance(value, list):
        return (), [refused(WHOLE, f"must be a list of layers, not {shown(value)}")]
    if not value:
        return (), [refused(WHOLE, "has no layer")]
    reader = _LayerReader(capabilities)
    layers = tuple(reader.layer(position, element) for position, element in enumerate(value))
    return layers, reader.problems


class _LayerReader:
    """Reads layer after layer, and collects the misfits."""

    def __init__(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self.problems: list[Problem] = []
        self.keys = [key for key in LAYER_KEYS if key != "template" or capabilities.has_template]

    def layer(self, position: int, value: object) -> LayerText:
        """Read one element of the outermost list."""
        if isinstance(value, list) and len(value) == len(self.keys):
            value = ConfigTable(tuple(zip(self.keys, value, strict=True)))  # serde takes both forms
        if not isinstance(value, ConfigTable):
            requirement = f"must be an object with {', '.join(REQUIRED_KEYS)}"
            self._refuse(label(position, None), f"{requirement}, not {shown(value)}")
            return LayerText(position, None)
        fields = dict(value.pairs)
        name = fields.get("name")
        path = label(position, name if isinstance(name, str) else None)
        self._check_layer_keys(path, value)
        return self._layer(position, path, fields)

    def _layer(self, position: int, where: str, given: Mapping[str, Any]) -> LayerText:
        name = given.get("name")
        if "name" in given:
            self._fits(f"{where}: name", "String", name)
        if "comment" in given:
            self._fits(f"{where}: comment", "Option<String>", given["comment"])
        template = None
        if "template" in self.keys and given.get("template") is not None:
            template = self._condition(f"{where}: template", given["template"])
        kind, options = self._kind(where, given["kind"]) if "kind" in given else ("", {})
        return LayerText(
            position,
            name if isinstance(name, str) else None,
            self._matches(f"{where}: matches", given["matches"]) if "matches" in given else None,
            template,
            kind,
            options,
        )

    def _check_layer_keys(self, where: str, table: ConfigTable) -> None:
        names = [name for name, _ in table.pairs]
        for key_name in [key for key in REQUIRED_KEYS if key not in names]:
            self._refuse(where, f"has no {key_name!r}")
        self._check_twice(where, names, self.keys)
        for name in dict.fromkeys(names):
            if name not in self.keys:
                self._ignore(where, _unknown_layer_key(name, self.keys))

    def _matches(self, where: str, value: object) -> tuple[Block, ...] | None:
        if not isinstance(value, list):
            self._refuse(where, f"must be a list of lists of matchers, not {shown(value)}")
            return None
        return tuple(self._block(f"{where}[{index}]", block) for index, block in enumerate(value))

    def _block(self, where: str, value: object) -> Block:
        if not isinstance(value, list):
            self._refuse(where, f"must be a list of matchers, not {shown(value)}")
            return (Condition(where),)
        return tuple(self._condition(f"{where}[{index}]", item) for index, item in enumerate(value))

    def _condition(self, where: str, value: object) -> Condition:
        tagged = self._tagged(where, value, "a matcher")
        if tagged is None:
            return Condition(where)
        kind, content = tagged
        if kind not in self.capabilities.matchers:
            self._refuse(where, self._unknown("matchers", "matcher", kind))
            return Condition(where)
        fits = self._fits(f"{where}.{kind}", self.capabilities.matchers[kind], content)
        return Condition(f"{where}.{kind}", kind, content) if fits else Condition(where)

    def _kind(self, where: str, value: object) -> tuple[str, dict[str, Any]]:
        tagged = self._tagged(f"{where}: kind", value, "a layer kind")
        if tagged is None:
            return "", {}
        kind, content = tagged
        if kind not in self.capabilities.kind_fields:
            kinds = ", ".join(self.capabilities.kind_fields)
            self._refuse(f"{where}: kind", f"must be one of {kinds}, not {kind!r}")
            return "", {}
        if not isinstance(content, ConfigTable):
            self._refuse(f"{where}: kind.{kind}", f"must be an object, not {shown(content)}")
            return kind, {}
        return kind, self._options(f"{where}: kind.{kind}", kind, content)

    def _options(self, where: str, kind: str, table: ConfigTable) -> dict[str, Any]:
        fields = {**self.capabilities.kind_fields[kind], **self.capabilities.common_fields}
        names = [name for name, _ in table.pairs]
        self._check_twice(where, names, list(fields))
        if "util_range" in fields and "util_range" not in names:
            self._refuse(where, "has no 'util_range', which this kind needs")
        options: dict[str, Any] = {}
        for name, value in dict(table.pairs).items():
            if name not in fields:
                self._ignore(f"{where}.{name}", self._foreign_option(kind, name))
            elif self._fits(f"{where}.{name}", fields[name], value):
                options[name] = value
        return options

    def _tagged(self, where: str, value: object, noun: str) -> tuple[str, Any] | None:
        if isinstance(value, ConfigTable) and len(value.pairs) == 1:
            return value.pairs[0]
        got = f"{len(value.pairs)} keys" if isinstance(value, ConfigTable) else shown(value)
        self._refuse(where, f"must be {noun}, an object with one key, not {got}")
        return None

    def _foreign_option(self, kind: str, name: str) -> str:
        owners = [
            owner for owner, fields in self.capabilities.kind_fields.items() if name in fields
        ]
        if owners:
            return f"is an option of {' and '.join(owners)}; {kind} ignores it"
        versions = known_versions("kind_fields", name) or known_versions("common_fields", name)
        if versions:
            return f"exists {versions}; scx_layered {self.capabilities.version} ignores it"
        return f"is no option of the engine, which ignores it{_meant(name, self._known_options())}"

    def _known_options(self) -> list[str]:
        by_kind = [name for fields in self.capabilities.kind_fields.values() for name in fields]
        return [*by_kind, *self.capabilities.common_fields]

    def _unknown(self, topic: str, noun: str, name: str) -> str:
        versions = known_versions(topic, name)
        if versions:
            have = f"does not have the {noun} {name!r}, which exists {versions}"
            return f"scx_layered {self.capabilities.version} {have}"
        return f"there is no {noun} {shown(name)}{_meant(name, list(self.capabilities.matchers))}"

    def _check_twice(self, where: str, names: list[str], known: list[str]) -> None:
        for name in dict.fromkeys(names):
            if name in known and names.count(name) > 1:
                self._refuse(where, f"has the key {name!r} twice")

    def _fits(self, where: str, kind: str, value: object) -> bool:
        why = misfit(kind, value, self.capabilities)
        if why is not None:
            self._refuse(where, why)
        return why is None

    def _refuse(self, where: str, message: str) -> None:
        self.problems.append(refused(where, message))

    def _ignore(self, where: str, message: str) -> None:
        self.problems.append(ignored(where, message))


def _unknown_layer_key(name: str, known: list[str]) -> str:
    if name == "template":
        return "has the key 'template', which this version of the engine does not know and ignores"
    return f"has the key {shown(name)}, which the engine ignores{_meant(name, known)}"


def _meant(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only a misspelled key needs it

    close = get_close_matches(name[:LONGEST_LABEL], known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
