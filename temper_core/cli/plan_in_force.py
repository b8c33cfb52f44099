"""The plan in force as a document tells it: asked of the agent, or read from a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import evolve, field, fields_dict, frozen
from attrs.validators import and_, ge, in_, le, min_len

from temper_core.errors import InputError, MachineError
from temper_core.plan.render import SCHEMA_VERSION, machine_summary
from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.matching import Matcher
from temper_core.records.plans import LayerPlan
from temper_core.records.tiers import LayerKind, Tier

if TYPE_CHECKING:
    from temper_core.settings import Settings

THE_AGENT = "the agent"
NONE_IN_FORCE = "no plan is in force"
MOST_CPUS = 8_192
Model = TypeVar("Model")


@frozen
class PlanInForce:
    """The plan that a change starts from. ``plan`` is None where no engine runs.

    ``can_swap`` is None where the source does not say. ``remark`` says why there is no plan, or
    why none can be swapped.
    """

    source: str
    plan: LayerPlan | None
    generation: int = 0
    can_swap: bool | None = None
    remark: str = ""


def ask_in_force(settings: "Settings", machine: MachineShape) -> PlanInForce:
    """Ask the agent of this node. Raise NoAgentError where none answers.

    *machine* is taken for the agent's where the counts are the same.
    """
    from temper_core.client import ask_agent

    try:
        document = ask_agent("/plan", settings=settings)
    except InputError as error:
        if NONE_IN_FORCE not in str(error):
            raise
        return PlanInForce(THE_AGENT, None, remark=str(error).removeprefix("the agent says: "))
    try:
        return _in_force(document, machine, THE_AGENT)
    except InputError as error:
        raise MachineError(f"the agent's answer to /plan is not a plan: {error}") from error


def read_in_force(file: Path, machine: MachineShape) -> PlanInForce:
    """Read what ``temper plan --output json`` wrote. Raise DocumentError where that is no plan."""
    from temper_core.documents import read_json

    return _in_force(read_json(file), machine, str(file))


@frozen
class _MachineDocument:
    architecture: str
    cpus: int = field(validator=and_(ge(1), le(MOST_CPUS)))
    cores: int = field(validator=and_(ge(1), le(MOST_CPUS)))
    threads_per_core: int = field(validator=and_(ge(1), le(8)))
    sockets: int
    numa_nodes: int
    llcs: int


@frozen
class _LayerDocument:
    name: str
    kind: LayerKind
    tier: Tier | None
    cpus_min: int | None
    cpus_max: int | None
    util_range: tuple[float, float] | None
    exclusive: bool
    protected: bool
    preempt: bool
    slice_us: int
    weight: int
    matches: tuple[tuple[Mapping[str, str | bool | int], ...], ...]
    pods: tuple[str, ...]
    group_pods: tuple[str, ...]
    demoted: bool = False
    reason: str = ""
    hint: int | None = None


@frozen
class _PlanDocument:
    schema_version: int = field(validator=in_([SCHEMA_VERSION]))
    machine: _MachineDocument
    layers: tuple[_LayerDocument, ...] = field(validator=min_len(1))
    generation: int = 0
    steered: bool = False
    can_swap: bool | None = None
    why_no_swap: str = ""


def _in_force(document: object, machine: MachineShape, source: str) -> PlanInForce:
    from temper_core.documents import fit

    told = fit(_without_news(document), _PlanDocument, source=source)
    layers = tuple(_layer(layer) for layer in told.layers)
    hints = {layer.name: layer.hint for layer in told.layers if layer.hint is not None}
    plan = LayerPlan(_machine(told.machine, machine), layers, hints=hints if told.steered else {})
    return PlanInForce(source, plan, told.generation, told.can_swap, told.why_no_swap)


def _without_news(document: object) -> object:
    """Leave out the keys that a later version may have added."""
    if not isinstance(document, Mapping):
        return document
    known = _known(document, _PlanDocument)
    layers, machine = known.get("layers"), known.get("machine")
    if isinstance(layers, list):
        known["layers"] = [_known(layer, _LayerDocument) for layer in layers]
    if machine is not None:
        known["machine"] = _known(machine, _MachineDocument)
    return known


def _known(table: Any, model: type[Any]) -> Any:  # noqa: ANN401 - JSON may say anything
    if not isinstance(table, Mapping):
        return table
    return {key: value for key, value in table.items() if key in fields_dict(model)}


def _layer(told: _LayerDocument) -> Layer:
    blocks = [[Matcher(*pair) for each in block for pair in each.items()] for block in told.matches]
    some = set(told.group_pods)
    return Layer(
        name=told.name,
        kind=told.kind,
        matches=tuple(map(tuple, blocks)),
        tier=told.tier,
        cpus_min=told.cpus_min,
        cpus_max=told.cpus_max,
        util_range=told.util_range,
        exclusive=told.exclusive,
        protected=told.protected,
        preempt=told.preempt,
        slice_us=told.slice_us,
        weight=told.weight,
        members=tuple(key for key in told.pods if key not in some),
        demoted=told.demoted,
        reason=told.reason,
        group_members=told.group_pods,
    )


def _machine(told: _MachineDocument, given: MachineShape) -> MachineShape:
    """Return *given* where the document counts the same, else one of the document's counts."""
    from attrs import asdict

    if machine_summary(given) == asdict(told):
        return given
    made = MachineShape.uniform(told.cores, told.threads_per_core, architecture=told.architecture)
    return evolve(made, cpus=made.cpus[: told.cpus])
