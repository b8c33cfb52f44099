"""Assignments and plans: decisions and their reasons."""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property

from attrs import define, field, frozen

from temper_core.records.layers import Layer
from temper_core.records.machine import MachineShape
from temper_core.records.pods import Pod
from temper_core.records.profiles import LoadedProfile
from temper_core.records.read_only import read_only
from temper_core.records.steering import SteeredPlace
from temper_core.records.tiers import Tier


class ProfileCode(StrEnum):
    """A special case of a pod's profile. All but ``TIE`` mean that none is applied."""

    UNKNOWN_ID = "unknown_id"
    NOT_LOADED = "not_loaded"
    SHAPE = "shape"
    VERSION = "version"
    TIE = "tie"


@frozen
class Assignment:
    """The tier and profile of one pod. ``reason`` names the inputs and the rule.

    ``is_system`` sends the pod to the system layer, whatever its tier is. ``too_large`` is the
    reason why the node cannot run the pod, whose request and limit are 0 then.
    """

    pod: Pod
    tier: Tier
    reason: str
    profile: LoadedProfile | None = None
    profile_reason: str = ""
    is_system: bool = False
    profile_code: ProfileCode | None = None
    too_large: str = ""


@frozen
class Note:
    """A deviation of the plan from its input. ``code`` is stable, ``message`` is for people.

    Codes: ``demoted``, ``folded``, ``no_own_core``, ``group_needs_steering``,
    ``profile_not_applied``, ``profile_tie``, ``profile_expired``, ``small_machine``,
    ``group_yields``, ``waiting``, ``no_preempt``, ``too_large``, ``unproven_shape``.
    """

    code: str
    subject: str
    message: str


@define(frozen=True, slots=False)
class LayerPlan:
    """All decisions for one node. ``layers`` are in the order in which they match.

    A plan with ``hints`` (by layer name) is *steered*: ``steering`` assigns threads to layers, and
    the layers' own matchers only catch threads without a hint.
    """

    machine: MachineShape
    layers: tuple[Layer, ...]
    assignments: tuple[Assignment, ...] = ()
    notes: tuple[Note, ...] = ()
    hints: Mapping[str, int] = field(factory=dict, converter=read_only)
    steering: tuple[SteeredPlace, ...] = ()

    @property
    def is_steered(self) -> bool:
        """Whether hints, not the engine's own matchers, put threads into layers."""
        return bool(self.hints)

    def layer_named(self, name: str) -> Layer | None:
        """Return the layer of that name, if the plan has one."""
        return self._layers_by_name.get(name)

    @cached_property
    def layer_by_pod(self) -> Mapping[str, str]:
        """Layer names by pod key, for the threads that no thread group takes."""
        names: dict[str, str] = {}
        for layer in self.layers:
            for member in layer.members:
                names.setdefault(member, layer.name)
        return read_only(names)

    @cached_property
    def _layers_by_name(self) -> dict[str, Layer]:
        return {layer.name: layer for layer in self.layers}


@frozen
class Generation:
    """A plan that the engine received, with its number and its configuration text."""

    number: int
    plan: LayerPlan
    config: str = field(repr=False)
