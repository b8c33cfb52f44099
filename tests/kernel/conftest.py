"""Boots one guest per walk, for all tests of it; without ``--kernel`` they skip."""

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
def life(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    return walk(tmp_path_factory.mktemp("life"), "life", cpus=8)


@pytest.fixture(scope="session", params=[2, 4], ids="{}-cpus".format)
def saturation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Walked:
    return walk(tmp_path_factory.mktemp("saturation"), "saturation", cpus=request.param)
