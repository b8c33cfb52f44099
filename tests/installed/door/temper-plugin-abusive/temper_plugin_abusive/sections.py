"""Sections that are too large, no JSON, or never there."""

import time

from temper_core import Instrument, OpenInstrument, hookimpl


class Sections(OpenInstrument):
    def __init__(self, context):
        del context


class Huge(Sections):
    def section(self, snapshot):
        return {"text": "x" * 10_000_000}


class NotJson(Sections):
    def section(self, snapshot):
        return {"object": object(), "nan": float("nan"), 7: {1, 2}}


class NoMapping(Sections):
    def section(self, snapshot):
        return ["a list"]


class Hanging(Sections):
    def section(self, snapshot):
        time.sleep(3600)


class Deaf(Sections):
    def tell(self, snapshot):
        raise RuntimeError("not listening")


@hookimpl
def temper_instruments():
    return [
        Instrument("abusive-huge-section", Huge),
        Instrument("abusive-no-json", NotJson),
        Instrument("abusive-no-mapping", NoMapping),
        Instrument("abusive-hanging-section", Hanging),
        Instrument("abusive-deaf", Deaf),
    ]
