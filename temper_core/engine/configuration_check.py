"""Check an engine configuration before the engine receives it.

The engine checks only a part, and much of that too late: after the old plan is gone, or in the
first cycle after it took over the CPUs. These rules find all that it would refuse, crash on, be
ejected for or silently misread, from the configuration's text alone.
"""

from collections.abc import Sequence

from temper_core.engine.capabilities import Capabilities
from temper_core.engine.config_layers import read_layers
from temper_core.engine.judged import JudgedConfiguration
from temper_core.engine.layer_rules import LAYER_RULES
from temper_core.engine.matcher_rules import MATCHER_RULES
from temper_core.engine.plan_rules import PLAN_RULES
from temper_core.engine.problems import Problem, ProblemSeverity
from temper_core.errors import PlanError

RULES = (*PLAN_RULES, *LAYER_RULES, *MATCHER_RULES)


def check(
    text: str,
    capabilities: Capabilities,
    *,
    arguments: Sequence[str] = (),
    cpus: int | None = None,
) -> tuple[Problem, ...]:
    """Return all problems of the configuration *text*, refused first. Never raises.

    *arguments* are the options the engine is started with, *cpus* is the number of CPUs it will
    find. Rules that depend on either apply only if it is given.
    """
    layers, problems = read_layers(text, capabilities)
    judged = JudgedConfiguration(layers, capabilities, tuple(arguments), cpus)
    problems += [problem for rule in RULES for problem in rule(judged)]
    distinct = dict.fromkeys(problems)
    return tuple(
        sorted(distinct, key=lambda problem: problem.severity is not ProblemSeverity.REFUSED)
    )


def ensure_accepted(
    text: str,
    capabilities: Capabilities,
    *,
    arguments: Sequence[str] = (),
    cpus: int | None = None,
    source: str = "plan",
) -> tuple[Problem, ...]:
    """Return the warnings about *text*. Raise PlanError with all reasons if it is refused."""
    problems = check(text, capabilities, arguments=arguments, cpus=cpus)
    reasons = [problem.line for problem in problems if problem.severity is ProblemSeverity.REFUSED]
    if reasons:
        raise PlanError(source, reasons)
    return problems
