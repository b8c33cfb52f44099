"""Endpoints that answer with what cannot be sent, or not at all."""

import sys
import time
from functools import partial

from temper_core import Answer, Endpoint, Instrument, OpenInstrument, hookimpl

ANSWERS = {
    "text": lambda: Answer(content="no bytes"),
    "huge": lambda: Answer(content=b"x" * 100_000_000),
    "header": lambda: Answer(headers={"X-Odd": "odd\r\nSet-Cookie: stolen=1"}),
    "framing": lambda: Answer(headers={"Set-Cookie": "stolen=1"}),
    "status": lambda: Answer(status=9999),
    "raise": lambda: 1 / 0,
    "exit": lambda: sys.exit(3),
    "hang": lambda: time.sleep(3600),
}


class Answers(OpenInstrument):
    def __init__(self, context):
        del context

    def endpoints(self):
        for kind, answer in ANSWERS.items():
            respond = partial(_respond, answer)
            yield Endpoint(f"abuse-{kind}", "GET", f"/abuse/{kind}", "Abuse.", respond)
        yield Endpoint("steal-health", "GET", "/healthz", "Theft.", lambda _: {"stolen": True})
        yield Endpoint(
            "steal-safe-mode", "POST", "/safe-mode", "Theft.", lambda _: {"stolen": True}
        )


def _respond(answer, _request):
    return answer()


@hookimpl
def temper_instruments():
    return [Instrument("abusive-answers", Answers)]
