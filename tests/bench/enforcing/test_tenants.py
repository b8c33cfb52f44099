import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from bench.enforcing.tenants import PROFILE, PROFILE_ID, pods_of, tenants
from temper_core.profiles.documents import parse_profile

SOURCE = Path(__file__).parents[3] / "bench/ladder/load.c"


def test_more_pods_have_all_of_the_fewer_ones():
    assert pods_of(50)[:5] == pods_of(5)
    assert len({pod.uid for pod in pods_of(250)}) == 250


def test_critical_pods_have_the_profile_and_all_tiers_are_there():
    pods = pods_of(5)

    assert {pod.priority for pod in pods} == {1_000_000, 0, -1000}
    assert all(bool(pod.profile) is (pod.priority == 1_000_000) for pod in pods)
    assert parse_profile(PROFILE, PROFILE_ID).id == PROFILE_ID


@pytest.fixture
def load(tmp_path):
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    subprocess.run(["gcc", "-O2", "-pthread", "-o", tmp_path / "load", SOURCE, "-lm"], check=True)
    return tmp_path / "load"


def living(load: Path) -> set[str]:
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (path / "exe").readlink() == load:
                found.add(path.name)
    return found


def living_soon(load: Path, number: int) -> set[str]:
    while len(found := living(load)) != number:
        time.sleep(0.01)
    return found


def test_a_container_is_replaced_and_all_end(tmp_path, load):
    with tenants(tmp_path / "tree", load, tmp_path / "pods.json") as made:
        made.grow(3)
        before = living_soon(load, 3)

        made.replace(1)
        after = living_soon(load, 3)

        assert len(before & after) == 2
    assert not living(load)
