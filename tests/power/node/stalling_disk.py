"""A state directory whose disk hangs."""

import threading

from temper_core.instruments.state_directory import InstrumentDirectory


class Disk(InstrumentDirectory):
    """A state directory whose disk hangs until it answers."""

    def __init__(self, *place):
        super().__init__(*place)
        self.answers, self.hangs = threading.Event(), threading.Event()
        self.answers.set()

    def write(self, name, content):
        if not self.answers.is_set():
            self.hangs.set()
        self.answers.wait()
        return super().write(name, content)
