"""Files that are none, and files that change while they are sent."""

import os
import threading

from temper_core import Answer, Endpoint, Instrument, OpenInstrument, hookimpl

MIB = 1024 * 1024


class Files(OpenInstrument):
    def __init__(self, context):
        self._folder = context.state.path
        self._is_closed = threading.Event()
        os.mkfifo(self._folder / "fifo")
        (self._folder / "directory").mkdir()
        (self._folder / "link").symlink_to("fifo")
        (self._folder / "growing").write_bytes(b"x" * MIB)
        (self._folder / "shrinking").write_bytes(b"x" * 4 * MIB)
        threading.Thread(target=self._grow, daemon=True).start()

    def endpoints(self):
        path = "/abuse/file/{name}"
        yield Endpoint("abuse-file", "GET", path, "Abuse.", self._file, parameters={"name": "It."})

    def close(self):
        self._is_closed.set()

    def _file(self, request):
        name = request.query["name"]
        if name == "deleted":
            (self._folder / name).write_bytes(b"x")
            (self._folder / name).unlink()
        if name == "shrinking":
            threading.Timer(0.05, os.truncate, (self._folder / name, 1)).start()
        return Answer(file=self._folder / name, media_type="text/plain")

    def _grow(self):
        while not self._is_closed.wait(0.05):
            with (self._folder / "growing").open("ab") as growing:
                growing.write(b"x" * 4096)


@hookimpl
def temper_instruments():
    return [Instrument("abusive-files", Files)]
