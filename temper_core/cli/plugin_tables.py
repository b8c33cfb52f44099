"""The tables ``[plugins.<name>]`` as the plugins declare them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve

from temper_core.errors import DocumentError, PluginError
from temper_core.records.declarations import SettingsTable
from temper_core.settings.reader import Effective, Origin, origins_of

if TYPE_CHECKING:
    from temper_core.plugin_host import PluginHost


def plugin_origins(effective: Effective, host: "PluginHost") -> list[Origin]:
    """Return every setting of every plugin that declares its table, and other tables unparsed.

    Raises DocumentError with the errors of all tables.
    """
    models = declared_models(host)
    tables = effective.given.get("plugins", {})
    origins: list[Origin] = []
    problems: list[str] = []
    for name in sorted({*models, *tables}):
        table = tables.get(name, {})
        try:
            origins += _origins(host, name, models, table, effective.source)
        except DocumentError as error:
            problems += [_below(name, problem) for problem in error.problems]
    if problems:
        raise DocumentError(effective.source, problems)
    return origins


def declared_models(host: "PluginHost") -> Mapping[str, type[Any]]:
    """Return the settings class of each plugin that declares one."""
    tables = host.gather("temper_settings", SettingsTable)
    return {contribution.plugin: contribution.record.model for contribution in tables}


def _origins(
    host: "PluginHost",
    name: str,
    models: Mapping[str, type[Any]],
    table: Mapping[str, Any],
    source: str,
) -> list[Origin]:
    unparsed = [Origin(f"plugins.{name}", table, source)] if table else []
    if name not in models:
        return unparsed
    try:
        # Converters and validators run the plugin's code.
        return host.call(name, _fitted, name, models[name], table, source, allows=(DocumentError,))
    except DocumentError:
        raise
    except PluginError:  # the host has recorded the failure
        return unparsed


def _fitted(name: str, model: type[Any], table: Mapping[str, Any], source: str) -> list[Origin]:
    from temper_core import documents
    from temper_core.plain_json import plain_value

    settings = documents.fit(dict(table), model, source=source)
    origins = origins_of(settings, model(), table, source, f"plugins.{name}.")
    return [
        evolve(origin, value=plain_value(origin.value), default=plain_value(origin.default))
        for origin in origins
    ]


def _below(name: str, problem: str) -> str:
    path, _, why = problem.partition(": ")
    below = f"plugins.{name}" if path == "document" else f"plugins.{name}.{path}"
    return f"{below}: {why}"


def lenient_host(effective: Effective) -> "PluginHost":
    """Return a host with the core's own plugin and the installed ones."""
    from temper_core.node import builtin_plugin
    from temper_core.plugin_host import load_host

    settings = effective.settings
    # A broken plugin must not hide the settings of the others.
    lenient = evolve(settings.plugin_host, strict=False)
    own = {builtin_plugin.NAME: builtin_plugin}
    return load_host(evolve(settings, plugin_host=lenient), extra=own, source=effective.source)
