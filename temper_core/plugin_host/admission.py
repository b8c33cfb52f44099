"""Loads a plugin, and checks that its implementations fit the hooks. Each misfit is one line."""

import inspect
from collections.abc import Callable, Mapping

from pluggy import HookImpl, PluginManager, PluginValidationError

from temper_core import hookspecs
from temper_core.errors import PluginError
from temper_core.plugin_host.plain_errors import describe
from temper_core.suggestions import did_you_mean

Implementations = Mapping[str, tuple[HookImpl, ...]]


def admitted(load: Callable[[], object], name: str) -> dict[str, tuple[HookImpl, ...]]:
    """Load a plugin. Return its implementations by hook. Raise PluginError if it does not fit."""
    plugin = load()
    # One manager per plugin: a half finished registration is dropped together with it.
    manager = PluginManager(hookspecs.PROJECT)
    try:
        manager.register(plugin, name=name)
        implemented = _implemented(manager)
        _refuse_unknown(implemented, name)
        manager.add_hookspecs(hookspecs)
    except PluginValidationError as error:
        raise PluginError(name, describe(error)) from error
    known = {hook: implemented[hook] for hook in hook_names() if hook in implemented}
    _refuse_misfits(known, name)
    return known


def hook_names() -> tuple[str, ...]:
    """Return the names of all hooks, in the order in which they are specified."""
    mark = f"{hookspecs.PROJECT}_spec"
    return tuple(name for name, spec in vars(hookspecs).items() if hasattr(spec, mark))


def _implemented(manager: PluginManager) -> Implementations:
    """Return all implementations by the name of their hook, known or not."""
    return {
        hook: tuple(caller.get_hookimpls())
        for hook, caller in vars(manager.hook).items()
        if not hook.startswith("_")
    }


def _refuse_unknown(implemented: Implementations, name: str) -> None:
    """Raise PluginError for a hook, or an argument of a hook, that does not exist.

    pluggy would refuse both, in messages that are too long for one line.
    """
    hooks = hook_names()
    for hook, implementations in implemented.items():
        for implementation in implementations:
            if hook in hooks:
                _refuse_arguments(hook, implementation, name)
            elif not implementation.optionalhook:
                known = did_you_mean(hook, hooks) or f"; the hooks are {', '.join(hooks)}"
                raise PluginError(name, f"unknown hook {hook!r}{_place(implementation)}{known}")


def _refuse_arguments(hook: str, implementation: HookImpl, name: str) -> None:
    allowed = tuple(inspect.signature(getattr(hookspecs, hook)).parameters)
    for argument in implementation.argnames:
        if argument not in allowed:
            known = f"allowed is {', '.join(allowed)}" if allowed else "it takes no arguments"
            where = f"{hook}{_place(implementation)}"
            raise PluginError(name, f"{where} has the unknown argument {argument!r}; {known}")


def _place(implementation: HookImpl) -> str:
    """Return the file and line of *implementation* in brackets, empty if it has none."""
    code = getattr(implementation.function, "__code__", None)
    return f" ({code.co_filename}:{code.co_firstlineno})" if inspect.iscode(code) else ""


def _refuse_misfits(implemented: Implementations, name: str) -> None:
    if not implemented:
        raise PluginError(name, "implements no hook; mark its functions with @hookimpl")
    for hook, implementations in implemented.items():
        if any(
            implementation.wrapper or implementation.hookwrapper
            for implementation in implementations
        ):
            raise PluginError(name, f"wraps {hook}; no plugin may change what another answers")
