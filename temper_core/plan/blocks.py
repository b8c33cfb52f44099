"""The OR blocks of a layer: one per place, or regular expressions if there are too many."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from attrs import define, field

from temper_core.engine.capabilities import LARGEST_OR_COUNT
from temper_core.plan.addresses import Address, AddressForm, as_comm
from temper_core.plan.expressions import expressions
from temper_core.profiles.conditions import ANYTHING, Condition
from temper_core.records.engine_matchers import Matcher
from temper_core.settings.tiers import PlanSettings

Block = tuple[Matcher, ...]

ROOT = Matcher("UIDEquals", 0)
KERNEL_THREADS: Block = (Matcher("IsKthread", value=True),)
OWN_PROCESSES = ("scx_layered", "temper")
# One block is kept for the expression that names every cgroup.
MOST_PROCESSES = LARGEST_OR_COUNT - 2


@define
class LayerDraft:
    """A layer under construction: its fixed blocks, and threads at addresses."""

    fixed: tuple[Block, ...] = ()
    places: dict[tuple[Condition, Address], None] = field(factory=dict)
    members: dict[str, None] = field(factory=dict)
    group_members: dict[str, None] = field(factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether no pod has a thread in this layer."""
        return not self.members and not self.group_members

    def add(self, conditions: Iterable[Condition], addresses: Iterable[Address]) -> None:
        """Add the threads for which any of *conditions* holds at any of *addresses*."""
        addresses = tuple(addresses)
        for condition in conditions:
            self.places.update(((condition, address), None) for address in addresses)

    def blocks(self) -> tuple[Block, ...]:
        """Return the OR blocks, with regular expressions if there would be too many.

        They exceed the engine's limit only if there are too many conditions or process names,
        because no expression can join those, or if the addresses need too many expressions.
        """
        by_condition: defaultdict[Condition, list[Address]] = defaultdict(list)
        blocks = list(self.fixed)
        for condition, address in self.places:
            if address.form is AddressForm.PROCESS:
                blocks.append((address.matcher, *condition))
            else:
                by_condition[condition].append(address)
        joined = self._joined(by_condition)
        for condition, addresses in by_condition.items():
            if condition in joined:
                blocks += [(matcher, *condition) for matcher in joined[condition]]
            else:
                blocks += [(*address.matchers, *condition) for address in addresses]
        return tuple(blocks)

    def _joined(
        self, by_condition: dict[Condition, list[Address]]
    ) -> dict[Condition, tuple[Matcher, ...]]:
        """Join the addresses of the conditions with the most of them, until the rest fits."""
        count = len(self.fixed) + len(self.places)
        joined: dict[Condition, tuple[Matcher, ...]] = {}
        for condition in sorted(by_condition, key=lambda key: -len(by_condition[key])):
            if count <= LARGEST_OR_COUNT:
                break
            joined[condition] = expressions(by_condition[condition])
            count -= len(by_condition[condition]) - len(joined[condition])
        return joined


def system_names(settings: PlanSettings) -> tuple[str, ...]:
    """Return the name prefixes of the node's own processes, as the kernel keeps them."""
    names = [as_comm(name) for name in (*OWN_PROCESSES, *settings.system_processes)]
    return tuple(dict.fromkeys(name for name in names if name))


def system_draft(
    settings: PlanSettings, first: Sequence[Block] = ()
) -> tuple[LayerDraft, tuple[str, ...]]:
    """Return the system layer without its pods, and the process names that do not fit.

    The blocks *first* stand before all others.
    """
    names = system_names(settings)
    # Root processes of a pod may have any name, so names match only in the host's own cgroups.
    places = [Matcher("CgroupPrefix", path) for path in settings.system_process_cgroups]
    most = (MOST_PROCESSES - len(first)) // max(1, len(places))
    processes = [
        (Matcher("PcommPrefix", name), ROOT, place) for name in names[:most] for place in places
    ]
    draft = LayerDraft(fixed=(*first, KERNEL_THREADS, *processes))
    paths = [path.strip("/") for path in settings.system_cgroups]
    draft.add((ANYTHING,), [Address(AddressForm.PATH, path) for path in paths if path])
    return draft, names[most:]


def count_expressions(layers: Iterable[Sequence[Block]]) -> int:
    """Count the regular expressions. The engine numbers every one, even equal ones."""
    return sum(_is_joined(block) for blocks in layers for block in blocks)


def unsplit(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Return *blocks* as they would be if no expression of a condition had to be split."""
    by_condition = {
        (block[0].kind, *block[1:]) if _is_joined(block) else block: block for block in blocks
    }
    return tuple(by_condition.values())


def _is_joined(block: Block) -> bool:
    return bool(block) and block[0].kind == "CgroupRegex"
