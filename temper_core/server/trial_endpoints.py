"""The endpoints that list, begin and release trials."""

from typing import Any, Protocol

from attrs import field, frozen
from attrs.validators import ge, le, max_len, min_len

from temper_core import documents
from temper_core.errors import DocumentError, InputError
from temper_core.observe.document import trial_document
from temper_core.profiles.documents import parse_profile
from temper_core.profiles.trials import LONGEST_S, MOST_PODS, SHORTEST_S, BookedTrial
from temper_core.records.endpoints import Answer, Endpoint, Request
from temper_core.records.profiles import DerivedProfile, WorkloadProfile
from temper_core.records.trials import TrialState
from temper_core.server.answers import NOT_FOUND, error_answer, json_answer

SOURCE = "trial request"
CREATED = 201
LARGEST_PROFILE = 60_000
"""Characters. The body's bound is 64 KiB."""

BODY_SCHEMA = {
    "type": "object",
    "required": ["profile", "pods", "seconds"],
    "additionalProperties": False,
    "properties": {
        "profile": {"type": "string", "description": "The profile's TOML document."},
        "pods": {"type": "array", "items": {"type": "string"}, "maxItems": MOST_PODS},
        "seconds": {"type": "number", "minimum": SHORTEST_S, "maximum": LONGEST_S},
    },
}


@frozen
class TrialRequest:
    """The body of ``POST /trials``. ``profile`` is a TOML document."""

    profile: str = field(validator=max_len(LARGEST_PROFILE))
    pods: tuple[str, ...] = field(validator=[min_len(1), max_len(MOST_PODS)])
    seconds: float = field(validator=[ge(SHORTEST_S), le(LONGEST_S)])


class Trials(Protocol):
    """The part of the agent's trials that these endpoints use."""

    def start(
        self, owner: str, profile: WorkloadProfile, pods: tuple[str, ...], seconds: float
    ) -> BookedTrial:
        """Begin a trial. Raise InputError for an invalid one."""
        ...

    def states(self) -> tuple[TrialState, ...]:
        """Return the trials in force."""
        ...

    def release(self, number: str) -> bool:
        """End a trial. Return whether it was in force."""
        ...


@frozen
class TrialEndpoints:
    """Answers for *trials*."""

    trials: Trials

    def table(self) -> tuple[Endpoint, ...]:
        """Return the endpoints."""
        return (
            Endpoint("list-trials", "GET", "/trials", "The trials that are in force.", self._list),
            Endpoint(
                "begin-trial",
                "POST",
                "/trials",
                "Put a profile in force for some pods, for some seconds.",
                self._begin,
                acts=True,
                body_schema=BODY_SCHEMA,
            ),
            Endpoint(
                "release-trial",
                "DELETE",
                "/trials/{id}",
                "End a trial.",
                self._release,
                acts=True,
                parameters={"id": "The trial, as GET /trials names it."},
            ),
        )

    def _list(self, _: Request) -> Any:  # noqa: ANN401 - JSON
        return {"trials": [trial_document(state) for state in self.trials.states()]}

    def _begin(self, request: Request) -> Answer:
        body = _parse(request.json())
        try:
            profile = parse_profile(body.profile, source="profile")
        except DocumentError as error:
            raise InputError(f"profile: {'; '.join(error.problems)}") from error
        if isinstance(profile, DerivedProfile):
            raise InputError("profile: extends another; a trial takes a complete profile")
        owner = str(request.requester)
        trial = self.trials.start(owner, profile, body.pods, body.seconds)
        begun = next((state for state in self.trials.states() if state.id == trial.id), None)
        return json_answer(trial_document(begun) if begun else {"id": trial.id}, CREATED)

    def _release(self, request: Request) -> Any:  # noqa: ANN401 - JSON
        number = request.query["id"]
        if not self.trials.release(number):
            return error_answer(NOT_FOUND, f"there is no trial {number!r}")
        return {"released": number}


def _parse(body: object) -> TrialRequest:
    if not isinstance(body, dict):
        raise InputError('the body must be a JSON object with "profile", "pods" and "seconds"')
    return documents.fit(body, TrialRequest, source=SOURCE)
