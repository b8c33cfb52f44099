import pytest

from temper_core import ThreadGroup, WorkloadProfile, hookimpl
from temper_core.records.profiles import ShapeRange

PROFILE = """
schema_version = 1
id = "{id}"
{extra}
[[thread_groups]]
name = "rest"
"""


class Shipping:
    """A plugin that ships one profile of each id."""

    def __init__(self, *ids):
        self.profiles = [
            WorkloadProfile(i, (ThreadGroup("rest"),), machine_shape=ShapeRange(cores=4))
            for i in ids
        ]

    @hookimpl
    def temper_profiles(self):
        return self.profiles


@pytest.fixture
def shipping():
    return Shipping


@pytest.fixture
def write(tmp_path):
    directory = tmp_path / "profiles"
    directory.mkdir()

    def write_file(name, text=None, *, id="search", extra=""):  # noqa: A002 - as the key is called
        path = directory / name
        path.write_text(PROFILE.format(id=id, extra=extra) if text is None else text)
        return path

    write_file.directory = directory
    return write_file
