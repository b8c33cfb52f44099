"""Instruments that cannot be opened."""

import time

from temper_core import Instrument, OpenInstrument, hookimpl


class Raising(OpenInstrument):
    def __init__(self, context):
        context.helper("temper_plugin_abusive.work:forever")
        raise RuntimeError("will not open")


class Hanging(OpenInstrument):
    def __init__(self, context):
        time.sleep(3600)


@hookimpl
def temper_instruments():
    return [
        Instrument("abusive-raising-opening", Raising),
        Instrument("abusive-nothing-opened", lambda _context: 7),
        Instrument("abusive-hanging-opening", Hanging),
    ]
