"""The same object files on every kernel: what they count, and what is done without them.

Each kernel is booted once, and runs there what runs on this machine's own kernel as well, held
against that guest's ``/proc``.
"""

from collections.abc import Callable, Mapping

import pytest

from tests.kernel.kernels.boots import Booted, boot

KERNELS = ("6.1", "6.12", "6.18", "7.2")
LACKS = "this kernel lacks a part of BPF that is needed"
SKIPS: Mapping[str, Mapping[str, str]] = {
    "6.1": {
        "test_rows": LACKS,
        "test_sums": LACKS,
        "test_lives": LACKS,
        "steering": LACKS,
    }
}
"""Why a case may be skipped, by kernel and part: 6.1 has no walk of all threads in one call."""
NONE_PASSES = {("6.1", "steering")}


@pytest.fixture(scope="session")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Booted]:
    known: dict[str, Booted] = {}

    def once(kernel: str) -> Booted:
        if kernel not in known:
            known[kernel] = boot(kernel, tmp_path_factory.mktemp("kernel"))
        return known[kernel]

    return once


@pytest.fixture
def judge(booted: Callable[[str], Booted]) -> Callable[[str, str], None]:
    """Fail with what failed in the guest, or was skipped there for no good reason."""

    def judged(kernel: str, part: str) -> None:
        guest = booted(kernel)
        cases = guest.cases[part]
        excuse = SKIPS.get(kernel, {}).get(part)
        bad = [
            case
            for case in cases
            if case.failure or (case.skipped and not (excuse and excuse in case.skipped))
        ]
        assert cases, guest.output
        assert not bad, f"{bad}\n{guest.output}"
        if (kernel, part) not in NONE_PASSES:
            assert any(not case.skipped for case in cases), guest.output

    return judged


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_best_tier_is_taken_and_whatever_keeps_it_away_is_named(judge, kernel):
    judge(kernel, "in_guest")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("part", ["test_rows", "test_sums", "test_lives"])
def test_what_is_told_of_threads_is_what_proc_says_of_them(judge, kernel, part):
    judge(kernel, part)


@pytest.mark.parametrize("kernel", KERNELS)
def test_wakes_and_waits_are_counted_as_the_kernel_counts_them(judge, kernel):
    judge(kernel, "tracer")


@pytest.mark.parametrize("kernel", KERNELS)
def test_threads_are_given_their_hints(judge, kernel):
    judge(kernel, "steering")
