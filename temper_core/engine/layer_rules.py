"""Rules on one layer's name, template and options."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from temper_core.engine.capabilities import LARGEST_PERF, LAST_LLC, LAST_NUMA_NODE
from temper_core.engine.config_layers import LayerText
from temper_core.engine.config_types import variant_of
from temper_core.engine.judged import JudgedConfiguration, Rule
from temper_core.engine.problems import Problem, ignored, refused
from temper_core.engine.regex_syntax import regex_fault

SAFE_NAME_BYTES = 63
LARGEST_WEIGHT = 10_000
LARGEST_U32 = 2**32 - 1
STRICT_NODES = (1, 1, 0)
"""Since this version the engine checks ``nodes`` and ``llcs``."""
SMALL_FRACTIONS = (1, 1, 1)
"""Since this version a ``cpus_range_frac`` that rounds to no CPU means one."""
TEMPLATES = ("CgroupSuffix", "CgroupRegex")
SPREADS = ("NodeSpread", "NodeSpreadReverse", "NodeSpreadRandom")


def names_fit(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Compare names with the engine's buffer. A name that does not fit panics (exit 101)."""
    limit = judged.capabilities.layer_name_bytes
    for layer in judged.layers:
        name, path = layer.name or "", f"{layer.where}: name"
        size = len(name.encode())
        if "\0" in name:
            yield refused(path, "has a NUL byte, on which the engine crashes")
        if size > limit:
            yield refused(path, f"is {size} bytes long; the engine crashes beyond {limit}")
        elif size > SAFE_NAME_BYTES or not name.isascii():
            message = f"is more than {SAFE_NAME_BYTES} ASCII letters: older engines crash on it"
            yield ignored(path, message)


def templates_expand(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Check templates: layers made of the cgroups that exist when the engine starts."""
    for layer in judged.layers:
        if layer.template is None or not layer.template.kind:
            continue
        kind, value, path = layer.template.kind, layer.template.value, layer.template.where
        if kind not in TEMPLATES:
            yield refused(path, f"must be {' or '.join(TEMPLATES)}; the engine crashes on {kind}")
            continue
        fault = regex_fault(value) if kind == "CgroupRegex" else None
        if fault:
            yield refused(path, f"the engine crashes on this regular expression: {fault}")
        if kind == "CgroupSuffix" and value.endswith("/"):
            yield ignored(path, "never expands: here paths have no trailing slash")
        if layer is judged.layers[-1]:
            yield refused(path, "the last layer must stay the one that takes everything")
        message = "expands once, at start, one layer per cgroup: later pods get no layer"
        yield ignored(path, message)


def ranges_are_ordered(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Sizes and utilisations are [low, high]. The engine panics later if it does not check them."""
    for layer in judged.layers:
        low, high = layer.options.get("util_range", (0, 1))
        if low >= high:
            yield refused(layer.option("util_range"), f"{low} must be below {high}")
        if low < 0:
            yield refused(layer.option("util_range"), f"must not be negative, not {low}")
        yield from _range_faults(layer)
        yield from _fraction_faults(layer, judged)


def options_are_in_range(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Check numbers that the engine does not check, or checks too late."""
    for layer in judged.layers:
        yield from _perf_faults(layer)
        if layer.options.get("weight", 0) > LARGEST_WEIGHT:
            message = f"is cut to {LARGEST_WEIGHT}, the largest weight"
            yield ignored(layer.option("weight"), message)
        for name in ("yield_ignore", "xllc_mig_min_us", "membw_gb"):
            value = layer.options.get(name)
            if value is not None and value < 0:
                yield ignored(layer.option(name), f"a negative number has no effect: {value}")


def options_take_effect(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Report options without effect because of another option, or the kind."""
    for layer in judged.layers:
        options = layer.options
        if layer.kind == "Open" and options.get("util_peak_half_life_ms", 0) != 0:
            message = "needs util_range, which Open does not have"
            yield refused(layer.option("util_peak_half_life_ms"), message)
        for name in ("disallow_open_after_us", "disallow_preempt_after_us"):
            if options.get("preempt") and options.get(name) is not None:
                yield ignored(layer.option(name), "has no effect with preempt")
        if options.get("preempt_first") and not options.get("preempt"):
            yield ignored(layer.option("preempt_first"), "has no effect without preempt")
        yield from _deprecated_options(layer, judged)


def growth_fits(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Report growth algorithms that need a missing option, or that are not safe."""
    for layer in judged.layers:
        algorithm = variant_of(layer.options.get("growth_algo", "Sticky"))
        path = layer.option("growth_algo")
        if algorithm == "StickyDynamic":
            yield ignored(path, "can leave a layer with tasks and without a CPU; use Sticky")
        if algorithm == "Topo" and not (layer.options.get("nodes") or layer.options.get("llcs")):
            yield ignored(path, "has no effect without nodes or llcs")
        kinds = [condition.kind for block in layer.blocks for condition in block]
        if algorithm in SPREADS and "NumaNode" in kinds:
            yield refused(path, f"{algorithm} cannot be combined with the matcher NumaNode")


def nodes_exist(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Since 1.1.0 the engine exits if a node or cache does not exist, or is listed twice."""
    if judged.capabilities.release < STRICT_NODES:
        return
    for layer in judged.layers:
        for name, last in (("nodes", LAST_NUMA_NODE), ("llcs", LAST_LLC)):
            numbers = layer.options.get(name, [])
            twice = [number for number, times in Counter(numbers).items() if times > 1]
            if twice:
                yield refused(layer.option(name), f"has {twice[0]} twice")
            if any(number > last for number in numbers):
                message = f"{max(numbers)} does not exist, the engine knows 0 to {last}"
                yield refused(layer.option(name), message)


def opt_ins_are_meant(judged: JudgedConfiguration) -> Iterator[Problem]:
    """``membw_gb`` depends on the CPU model and on resctrl."""
    for layer in judged.layers:
        if layer.options.get("membw_gb") is not None:
            message = "crashes the engine on CPU models it does not know, and needs resctrl"
            yield ignored(layer.option("membw_gb"), message)


def _range_faults(layer: LayerText) -> Iterator[Problem]:
    bounds = layer.options.get("cpus_range")
    if bounds is None:
        return
    low, high = bounds
    path = layer.option("cpus_range")
    if low > high:
        yield refused(path, f"{low} must not be above {high}")
    if layer.options.get("cpus_range_frac") is not None:
        yield refused(path, "cannot be used together with cpus_range_frac")
    if high == 0 and layer.kind == "Confined":
        yield refused(path, "a Confined layer needs at least one CPU")
    if high == 0 and layer.kind == "Grouped":
        message = "can own no CPU: it only runs on unowned CPUs, after layers served before it"
        yield ignored(path, message)


def _fraction_faults(layer: LayerText, judged: JudgedConfiguration) -> Iterator[Problem]:
    bounds = layer.options.get("cpus_range_frac")
    if bounds is None:
        return
    low, high = bounds
    path = layer.option("cpus_range_frac")
    if not (0 <= low <= 1 and 0 <= high <= 1):
        yield refused(path, f"must be fractions of all CPUs, 0.0 to 1.0, not {low}, {high}")
    elif low > high:
        yield refused(path, f"{low} must not be above {high}")
    elif judged.capabilities.release < SMALL_FRACTIONS and round((judged.cpus or 1) * high) == 0:
        yield refused(path, f"{high} rounds to no CPU, which this version does not take")


def _perf_faults(layer: LayerText) -> Iterator[Problem]:
    perf = layer.options.get("perf", 0)
    if perf > LARGEST_U32:
        yield refused(layer.option("perf"), f"must be 0 to {LARGEST_PERF}, not {perf}")
    elif perf > LARGEST_PERF:
        message = f"the kernel ejects the engine beyond {LARGEST_PERF}, not {perf}"
        yield refused(layer.option("perf"), message)


def _deprecated_options(layer: LayerText, judged: JudgedConfiguration) -> Iterator[Problem]:
    types: Mapping[str, Any] = judged.capabilities.common_fields
    for name in ("allow_node_aligned", "idle_smt"):
        is_deprecated = types.get(name, "").startswith("Option")
        if is_deprecated and layer.options.get(name) is not None:
            yield ignored(layer.option(name), "is deprecated; the engine ignores it")


LAYER_RULES: tuple[Rule, ...] = (
    names_fit,
    templates_expand,
    ranges_are_ordered,
    options_are_in_range,
    options_take_effect,
    growth_fits,
    nodes_exist,
    opt_ins_are_meant,
)
