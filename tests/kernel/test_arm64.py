"""The same object files and the commands on an emulated arm64 machine, with pages of two sizes."""

import subprocess
from pathlib import Path

import pytest

from tests.kernel.guest import CHECKOUT
from tests.kernel.kernels.boots import PARTS, Booted, boot

GUEST_S = 3_600
ON_ARM64 = {"in_arm64": ["tests/kernel/kernels/in_arm64.py"], **PARTS}


@pytest.fixture(scope="module", params=["arm64", "arm64-16k"])
def booted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Booted:
    subprocess.run([CHECKOUT / "scripts/install-arm64"], check=True)
    share: Path = tmp_path_factory.mktemp("arm64")
    return boot(request.param, share, ON_ARM64, cpus=4, guest_s=GUEST_S)


@pytest.mark.parametrize("part", ON_ARM64)
def test_what_runs_on_x86_64_runs_on_arm64(booted: Booted, part: str):
    cases = booted.cases[part]
    bad = [case for case in cases if case.failure or case.skipped]

    assert cases, booted.output
    assert not bad, f"{bad}\n{booted.output}"
