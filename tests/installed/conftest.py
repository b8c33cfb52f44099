from functools import cache

import pytest

from tests.installed.wheels import build


@pytest.fixture(scope="session")
def wheel_of(tmp_path_factory):
    """Return the wheel of a project, which is built once for all tests."""
    return cache(lambda project: build(project, tmp_path_factory.mktemp("wheel")))
