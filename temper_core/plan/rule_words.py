"""The rules of a steered plan in words: the threads of a pod that a hint puts into a layer."""

from collections.abc import Iterable, Iterator

from temper_core.records.pods import Pod
from temper_core.records.steering import ScopeKind, SteeredPlace, SteeringRule
from temper_core.records.thread_groups import Behaviour, ThreadMatch

MEASURES = (
    ("cpu_share", "share of a CPU"),
    ("run_us", "µs per run"),
    ("wakeups_per_s", "wake-ups per second"),
)


def threads_in(layer: str, places: Iterable[SteeredPlace], pod: Pod) -> str:
    """Describe the threads of *pod* that *places* send into *layer*. Empty if none."""
    own = [place for place in places if place.pod == pod.key]
    is_split = any(place.scope.kind is ScopeKind.CONTAINER for place in own)
    phrases = [
        f"{_where(place, pod, is_split=is_split)}{words}"
        for place in own
        for words in _sentences(place, layer)
    ]
    return "; ".join(dict.fromkeys(phrases))


def match_words(match: ThreadMatch) -> str:
    """Return the conditions of *match* as a relative clause about threads."""
    return " and ".join(_conditions(match))


def _where(place: SteeredPlace, pod: Pod, *, is_split: bool) -> str:
    if place.scope.kind is ScopeKind.CONTAINER:
        names = [
            container.name
            for container in pod.containers
            if container.runtime_id == place.scope.text
        ]
        return f"in container {names[0] if names else place.scope.text}: "
    return "elsewhere in the pod: " if is_split else ""


def _sentences(place: SteeredPlace, layer: str) -> Iterator[str]:
    for number, rule in enumerate(place.rules):
        if rule.layer == layer:
            yield _rule_words(rule, is_alone=number == 0)


def _rule_words(rule: SteeringRule, *, is_alone: bool) -> str:
    if rule.match is None:
        return "every thread" if is_alone else "every thread that no group takes"
    user = " of root" if rule.root_only else ""
    unknown = ["whose behaviour is not known yet"] if rule.until_seen else []
    return f"threads{user} {' and '.join((*_conditions(rule.match), *unknown))}"


def _conditions(match: ThreadMatch) -> Iterator[str]:
    if match.comm_prefix is not None:
        yield f"whose name begins with {match.comm_prefix!r}"
    if match.comm_pattern is not None:
        yield f"whose name has /{match.comm_pattern}/"
    if match.process is not None:
        yield f"whose process's name begins with {match.process!r}"
    if match.title_pattern is not None:
        yield f"whose command line has /{match.title_pattern}/"
    if match.leader is not None:
        yield "that lead their process" if match.leader else "that do not lead their process"
    yield from _origins(match)
    if match.older_than_s is not None:
        yield f"that started at least {match.older_than_s:g} s ago"
    if match.behaviour is not None:
        yield _behaviour_words(match.behaviour)


def _origins(match: ThreadMatch) -> Iterator[str]:
    if match.exe is not None:
        yield f"whose executable's name begins with {match.exe!r}"
    if match.parent is not None:
        yield f"whose parent process's name begins with {match.parent!r}"
    if match.is_child is not None:
        has = "has executed no program" if match.is_child else "has executed a program"
        yield f"whose process {has} since its fork"


def _behaviour_words(behaviour: Behaviour) -> str:
    measures = [(getattr(behaviour, name), text) for name, text in MEASURES]
    bounds = [
        f"{text} {bound[0]:g} to {bound[1]:g}" for bound, text in measures if bound is not None
    ]
    return f"whose behaviour is {', '.join(bounds) or 'anything'}"
