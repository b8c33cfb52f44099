"""Rules on a configuration as a whole."""

from collections import Counter
from collections.abc import Iterator, Sequence

from temper_core.engine.capabilities import (
    LARGEST_LAYER_COUNT,
    LARGEST_OR_COUNT,
    all_cli_fields,
)
from temper_core.engine.config_layers import WHOLE, Block, LayerText
from temper_core.engine.judged import JudgedConfiguration, Rule
from temper_core.engine.problems import Problem, ignored, refused

ALWAYS_TRUE_WHEN_EMPTY = ("CgroupPrefix", "CgroupContains", "CommPrefix", "PcommPrefix")
DISPATCH_LOOPS = 4


def counts_are_within_limits(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Layers, OR blocks and AND conditions are fixed arrays in the engine."""
    if len(judged.layers) > LARGEST_LAYER_COUNT:
        message = f"has {len(judged.layers)} layers, the engine takes {LARGEST_LAYER_COUNT}"
        yield refused(WHOLE, message)
    most = judged.capabilities.max_and_conditions
    for layer in judged.layers:
        path = f"{layer.where}: matches"
        if len(layer.blocks) > LARGEST_OR_COUNT:
            message = f"has {len(layer.blocks)} OR blocks, the engine takes {LARGEST_OR_COUNT}"
            yield refused(path, message)
        for index, block in enumerate(layer.blocks):
            if len(block) > most:
                message = f"has {len(block)} matchers, the engine takes {most}"
                yield refused(f"{path}[{index}]", message)


def only_the_last_takes_everything(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Require exactly ``[[]]`` in the last layer. An earlier layer that takes all hides the rest.

    The layer right before the last may take all if it has a hint, because the last cannot have
    one.
    """
    hiding = _within_reach(judged.layers)[:-1]
    for layer in judged.layers[:-1]:
        if layer.matches == ():
            message = "is empty; only `[[]]` matches everything, and only in the last layer"
            yield refused(f"{layer.where}: matches", message)
        for index, block in enumerate(layer.blocks):
            if _takes_everything(block) and layer in hiding:
                message = "matches every thread, so no later layer gets any"
                yield ignored(f"{layer.where}: matches[{index}]", message)
    if judged.layers and judged.layers[-1].matches not in (None, ((),)):
        last = judged.layers[-1]
        yield refused(f"{last.where}: matches", "must be exactly `[[]]` in the last layer")


def names_differ(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Statistics are a table by name: only the last of several layers with one name is in it."""
    names = Counter(layer.name for layer in judged.layers if layer.name is not None)
    for name, times in names.items():
        if times > 1:
            layer = [other for other in judged.layers if other.name == name][-1]
            message = f"is the name of {times} layers; statistics show only the last of them"
            yield ignored(f"{layer.where}: name", message)


def it_verifies(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Refuse all four of Open and Grouped, each with and without preempt: they do not verify.

    Measured with 1.1.2 and 1.1.4 on Linux 6.18: the dispatch program exceeds a million
    instructions, and the load fails with E2BIG, which gives no reason.
    """
    loops = {
        (layer.kind, bool(layer.options.get("preempt")))
        for layer in judged.layers
        if layer.kind in ("Open", "Grouped")
    }
    if len(loops) == DISPATCH_LOOPS:
        message = (
            "does not verify: the kernel refuses a plan that has all four of Open, "
            "Open with preempt, Grouped, Grouped with preempt; use at most three"
        )
        yield refused(WHOLE, message)


def nobody_starves(judged: JudgedConfiguration) -> Iterator[Problem]:
    """On each CPU several Open layers are served in a fixed order, whatever their weight."""
    layers = [
        layer
        for layer in _within_reach(judged.layers)
        if layer.kind == "Open" and not layer.options.get("preempt")
    ]
    if len(layers) > 1:
        names = ", ".join(repr(layer.name) for layer in layers)
        message = (
            f"{len(layers)} Open layers without preempt ({names}): each CPU serves them in a fixed "
            "order, so a busy one starves those behind it until the kernel ejects the engine"
        )
        yield ignored(WHOLE, message)


def cpus_are_there(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Ranges beyond the machine are cut. Maxima that add up to all CPUs leave none to Open."""
    if judged.cpus is None:
        return
    for layer in judged.layers:
        low, high = layer.options.get("cpus_range") or (0, 0)
        if max(low, high) > judged.cpus:
            message = f"requires {max(low, high)} CPUs, but the machine has {judged.cpus}"
            yield ignored(layer.option("cpus_range"), message)
    owned = sum(_most_cpus(layer, judged.cpus) for layer in judged.layers)
    if owned >= judged.cpus and any(_only_takes_what_is_left(layer) for layer in judged.layers):
        message = f"layers may own {owned} of {judged.cpus} CPUs, which leaves none to Open layers"
        yield ignored(WHOLE, message)


def arguments_exist(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Report options that this version lacks: the engine exits with code 255 on them."""
    for argument in judged.arguments:
        name = argument.partition("=")[0].removeprefix("--")
        is_option = argument.startswith("--") and name in all_cli_fields()
        if is_option and name not in judged.capabilities.cli_fields:
            message = f"scx_layered {judged.capabilities.version} has no option --{name}"
            yield refused("arguments", message)


def _only_takes_what_is_left(layer: LayerText) -> bool:
    return layer.kind == "Open" and not layer.options.get("preempt")


def _takes_everything(block: Block) -> bool:
    return all(matcher.kind in ALWAYS_TRUE_WHEN_EMPTY and matcher.value == "" for matcher in block)


def _within_reach(layers: Sequence[LayerText]) -> Sequence[LayerText]:
    """Leave out a last layer that gets no thread, because the layer before takes all.

    That layer also has a hint, which the last must not have.
    """
    before_last = layers[-2].blocks if len(layers) > 1 else ()
    hints = [matcher for block in before_last for matcher in block if matcher.kind == "HintEquals"]
    return layers[:-1] if hints and any(map(_takes_everything, before_last)) else layers


def _most_cpus(layer: LayerText, cpus: int) -> int:
    """Return the most CPUs that the layer may own by its options. 0 without such an option."""
    fraction = layer.options.get("cpus_range_frac")
    if fraction is not None:
        share: float = min(max(fraction[1], 0.0), 1.0)
        return round(cpus * share)
    bounds = layer.options.get("cpus_range")
    return min(int(bounds[1]), cpus) if bounds else 0


PLAN_RULES: tuple[Rule, ...] = (
    counts_are_within_limits,
    only_the_last_takes_everything,
    names_differ,
    it_verifies,
    nobody_starves,
    cpus_are_there,
    arguments_exist,
)
