"""The table ``[plugins.power]``, and how commands read it."""

from pathlib import Path

from attrs import frozen
from attrs.validators import and_, deep_iterable, ge, instance_of, le, matches_re, max_len

from temper_core import fit_settings, load_settings, setting
from temper_plugin_power.defaults import ALIASES, MIN_CONFIDENCE
from temper_plugin_power.settings.classifier import ClassifierSettings
from temper_plugin_power.settings.extender import ExtenderSettings
from temper_plugin_power.settings.node import NodeSettings
from temper_plugin_power.settings.operator import OperatorSettings

PLUGIN = "power"
MOST_ALIASES = 8
_REQUIREMENT = r"[A-Za-z0-9./_-]{1,317}=[A-Za-z0-9._-]{0,63}"
SELECTOR = rf"({_REQUIREMENT}(,{_REQUIREMENT})*)?"
PREFIX = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"


@frozen
class PowerSettings:
    """Power-aware placement: what all of its parts share."""

    min_confidence: float = setting(
        MIN_CONFIDENCE,
        "The confidence of a WorkloadProfile from which its derived fields count, 0 to 1.",
        validator=and_(instance_of(float), ge(0.0), le(1.0)),
    )
    annotation_aliases: tuple[str, ...] = setting(
        ALIASES,
        "More prefixes of the pod annotations. Those of joulie.io/ win.",
        validator=and_(deep_iterable(matches_re(PREFIX)), max_len(MOST_ALIASES)),
        form="a domain in lower case",
    )
    node_selector: str = setting(
        "joulie.io/managed=true",
        "The labels of the nodes that are in scope, separated by commas. Empty is all nodes.",
        validator=matches_re(SELECTOR),
        form="labels such as 'zone=a,managed=true', or empty",
    )
    classifier: ClassifierSettings = ClassifierSettings()
    extender: ExtenderSettings = ExtenderSettings()
    node: NodeSettings = NodeSettings()
    operator: OperatorSettings = OperatorSettings()


def power_settings(path: Path | None) -> PowerSettings:
    """Return ``[plugins.power]`` of the agents' settings file. Raises DocumentError.

    Without *path* they are those of the default file if it exists.
    """
    table = load_settings(path).plugins.get(PLUGIN, {})
    return fit_settings(table, PowerSettings, plugin=PLUGIN)
