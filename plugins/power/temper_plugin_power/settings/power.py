"""The table ``[plugins.power]``, and how commands read it."""

from pathlib import Path

from attrs import frozen
from attrs.validators import and_, deep_iterable, ge, instance_of, le, matches_re, max_len

from temper_core import fit_settings, load_settings, setting
from temper_plugin_power.classifier.hints import ALIASES
from temper_plugin_power.settings.extender import ExtenderSettings
from temper_plugin_power.settings.node import NodeSettings
from temper_plugin_power.standing import MIN_CONFIDENCE

PLUGIN = "power"
MOST_ALIASES = 8
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
    )
    extender: ExtenderSettings = ExtenderSettings()
    node: NodeSettings = NodeSettings()


def power_settings(path: Path | None) -> PowerSettings:
    """Return ``[plugins.power]`` of the agents' settings file. Raises DocumentError.

    Without *path* they are those of the default file if it exists.
    """
    table = load_settings(path).plugins.get(PLUGIN, {})
    return fit_settings(table, PowerSettings, plugin=PLUGIN)
