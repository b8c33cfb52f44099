import pytest

from bench.ladder.__main__ import by_limit, measured_under, parser, rotated
from bench.ladder.arms import ARMS

NEEDED = ["--load", "load", "--engine", "engine", "--records", "records"]


def test_every_round_begins_with_another_arm():
    assert [rotated(["a", "b", "c"], turn) for turn in range(4)] == [
        ["a", "b", "c"],
        ["b", "c", "a"],
        ["c", "a", "b"],
        ["a", "b", "c"],
    ]


def test_points_are_loads_with_levels():
    options = parser().parse_args([*NEEDED, "--points", "weight:0,8 noise:4"])

    assert options.points == [("weight", 0), ("weight", 8), ("noise", 4)]


def test_points_of_one_limit_are_measured_together():
    points = [(1, ("weight", 8)), (1, ("quota", 4)), (2, ("burst", 4)), (2, ("quota", 4))]

    assert by_limit(points) == {
        0: [(1, ("weight", 8)), (2, ("burst", 4))],
        1500: [(1, ("quota", 4)), (2, ("quota", 4))],
    }


def test_points_are_measured_with_and_without_captures():
    options = parser().parse_args([*NEEDED, "--captures", "none,node,none,pod"])

    assert options.captures == ["none", "node", "none", "pod"]


def test_a_real_server_is_a_point_too():
    options = parser().parse_args([*NEEDED, "--points", "redis:0,8"])

    assert options.points == [("redis", 0), ("redis", 8)]


@pytest.mark.parametrize(
    "wrong", [["--points", "none:1"], ["--arms", "stock,none"], ["--captures", "node,all"]]
)
def test_an_unknown_name_is_refused_with_those_there_are(wrong, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args([*NEEDED, *wrong])

    told = capsys.readouterr().err
    assert ": none of" in told


def test_an_arm_with_a_builtin_profile_measures_its_server_alone():
    points = [(1, ("mysql", 8)), (1, ("redis", 0)), (1, ("weight", 8))]

    assert measured_under(ARMS["mysql-pack"], points) == [(1, ("mysql", 8))]
    assert measured_under(ARMS["tiers"], points) == points
