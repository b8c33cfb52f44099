"""The endpoints of the flight recorder."""

from collections.abc import Iterable

from temper_core import Answer, Endpoint, Request
from temper_plugin_tracer.capture.endpoints import ACCEPTED, NOT_FOUND, json_answer, refusal
from temper_plugin_tracer.capture.flight_recorder import FlightRecorder
from temper_plugin_tracer.capture.flight_request import SCHEMA, parse_flight_request
from temper_plugin_tracer.capture.running import HeldError

PATH = "/flight-recorder"
IS_OFF = {"error": "the flight recorder is off"}


def flight_endpoints(recorder: FlightRecorder) -> Iterable[Endpoint]:
    """Serve ``/flight-recorder``."""
    doors = _Doors(recorder)
    return (
        Endpoint(
            "get-flight-recorder",
            "GET",
            PATH,
            "Whether the flight recorder runs, for how long, and what it costs.",
            lambda _: recorder.document(),
        ),
        Endpoint(
            "start-flight-recorder",
            "POST",
            PATH,
            "Record the scheduler's newest events for some time. Answers at once.",
            doors.start,
            acts=True,
            body_schema=SCHEMA,
        ),
        Endpoint(
            "dump-flight-recorder",
            "POST",
            f"{PATH}/dump",
            "Write what the flight recorder holds as a trace. This ends the recording.",
            doors.dump,
            acts=True,
        ),
        Endpoint(
            "stop-flight-recorder",
            "DELETE",
            PATH,
            "End the flight recorder without a trace.",
            doors.stop,
            acts=True,
        ),
    )


class _Doors:
    def __init__(self, recorder: FlightRecorder) -> None:
        self._recorder = recorder

    def start(self, request: Request) -> Answer:
        try:
            document = self._recorder.start(
                parse_flight_request(request.json()), str(request.requester)
            )
        except HeldError as error:
            return refusal(error)
        return json_answer(document, ACCEPTED, {"location": PATH})

    def dump(self, request: Request) -> Answer:
        entry = self._recorder.dump(str(request.requester))
        if entry is None:
            return json_answer(IS_OFF, NOT_FOUND)
        return json_answer(entry, ACCEPTED, {"location": f"/trace/{entry['id']}"})

    def stop(self, request: Request) -> Answer:
        if self._recorder.stop(str(request.requester)):
            return json_answer({"is_on": False})
        return json_answer(IS_OFF, NOT_FOUND)
