import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.node.cgroup_sizes import (
    linear_shares,
    quadratic_shares,
    read_size,
    weight_scale,
)
from temper_core.node.pod_size import CpuSize
from tests.core.node.trees import make_cgroup


def linear_weight(shares):
    return 1 + (shares - 2) * 9999 // 262142


def quadratic_weight(shares):
    logarithm = math.log2(shares)
    return math.ceil(10 ** ((logarithm * logarithm + 125 * logarithm) / 612 - 7 / 34))


@pytest.mark.parametrize(
    ("files", "size"),
    [
        ({}, (0, None)),
        ({"cpu_weight": "100\n", "cpu_max": "max 100000\n"}, (0, None)),
        ({"cpu_weight": "1\n", "cpu_max": "max 100000\n"}, (0, None)),
        ({"cpu_weight": "10\n", "cpu_max": "50000 100000\n"}, (232, 500)),
        ({"cpu_weight": "39\n", "cpu_max": "1 3\n"}, (975, 334)),
        ({"cpu_shares": "1024\n", "cpu_cfs_quota_us": "-1\n"}, (0, None)),
        ({"cpu_shares": "2\n", "cpu_cfs_quota_us": "-1\n"}, (0, None)),
        ({"cpu_shares": "102\n"}, (100, None)),
        (
            {
                "cpu_shares": "2048\n",
                "cpu_cfs_quota_us": "150000\n",
                "cpu_cfs_period_us": "100000\n",
            },
            (2000, 1500),
        ),
        ({"cpu_weight": "0\n", "cpu_max": "max 100000\n"}, (0, None)),
        ({"cpu_weight": "idle\n", "cpu_max": "garbage\n"}, (0, None)),
        ({"cpu_weight": "", "cpu_max": "5 0\n"}, (0, None)),
    ],
)
def test_request_and_limit_are_read_from_either_version(tmp_path, files, size):
    make_cgroup(tmp_path, "a", **files)

    assert read_size(tmp_path / "a") == CpuSize(*size)


def test_what_is_not_there_asks_for_nothing(tmp_path):
    assert read_size(tmp_path / "absent") == CpuSize(0, None)


@given(st.integers(2, 262_144))
def test_shares_survive_the_older_conversion_to_within_its_step(shares):
    assert 0 <= shares - linear_shares(linear_weight(shares)) <= 27


@given(st.integers(2, 262_144))
def test_shares_survive_the_newer_conversion_to_within_its_step(shares):
    weight = quadratic_weight(shares)

    assert quadratic_shares(max(weight - 1, 1)) <= shares <= quadratic_shares(weight) + 1


@pytest.mark.parametrize("cpus", [1, 2, 4, 16, 64, 128])
@pytest.mark.parametrize(
    ("weigh", "scale"), [(linear_weight, linear_shares), (quadratic_weight, quadratic_shares)]
)
def test_the_weight_above_all_pods_tells_which_conversion_is_in_use(tmp_path, cpus, weigh, scale):
    allocatable = int(cpus * 1024 * 0.94)
    top = make_cgroup(tmp_path, "kubepods.slice", cpu_weight=f"{weigh(allocatable)}\n")

    assert weight_scale(top, cpus) is scale


@pytest.mark.parametrize("weight", ["", "1\n", "garbage"])
def test_without_a_telling_weight_the_older_conversion_is_assumed(tmp_path, weight):
    top = make_cgroup(tmp_path, "kubepods", cpu_weight=weight)

    assert weight_scale(top, 8) is linear_shares
    assert weight_scale(tmp_path / "absent", 8) is linear_shares
