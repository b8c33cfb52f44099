"""Boots the guest once for all tests here; without ``--kernel`` they skip."""

from pathlib import Path

import pytest

from tests.kernel.guest import Walked, walk


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kernel",
        action="store_true",
        help="boot the sched_ext kernel; whatever keeps it from booting is then a failure",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # The option is known only where tests/kernel itself is named on the command line.
    is_wanted = config.getoption("--kernel", default=False)
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.kernel)
            if not is_wanted:
                item.add_marker(pytest.mark.skip(reason="boots a kernel: make test-kernel"))


@pytest.fixture(scope="session")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    return walk(tmp_path_factory.mktemp("share"))
