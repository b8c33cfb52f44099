"""An instrument that cannot be closed."""

import time

from temper_core import Instrument, OpenInstrument, hookimpl


class Hanging(OpenInstrument):
    def __init__(self, context):
        del context

    def close(self):
        time.sleep(3600)


class Raising(OpenInstrument):
    def __init__(self, context):
        del context

    def close(self):
        raise RuntimeError("will not close")


@hookimpl
def temper_instruments():
    return [
        Instrument("abusive-hanging-close", Hanging),
        Instrument("abusive-raising-close", Raising),
    ]
