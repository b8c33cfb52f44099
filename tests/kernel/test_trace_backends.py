"""Every way to record a trace, in guests that have what each of them needs.

The first guest is an old kernel with bcc, the headers of that kernel, and Perfetto. The second is
the same kernel without type information, where only what needs none can record.
"""

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.kernel.guest import CHECKOUT
from tests.kernel.kernels.boots import Booted, boot

SERIES = "6.1"
GUEST_S = 3_600
IN_GUEST = "tests/kernel/backends"
TRACEFS = "tests/tracer/capture/test_tracefs_recorder.py"
WITH_TYPES: Mapping[str, list[str]] = {
    "with_types": [f"{IN_GUEST}/with_types.py"],
    "test_tracefs_recorder": [
        f"{TRACEFS}::test_threads_are_named_and_new_ones_followed",
        f"{TRACEFS}::test_an_instance_of_a_killed_process_stops_and_is_removed_by_the_next",
        f"{TRACEFS}::test_nothing_is_left_of_a_capture_whose_helper_is_killed",
    ],
}
WITHOUT_TYPES: Mapping[str, list[str]] = {"without_types": [f"{IN_GUEST}/without_types.py"]}


def fetched(script: str, *arguments: str) -> str:
    """Return what a script beside ``vm/run`` prints last."""
    ran = subprocess.run(
        [CHECKOUT / "vm" / script, *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    return ran.stdout.split()[-1]


@pytest.fixture(scope="module")
def prefix() -> list[str]:
    """Return the command that installs bcc in a guest, and has Perfetto in a variable."""
    install = Path(fetched("fetch-bcc", SERIES)) / "install"
    perfetto = f"PERFETTO={fetched('fetch-perfetto')}"
    return ["env", perfetto, "sh", "-c", f'"{install}" && exec "$@"', "sh"]


@pytest.fixture(scope="module")
def with_types(prefix: list[str], tmp_path_factory: pytest.TempPathFactory) -> Booted:
    share = tmp_path_factory.mktemp("with-types")
    return boot(SERIES, share, WITH_TYPES, prefix=prefix, guest_s=GUEST_S)


@pytest.fixture(scope="module")
def without_types(prefix: list[str], tmp_path_factory: pytest.TempPathFactory) -> Booted:
    version = Path(fetched("fetch-bcc", SERIES)).name
    share = tmp_path_factory.mktemp("without-types")
    kernel = fetched("without-btf", version)
    return boot(kernel, share, WITHOUT_TYPES, prefix=prefix, guest_s=GUEST_S)


@pytest.fixture
def judge() -> Callable[[Booted, str], None]:
    """Fail with what failed in the guest, or was skipped there."""

    def judged(guest: Booted, part: str) -> None:
        bad = [case for case in guest.cases[part] if case.failure or case.skipped]
        assert guest.cases[part], guest.output
        assert not bad, f"{bad}\n{guest.output}"

    return judged


@pytest.mark.parametrize("part", WITH_TYPES)
def test_an_old_kernel_records_by_every_backend(judge, with_types, part):
    judge(with_types, part)


def test_a_kernel_without_types_records_by_what_needs_none(judge, without_types):
    judge(without_types, "without_types")
