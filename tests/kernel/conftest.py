"""Boots one guest per walk or group of faults, for all tests of it; without ``--kernel`` all skip.

Each test is run by one of three targets of the Makefile. ``--more`` chooses those of
``test-kernel-more`` instead of those of ``test-kernel``, and ``--all-faults`` chooses all.

Faults and saturation are played in the background while the other walks are taken, so that two
guests run at once at most.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.heavy import leave_to
from tests.kernel.guest import Fault, Walked, known_faults, play_faults, walk

EVERY_RUN, MORE, FULL = "test-kernel", "test-kernel-more", "test-kernel-full"
ARM64 = "test-arm64"
GROUPS = {"loading": EVERY_RUN, "enforcing": MORE}
"""The targets that play groups of faults. The others are played by ``FULL``."""
FILES = {
    "test_churn.py": MORE,
    "test_traces.py": MORE,
    "test_starvation.py": MORE,
    "test_vm_run.py": MORE,
    "test_arm64.py": ARM64,
}
FEWEST_CPUS = 2
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
    "test_topologies.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--kernel",
        action="store_true",
        help="boot the sched_ext kernel; whatever keeps it from booting is then a failure",
    )
    parser.addoption(
        "--more", action="store_true", help="run the tests of test-kernel-more instead"
    )
    parser.addoption("--all-faults", action="store_true", help="play the slow groups of faults too")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "fault" not in metafunc.fixturenames:
        return
    wants_all = metafunc.config.getoption("--all-faults", default=False)
    faults = [fault for fault in known_faults() if wants_all or fault.group in GROUPS]
    metafunc.parametrize("fault", faults, ids=[f"{each.group}:{each.id}" for each in faults])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # The option is known only where tests/kernel itself is named on the command line.
    is_wanted = config.getoption("--kernel", default=False)
    is_full = config.getoption("--all-faults", default=False)
    chosen = MORE if config.getoption("--more", default=False) else EVERY_RUN
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.kernel)
            target = _target_of(item)
            if not (is_wanted and (is_full or target == chosen)):
                leave_to(target, item, "boots a kernel" if target == EVERY_RUN else "takes long")
    items.sort(key=_is_in_background)  # last: they are played meanwhile


def _target_of(item: pytest.Item) -> str:
    fault = _fault_of(item)
    if fault is not None:
        target = GROUPS.get(fault.group, FULL)
        return MORE if target == EVERY_RUN and fault.takes_minutes else target
    if item.path.name in ONLY_IN_FULL:
        return FULL
    is_small = _parameters_of(item).get("saturation") == FEWEST_CPUS
    return MORE if is_small else FILES.get(item.path.name, EVERY_RUN)


def _fault_of(item: pytest.Item) -> Fault | None:
    found: Fault | None = _parameters_of(item).get("fault")
    return found


def _is_in_background(item: pytest.Item) -> bool:
    return not {"fault", "saturation"}.isdisjoint(_parameters_of(item))


def _parameters_of(item: pytest.Item) -> Mapping[str, Any]:
    parametrized = getattr(item, "callspec", None)
    return parametrized.params if parametrized else {}


@pytest.fixture(scope="session", autouse=True)
def background(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str | int, Future[Walked]]]:
    """What is played one after another: groups of faults, and saturation by its number of CPUs."""
    faults: dict[str, list[Fault]] = {}
    saturated: dict[int, Path] = {}
    for item in request.session.items:
        if item.get_closest_marker("skip"):
            continue
        if (fault := _fault_of(item)) is not None:
            faults.setdefault(fault.group, []).append(fault)
        elif (cpus := _parameters_of(item).get("saturation")) is not None and cpus not in saturated:
            saturated[cpus] = tmp_path_factory.mktemp("saturation")
    with ThreadPoolExecutor(1) as pool:
        played: dict[str | int, Future[Walked]] = {
            group: pool.submit(play_faults, wanted) for group, wanted in faults.items()
        }
        for cpus, share in saturated.items():
            played[cpus] = pool.submit(walk, share, "saturation", cpus)
        yield played
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session")
def life(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    return walk(tmp_path_factory.mktemp("life"), "life", cpus=8)


@pytest.fixture(scope="session")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    return walk(tmp_path_factory.mktemp("traced"), "trace", cpus=8)


@pytest.fixture(scope="session", params=[FEWEST_CPUS, 4], ids="{}-cpus".format)
def saturation(
    request: pytest.FixtureRequest, background: Mapping[str | int, Future[Walked]]
) -> Walked:
    return background[request.param].result()
