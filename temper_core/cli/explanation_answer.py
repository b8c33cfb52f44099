"""An agent's answer to ``/explain``, checked before it is shown: any process may send one.

The models are those of what is shown, with texts for the plan's own kinds: those of
``temper_core.plan`` refuse the kinds of a later version, and are slow to import.
"""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from temper_core.documents import fit, known_keys
from temper_core.errors import DocumentError, MachineError

LONGEST_PROBLEM = 200


@frozen
class _Place:
    layer: str
    kind: str
    threads: str
    cpus_min: int | None
    cpus_max: int | None
    demoted: bool
    reason: str
    hint: int | None = None


@frozen
class _Note:
    code: str
    subject: str
    message: str


@frozen
class _Group:
    name: str
    treatment: str
    threads: str
    becomes: str
    layer: str
    cores: str = ""
    static: str = ""
    notes: tuple[str, ...] = ()


@frozen
class _Thread:
    tid: int
    comm: str
    expected_layer: str | None = None
    hinted_layer: str | None = None
    layer: str | None = None
    layer_is_known: bool = False
    is_decided: bool = False
    is_astray: bool = False
    cpu_used: float = 0.0


@frozen
class _Explanation:
    pod: str
    uid: str
    tier: str
    reason: str
    inputs: Mapping[str, str]
    profile: str
    profile_reason: str
    places: tuple[_Place, ...]
    notes: tuple[_Note, ...]
    changes: tuple[str, ...]
    profile_about: str = ""
    profile_extends: tuple[str, ...] = ()
    groups: tuple[_Group, ...] = ()
    threads: tuple[_Thread, ...] | None = None


ROWS = {"places": _Place, "notes": _Note, "groups": _Group, "threads": _Thread}


def require_explanation(answer: Any) -> Mapping[str, Any]:  # noqa: ANN401 - any JSON
    """Return *answer*. Raise MachineError if it is not the explanation of one pod."""
    try:
        fit(_without_news(answer), _Explanation, source="/explain")
    except DocumentError as error:
        problem = error.problems[0][:LONGEST_PROBLEM]
        raise MachineError(f"the agent's answer to /explain is malformed: {problem}") from error
    explanation: Mapping[str, Any] = answer
    return explanation


def _without_news(answer: Any) -> Any:  # noqa: ANN401 - any JSON
    known = known_keys(answer, _Explanation)
    if isinstance(known, dict):
        for key, model in ROWS.items():
            if isinstance(known.get(key), list):
                known[key] = [known_keys(row, model) for row in known[key]]
    return known
