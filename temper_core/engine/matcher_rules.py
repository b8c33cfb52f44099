"""Rules on single matchers and AND blocks."""

from collections.abc import Callable, Iterator, Mapping

from temper_core.engine.capabilities import (
    LARGEST_HINT,
    LARGEST_REGEX_COUNT,
    LAST_NUMA_NODE,
    LONGEST_CGROUP_BYTES,
    LONGEST_COMM_BYTES,
    LONGEST_JOIN_BYTES,
)
from temper_core.engine.config_layers import WHOLE, Block, Condition, LayerText
from temper_core.engine.judged import JudgedConfiguration, Rule
from temper_core.engine.problems import Problem, ignored, refused
from temper_core.engine.regex_syntax import regex_fault

NAME_MATCHERS = ("CommPrefix", "CommPrefixExclude", "PcommPrefix", "PcommPrefixExclude")
CGROUP_MATCHERS = ("CgroupPrefix", "CgroupSuffix", "CgroupContains")
GPU_MATCHERS = ("UsedGpuTid", "UsedGpuPid")
FAST_MATCHERS = ("SystemCpuUtilBelow", "DsqInsertBelow")
NICE_RANGE = (-20, 19)
CGROUP_MOUNT = "/sys/fs/cgroup"


def strings_fit_the_kernel(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Names and paths are copied into fixed buffers. Longer ones panic (exit 101)."""
    for _, condition in judged.conditions():
        yield from _string_faults(condition)
    for layer in judged.layers:
        if layer.template is not None:
            yield from _string_faults(layer.template)


def patterns_can_match(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Report patterns that can match no thread."""
    for _, condition in judged.conditions():
        never = _NEVER.get(condition.kind)
        why = never(condition.value) if never else None
        if why:
            yield ignored(condition.where, f"never matches: {why}")


def kthread_matcher_is_true(judged: JudgedConfiguration) -> Iterator[Problem]:
    """``IsKthread`` ignores its argument in every version."""
    for _, condition in judged.conditions():
        if condition.kind == "IsKthread" and condition.value is False:
            yield ignored(condition.where, "the engine ignores the value: false matches kthreads")


def regexes_compile(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Every expression must compile. Every occurrence uses one of 16 numbers."""
    expressions = [matcher for _, matcher in judged.conditions() if matcher.kind == "CgroupRegex"]
    for condition in expressions:
        if not judged.capabilities.matches_cgroup_regex:
            version = judged.capabilities.version
            message = f"scx_layered {version} takes CgroupRegex as a template only, and crashes"
            yield refused(condition.where, message)
        fault = regex_fault(condition.value)
        if fault:
            yield refused(condition.where, f"is no regular expression of the engine: {fault}")
    if len(expressions) > LARGEST_REGEX_COUNT:
        message = (
            f"has {len(expressions)} CgroupRegex matchers, the engine takes {LARGEST_REGEX_COUNT}"
        )
        yield refused(WHOLE, message)


def numbers_are_in_range(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Hints, thresholds and NUMA nodes have fixed ranges."""
    for _, condition in judged.conditions():
        kind, value = condition.kind, condition.value
        if kind == "HintEquals" and value > LARGEST_HINT:
            yield refused(condition.where, f"must be 0 to {LARGEST_HINT}, not {value}")
        if kind in FAST_MATCHERS and not 0 <= value <= 1:
            yield refused(condition.where, f"must be 0.0 to 1.0, not {value}")
        if kind == "NumaNode" and value > LAST_NUMA_NODE:
            yield refused(condition.where, f"the engine knows nodes up to {LAST_NUMA_NODE}")


def hints_stand_alone(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Each hint belongs to one layer. Only load thresholds may stand beside it in a block."""
    owners: dict[int, LayerText] = {}
    for layer in judged.layers:
        for index, block in enumerate(layer.blocks):
            yield from _hint_block_faults(f"{layer.where}: matches[{index}]", block)
            for hint in [matcher for matcher in block if matcher.kind == "HintEquals"]:
                owner = owners.setdefault(hint.value, layer)
                if owner is not layer:
                    yield refused(hint.where, f"hint {hint.value} already leads to {owner.where}")


def matchers_have_their_argument(judged: JudgedConfiguration) -> Iterator[Problem]:
    """Hints need a map and GPU matchers their probes. Both are command line options."""
    has_hints = judged.has_argument("task-hint-map")
    has_gpu = judged.has_argument("enable-gpu-support")
    for _, condition in judged.conditions():
        if condition.kind == "HintEquals" and not has_hints:
            yield ignored(condition.where, "never matches unless started with --task-hint-map")
        if condition.kind in GPU_MATCHERS and not has_gpu:
            message = "the kernel ejects the engine unless it is started with --enable-gpu-support"
            yield refused(condition.where, message)


def _string_faults(condition: Condition) -> Iterator[Problem]:
    if not isinstance(condition.value, str):
        return
    if "\0" in condition.value:
        yield refused(condition.where, "has a NUL byte, on which the engine crashes")
    size = len(condition.value.encode())
    if condition.kind in CGROUP_MATCHERS and size > LONGEST_CGROUP_BYTES:
        yield refused(condition.where, f"is {size} bytes long, of {LONGEST_CGROUP_BYTES} at most")
    if condition.kind in (*NAME_MATCHERS, "CmdJoin") and size > LONGEST_COMM_BYTES:
        message = f"is {size} bytes long; a thread's name has {LONGEST_COMM_BYTES} at most"
        yield refused(condition.where, message)
    if condition.kind == "CmdJoin" and LONGEST_JOIN_BYTES < size <= LONGEST_COMM_BYTES:
        message = f"never matches: {size} bytes, a join word has {LONGEST_JOIN_BYTES} at most"
        yield ignored(condition.where, message)


def _hint_block_faults(where: str, block: Block) -> Iterator[Problem]:
    kinds = [condition.kind for condition in block if condition.kind]
    for kind in ("HintEquals", *FAST_MATCHERS):
        if kinds.count(kind) > 1:
            yield refused(where, f"has {kinds.count(kind)} {kind} matchers, one is allowed")
    fast = [kind for kind in kinds if kind in FAST_MATCHERS]
    if fast and "HintEquals" not in kinds:
        yield refused(where, f"{fast[0]} works only beside a HintEquals")
    rest = [kind for kind in kinds if kind not in ("HintEquals", *FAST_MATCHERS)]
    if rest and (fast or "HintEquals" in kinds):
        exclusive = "HintEquals" if "HintEquals" in kinds else fast[0]
        yield refused(where, f"{rest[0]} cannot stand beside {exclusive} in one AND block")


def _prefix_never(value: str) -> str | None:
    if value.startswith("/") and value != "/":
        return "the engine's cgroup paths have no leading slash"
    return _mount_never(value)


def _suffix_never(value: str) -> str | None:
    if value and not value.endswith("/"):
        return "the engine's cgroup paths end with a slash, so must a suffix"
    return _mount_never(value)


def _mount_never(value: str) -> str | None:
    if value.startswith((CGROUP_MOUNT, CGROUP_MOUNT[1:])):
        return f"the engine's cgroup paths start below {CGROUP_MOUNT}/"
    return None


def _regex_never(value: str) -> str | None:
    if value.endswith(("/$", r"/\z")):
        return "the path that the expression is given does not end with a slash"
    literal = value[1:2]
    if value.startswith("^") and (literal.isalnum() or literal in ("_", "-")):
        return f"the path that the expression is given starts with {CGROUP_MOUNT}/"
    return None


def _exclude_never(value: str) -> str | None:
    return "every name has the empty prefix" if value == "" else None


def _runtime_never(value: list[int]) -> str | None:
    low, high = value
    return f"no run time is from {low} to before {high} µs" if low >= high else None


def _nice_never(low: int, high: int) -> Callable[[int], str | None]:
    def why(value: int) -> str | None:
        return None if low <= value <= high else "nice values are -20 to 19"

    return why


_NEVER: Mapping[str, Callable[..., str | None]] = {
    "CgroupPrefix": _prefix_never,
    "CgroupSuffix": _suffix_never,
    "CgroupContains": _mount_never,
    "CgroupRegex": _regex_never,
    "CommPrefixExclude": _exclude_never,
    "PcommPrefixExclude": _exclude_never,
    "AvgRuntime": _runtime_never,
    "NiceAbove": _nice_never(-(2**31), NICE_RANGE[1] - 1),
    "NiceBelow": _nice_never(NICE_RANGE[0] + 1, 2**31),
    "NiceEquals": _nice_never(*NICE_RANGE),
}

MATCHER_RULES: tuple[Rule, ...] = (
    strings_fit_the_kernel,
    patterns_can_match,
    kthread_matcher_is_true,
    regexes_compile,
    numbers_are_in_range,
    hints_stand_alone,
    matchers_have_their_argument,
)
