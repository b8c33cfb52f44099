"""Checks that raise, hang, or have no end."""

import time

from temper_core import Check, CheckState, Instrument, OpenInstrument, hookimpl


class Checks(OpenInstrument):
    def __init__(self, context):
        del context


class Raising(Checks):
    def checks(self):
        raise RuntimeError("the check is broken")


class Huge(Checks):
    def checks(self):
        text = "\x1b[2J" + "x" * 5_000_000
        yield Check("huge-text", CheckState.FAILED, text, text)
        yield Check("no-text", "on fire", 7, None)


class Hanging(Checks):
    def checks(self):
        time.sleep(3600)


@hookimpl
def temper_instruments():
    return [
        Instrument("abusive-raising-check", Raising),
        Instrument("abusive-huge-check", Huge),
        Instrument("abusive-hanging-check", Hanging),
    ]
