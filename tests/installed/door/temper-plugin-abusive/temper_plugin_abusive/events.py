"""Floods of events, and kinds that were not declared."""

import threading

from temper_core import EventKind, InputError, Instrument, OpenInstrument, hookimpl


class Events(OpenInstrument):
    def __init__(self, context):
        self._context = context
        self._is_closed = threading.Event()
        self._refused = ""
        threading.Thread(target=self._flood, daemon=True).start()
        threading.Thread(target=lambda: 1 / 0, daemon=True).start()

    def events(self):
        yield EventKind("abusive_flood", "There are many.")
        yield EventKind("safe_mode_entered", "Belongs to the agent.")

    def section(self, snapshot):
        return {"refused": self._refused}

    def close(self):
        self._is_closed.set()

    def _flood(self):
        while not self._is_closed.wait(0.001):
            try:
                self._context.record("abusive_flood", "s" * 5000, "line\n\x1b[2J" * 1000)
            except InputError:
                continue  # events() has not been asked yet
            try:
                self._context.record("never_declared")
            except InputError as error:
                self._refused = str(error)


@hookimpl
def temper_instruments():
    return [Instrument("abusive-events", Events)]
