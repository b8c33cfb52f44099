"""A test that touches the run or state directory of the machine fails, and so do its children."""

import os
import tempfile
from pathlib import Path

import pytest

HERE = str(Path(__file__).parent)
NOTES = "TEMPER_TESTS_TOUCHED"


class Touches:
    """What the hook of ``sitecustomize`` has noted, in this process and in those it started."""

    def __init__(self, path):
        self._path = path
        self._seen = 0

    def take(self):
        """Return the lines that are new since the last call."""
        lines = self._path.read_text().splitlines()
        new, self._seen = lines[self._seen :], len(lines)
        return new

    def check(self):
        """Fail where there are any."""
        new = self.take()
        assert not new, "the machine's own places were touched:\n" + "\n".join(new)


@pytest.fixture(scope="session")
def touches():
    """Have every Python of this session refuse and note what touches the machine's places."""
    with tempfile.NamedTemporaryFile(prefix="temper-touched-") as notes:
        paths = [HERE, *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ.update({NOTES: notes.name, "PYTHONPATH": os.pathsep.join(paths)})
        from tests.machine_paths import sitecustomize  # noqa: F401, PLC0415 - it needs the variable

        touches = Touches(Path(notes.name))
        yield touches
        touches.check()


@pytest.fixture(autouse=True)
def _no_place_of_the_machine_is_touched(touches):
    yield
    touches.check()
