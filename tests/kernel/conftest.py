"""Boots one guest per walk or group of faults, for all tests of it; without ``--kernel`` all skip.

Faults are played in the background while the walks are taken, so that two guests run at once at
most.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.heavy import leave_to
from tests.kernel.guest import Fault, Walked, known_faults, play_faults, walk

IN_EVERY_RUN = ("loading", "enforcing")
ONLY_IN_FULL = (
    "test_lint.py",
    "test_profiles.py",
    "test_kernels.py",
    "test_agreement.py",
    "test_ladder.py",
    "test_boost.py",
    "test_recognition.py",
    "test_unit.py",
    "test_thread_storm.py",
    "test_training.py",
    "test_trace_backends.py",
    "test_enforcing_page.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kernel",
        action="store_true",
        help="boot the sched_ext kernel; whatever keeps it from booting is then a failure",
    )
    parser.addoption("--all-faults", action="store_true", help="play the slow groups of faults too")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "fault" not in metafunc.fixturenames:
        return
    wants_all = metafunc.config.getoption("--all-faults", default=False)
    faults = [fault for fault in known_faults() if wants_all or fault.group in IN_EVERY_RUN]
    metafunc.parametrize("fault", faults, ids=[f"{each.group}:{each.id}" for each in faults])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # The option is known only where tests/kernel itself is named on the command line.
    is_wanted = config.getoption("--kernel", default=False)
    is_full = config.getoption("--all-faults", default=False)
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.kernel)
            if _is_only_in_full(item) and not (is_wanted and is_full):
                leave_to("test-kernel-full", item, "takes long")
            elif not is_wanted:
                leave_to("test-kernel", item, "boots a kernel")
    items.sort(key=lambda item: _fault_of(item) is not None)  # last: they are played meanwhile


def _is_only_in_full(item: pytest.Item) -> bool:
    fault = _fault_of(item)
    return item.path.name in ONLY_IN_FULL or (fault is not None and fault.group not in IN_EVERY_RUN)


def _fault_of(item: pytest.Item) -> Fault | None:
    parameters = getattr(item, "callspec", None)
    found: Fault | None = parameters.params.get("fault") if parameters else None
    return found


@pytest.fixture(scope="session", autouse=True)
def played(request: pytest.FixtureRequest) -> Iterator[Mapping[str, Future[Walked]]]:
    """The groups of faults that are wanted, being played one after another."""
    faults = filter(None, map(_fault_of, request.session.items))
    with ThreadPoolExecutor(1) as pool:
        yield {group: pool.submit(play_faults, group) for group in {f.group: None for f in faults}}
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session")
def life(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    return walk(tmp_path_factory.mktemp("life"), "life", cpus=8)


@pytest.fixture(scope="session", params=[2, 4], ids="{}-cpus".format)
def saturation(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Walked:
    return walk(tmp_path_factory.mktemp("saturation"), "saturation", cpus=request.param)
