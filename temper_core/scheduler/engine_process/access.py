"""The life cycle's access to the plan compiler and the installed engine. Tests pass their own."""

from collections.abc import Callable, Mapping

from attrs import field, frozen

from temper_core.engine.installed import InstalledEngine, find_installed
from temper_core.records.plans import LayerPlan


def render_with_the_compiler(plan: LayerPlan) -> str:
    """Render a plan as ``temper plan --output engine`` does."""
    from temper_core.plan import render_engine  # noqa: PLC0415 - the compiler is large

    text: str = render_engine(plan)
    return text


def check_against_rules(config: str, version: str, cpus: int) -> None:
    """Check a configuration against the engine's rules. Raise PlanError with the violations."""
    from temper_core.engine.capabilities import capabilities_of  # noqa: PLC0415 - large table
    from temper_core.engine.configuration_check import ensure_accepted  # noqa: PLC0415 - same

    ensure_accepted(config, capabilities_of(version), cpus=cpus, source="plan")


@frozen
class EngineAccess:
    """Functions that render a plan, find the engine and check a text, and each start's extras."""

    render: Callable[[LayerPlan], str] = render_with_the_compiler
    find: Callable[[str], InstalledEngine] = find_installed
    check: Callable[[str, str, int], None] = check_against_rules
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(factory=dict)
