import re
import tomllib

import pytest
from attrs import evolve
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from temper_core import DocumentError, InputError, Treatment
from temper_core.cli.profiles import command as profiles
from temper_plugin_trainer.commands.train import command
from temper_plugin_trainer.thread_tables import TableMachine
from temper_plugin_trainer.training.bundles import packed_bundle
from temper_plugin_trainer.training.grouping import analyse
from temper_plugin_trainer.training.synthesis import Wanted, synthesise
from tests.trainer.training.bundled import BY_NETWORK, BY_THREADS, bundle, thread


def hot(number, **more):
    return thread(f"worker-{number}", 20 + number, 0.95, 1, **more)


def chained(comm="io-1", tid=3, **more):
    return thread(comm, tid, 0.1, 500, sleeps_in=BY_THREADS, **more)


def made(*threads, request=None, **more):
    whole = bundle(*threads, **more)
    return synthesise(whole, analyse(whole), Wanted(request_millis=request), "made.toml")


def groups(result):
    return {group.name: group for group in result.profile.thread_groups}


def matches(result, name):
    table = tomllib.loads(result.text)
    return next(group["match"] for group in table["thread_groups"] if group["name"] == name)


def test_each_class_becomes_a_group_with_its_treatment():
    served = thread("conn-1", 4, 0.1, 500, sleeps_in=BY_NETWORK)
    burst = thread("gc", 5, 0.1, 0.3)

    result = made(hot(0), chained(), served, burst)

    treatments = [(group.name, group.treatment) for group in result.profile.thread_groups]
    assert treatments == [
        ("compute", Treatment.EXCLUSIVE),
        ("wake-chain", Treatment.LATENCY),
        ("latency", Treatment.LATENCY),
        ("sporadic", Treatment.YIELD),
        ("rest", Treatment.NORMAL),
    ]
    assert result.coverage.covered_share == 1.0
    assert not result.left_out


@pytest.mark.parametrize(
    ("hot_threads", "request_millis", "fraction", "arithmetic"),
    [
        (2, 2250, 0.888, "2250m x 0.888 = 1.998, so 2 exclusive cores"),
        (3, 3000, 1.0, "3000m x 1 = 3, so 3 exclusive cores"),
        (1, 1500, 0.666, "1500m x 0.666 = 0.999, so 1 exclusive cores"),
        (3, 1500, 1.0, "1500m x 1 = 1.5, so 2 exclusive cores"),
    ],
)
def test_the_fraction_gives_each_hot_thread_a_core_with_its_arithmetic(
    hot_threads, request_millis, fraction, arithmetic
):
    result = made(*map(hot, range(hot_threads)), request=request_millis)

    assert float(groups(result)["compute"].cpu_fraction) == fraction
    assert f"# {arithmetic}\n" in result.text


def test_children_with_the_name_of_the_program_are_told_from_its_own_thread():
    """Redis' snapshots are such children."""
    served = thread("shop", 4, 0.1, 500, sleeps_in=BY_NETWORK, leader=True, parent="sh")
    of_it = {"leader": True, "child": True, "parent": "shop"}
    children = [thread("shop", 30 + number, 0.9, 0.1, **of_it) for number in range(2)]

    result = made(served, *children)

    keys = {"comm_prefix": "shop", "process": "shop"}
    assert matches(result, "latency") == [{**keys, "is_child": False}]
    assert matches(result, "compute") == [{**keys, "is_child": True}]
    assert result.coverage.covered_share == 1.0
    assert not result.misplaced


def test_a_profile_is_of_the_program_that_serves_not_of_a_busier_one_beside_it():
    beside = thread("gzip", 2, 0.95, 1, process="gzip")
    served = thread("redis-server", 4, 0.1, 500, process="redis-server", sleeps_in=BY_NETWORK)

    both, alone = made(beside, served, program="gzip"), made(beside, program="gzip")

    assert [(of.profile.id, of.profile.fingerprint.processes) for of in (both, alone)] == [
        ("redis-server", ("redis-server",)),
        ("gzip", ("gzip",)),
    ]


def test_a_request_that_is_too_small_is_told():
    assert "# the request is too small for 3 cores" in made(*map(hot, range(3)), request=1500).text


def test_hot_threads_of_all_cores_get_none_of_their_own():
    result = made(hot(0), hot(1), machine=TableMachine(2))

    assert groups(result)["compute"].treatment is Treatment.NORMAL
    assert "# the machine has 2, and the other threads need one" in result.text


def test_names_are_generalised_over_their_numbers():
    assert matches(made(hot(0), hot(1)), "compute") == [
        {"comm_prefix": "worker-", "process": "shop"}
    ]


def test_a_beginning_that_others_share_becomes_a_pattern():
    result = made(hot(0), chained("worker-pool"))

    assert matches(result, "compute")[0]["comm_pattern"] == "^worker\\-[0-9]+$"
    assert result.coverage.covered_share == 1.0
    assert not any(row.others for row in result.coverage.judged)


@pytest.mark.parametrize(
    ("threads", "why"),
    [
        ([thread("io", 3, 0.3, 5)], "its class is unclear: fits no class well"),
        ([chained("a\u200bb")], "they cannot be written in a profile"),
        ([chained("\N{SNOWMAN}" * 9)], "they cannot be written in a profile"),
    ],
)
def test_what_no_group_takes_is_told_with_the_reason(threads, why):
    (line,) = made(*threads).left_out

    assert why in line


def test_one_name_of_several_behaviours_is_left_to_the_rest():
    result = made(hot(0), thread("worker-1", 9, 0.4, 900, sleeps_in=BY_NETWORK))

    assert len(result.left_out) == 2
    assert result.coverage.covered_share == 0.0


def test_a_leader_is_told_from_other_threads_of_its_name():
    leader = thread("shop", 9, 0.4, 900, sleeps_in=BY_NETWORK, leader=True)

    result = made(thread("shop", 10, 0.95, 1), leader)

    compute = {"comm_prefix": "shop", "process": "shop", "leader": False}
    assert matches(result, "compute") == [compute]
    assert matches(result, "latency") == [{"process": "shop", "leader": True}]
    assert result.coverage.share_of("latency") == pytest.approx(0.4 / 1.35)
    assert not result.left_out


def test_a_group_that_takes_threads_of_another_class_is_told():
    served = thread("shop", 9, 0.4, 900, sleeps_in=BY_NETWORK, leader=True)
    unclear = thread("shopping", 11, 0.4, 5, process="shopping", leader=True)

    result = made(thread("shop", 10, 0.95, 1), served, unclear)

    (line,) = result.misplaced
    assert line == "group latency takes threads of another class, 22.9 % of the CPU time"


def test_threads_with_hardly_any_cpu_time_are_left_to_the_rest():
    result = made(hot(0), thread("tick", 9, 0.001, 4))

    assert "tick" not in result.text
    assert not result.left_out


@pytest.fixture
def path(tmp_path):
    return tmp_path / "bundle.gz"


def synthesize(path, whole, *arguments):
    path.write_bytes(packed_bundle(whole))
    return CliRunner().invoke(command, ["synthesize", str(path), *arguments])


def test_a_profile_is_printed_and_has_no_mistake_but_that_it_is_not_measured(path, tmp_path):
    result = synthesize(path, bundle(hot(0), chained()))
    profile = tmp_path / "shop.toml"
    profile.write_text(result.stdout)

    lint = CliRunner().invoke(profiles, ["lint", str(profile)])

    assert result.exit_code == 0
    assert "100.0 % of the CPU time is covered" in result.stderr
    assert re.findall(r"\[([a-z_]+)\]", lint.output) == ["no_evidence"]


def test_the_images_the_id_and_the_request_are_the_operators(path):
    options = ("--id", "mine", "--image", "shop:*", "--cpu-request", "1500m")

    result = synthesize(path, bundle(hot(0)), *options)

    table = tomllib.loads(result.stdout)
    assert (table["id"], table["fingerprint"]) == ("mine", {"images": ["shop:*"]})
    assert table["thread_groups"][0]["cpu_fraction"] == 0.666


def test_a_low_coverage_is_exit_code_1_and_told(path):
    result = synthesize(path, bundle(hot(0), thread("io", 3, 0.3, 5)))

    assert result.exit_code == 1
    assert "76.0 % of the CPU time is covered by groups with a match, less than 90 %" in (
        result.stderr
    )
    assert "left to the rest: shop/io, 24.0 % of the CPU time: its class" in result.stderr


def test_a_load_that_was_not_representative_is_exit_code_1_and_told(path):
    result = synthesize(path, bundle(hot(0), problems=("not steady: x",)))

    assert result.exit_code == 1
    assert "the load was not representative: not steady: x" in result.stderr
    assert "# Not told: the load was not representative: not steady: x" in result.stdout


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--cpu-request", "much"), "--cpu-request: "),
        (("--cpu-request", "0"), "--cpu-request: must be more than 0"),
        (("--id", "No Id"), "id: "),
    ],
)
def test_a_bad_option_is_told_and_leaves_no_file(options, why, path, tmp_path):
    out = tmp_path / "out.toml"

    result = synthesize(path, bundle(hot(0)), *options, "-o", str(out))

    assert isinstance(result.exception, InputError)
    assert why in str(result.exception)
    assert not out.exists()


def test_a_profile_that_is_there_is_kept(path, tmp_path):
    out = tmp_path / "out.toml"
    out.write_text("mine")

    result = synthesize(path, bundle(hot(0)), "-o", str(out))

    assert isinstance(result.exception, InputError)
    assert out.read_text() == "mine"


names = st.text(max_size=15) | st.sampled_from(
    ["a-1", "a-2", "gc", "b", "", "7", '"\\', "# x", "[x]"]
)


@given(
    st.lists(
        st.builds(
            evolve,
            st.sampled_from([hot(0), chained(), thread("x", 4, 0.3, 5), thread("y", 5, 0.1, 0.3)]),
            comm=names,
            process=names,
            tid=st.integers(1, 9),
            leader=st.booleans(),
        ),
        min_size=1,
        max_size=6,
    ),
    st.none() | st.integers(1, 10**6),
)
def test_any_names_give_a_valid_profile(threads, request_millis):
    try:
        result = made(*threads, request=request_millis)
    except DocumentError as error:
        pytest.fail(str(error))

    tomllib.loads(result.text)
    known = result.coverage.covered_share
    assert 0 <= known <= 1
