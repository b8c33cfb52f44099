"""State directories with too many files, with a file that is too large, and with a link instead."""

import shutil

from temper_core import Instrument, MachineError, OpenInstrument, hookimpl

KIB = 1024


class State(OpenInstrument):
    def __init__(self, context):
        self._context = context


class ManyFiles(State):
    """Adds to what the test has put there before."""

    def __init__(self, context):
        super().__init__(context)
        for number in range(500):
            (context.state.path / f"new-{number}").touch()


class HugeFile(State):
    def __init__(self, context):
        super().__init__(context)
        with (context.state.path / "huge").open("wb") as file:
            for _ in range(16):
                file.write(b"x" * 1024 * KIB)


class Link(State):
    """Puts a link to another directory in the place of its own."""

    def __init__(self, context):
        super().__init__(context)
        folder = context.state.path
        victim = folder.parent.parent.parent / "victim"
        victim.mkdir(exist_ok=True)
        (victim / "precious").write_bytes(b"x" * 200 * KIB)
        shutil.rmtree(folder)
        folder.symlink_to(victim)

    def section(self, snapshot):
        try:
            self._context.state.write("stolen", b"x")
        except MachineError as error:
            return {"refused": str(error)}
        return {"refused": ""}


@hookimpl
def temper_instruments():
    return [
        Instrument("abusive-many-files", ManyFiles),
        Instrument("abusive-huge-file", HugeFile, state_limit_bytes=100 * KIB),
        Instrument("abusive-link", Link, state_limit_bytes=100 * KIB),
    ]
