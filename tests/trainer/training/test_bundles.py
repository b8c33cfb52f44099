import gzip
import json
import os

import pytest
from attrs import asdict, evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temper_core import DocumentError, InputError
from temper_plugin_trainer.thread_tables import TableMachine
from temper_plugin_trainer.training.bundles import (
    LARGEST_BYTES,
    LARGEST_PACKED_BYTES,
    AgentLook,
    Bundle,
    BundleAgent,
    BundleEdge,
    BundleInterval,
    BundleThread,
    BundleTrace,
    BundleWakes,
    packed_bundle,
    read_bundle,
)

THREAD = BundleThread(7, 7, "io-1", "shop", 10.0, 1.5, 0.5, 900, 800, 100, 0.4, {"ep_poll": 9})
EDGE = BundleEdge(0, 7, "", "io-1", False, True, 40)
BUNDLE = Bundle(
    "shop",
    TableMachine(4),
    "6.18",
    "2026-01-31",
    10.0,
    (BundleInterval(0.25, 0.1, 0.0, 20, 1),),
    (THREAD,),
    BundleAgent(
        "", (AgentLook("x", "enforcing", 3, "e", 0.5),), BundleWakes("", 1, 0.5, 0, (EDGE,))
    ),
)


def nested(inner):
    return st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
anything = st.recursive(plain, nested, max_leaves=8)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("bundles") / "bundle.gz"


def problem(path, content):
    """Return the one line with which a file of *content* is refused."""
    path.write_bytes(content)
    with pytest.raises(DocumentError) as refused:
        read_bundle(path)
    (line,) = refused.value.lines
    assert "\n" not in line
    return line.removeprefix(f"{path}: ")


def lines_of(path):
    """Return the lines with which the file is refused, none if it is read."""
    try:
        read_bundle(path)
    except DocumentError as error:
        return error.lines
    return ()


def packed(document):
    return gzip.compress(json.dumps(document).encode(), mtime=0)


def test_a_bundle_reads_back(path):
    path.write_bytes(packed_bundle(BUNDLE))

    assert read_bundle(path) == BUNDLE


def test_a_trace_reads_back_and_a_bundle_without_one_has_no_key_for_it(path):
    trace = BundleTrace("", "AAEC", 3, 2.5, "seconds")
    path.write_bytes(packed_bundle(evolve(BUNDLE, trace=trace)))

    assert read_bundle(path).trace == trace
    assert trace.decoded() == b"\x00\x01\x02"
    assert "trace" not in json.loads(gzip.decompress(packed_bundle(BUNDLE)))


@pytest.mark.parametrize(
    ("trace", "problem"),
    [
        (BundleTrace("no agent answers"), "the bundle has no trace: no agent answers"),
        (BundleTrace("", "AA\N{SNOWMAN}"), "the bundle's trace is damaged: "),
        (BundleTrace("", "A"), "the bundle's trace is damaged: "),
    ],
)
def test_a_trace_that_is_none_is_one_line(trace, problem):
    with pytest.raises(InputError) as refused:
        trace.decoded()

    assert str(refused.value).startswith(problem)


def test_the_same_bundle_is_the_same_file():
    assert packed_bundle(BUNDLE) == packed_bundle(evolve(BUNDLE))


def test_a_bundle_of_too_many_threads_keeps_the_busiest(path):
    long = evolve(THREAD, title="\N{SNOWMAN}" * 1_024, run_s=0.1)
    bundle = evolve(BUNDLE, threads=(long,) * 4_095 + (THREAD,))
    path.write_bytes(packed_bundle(bundle))

    kept = read_bundle(path)

    assert kept.threads[0] == THREAD
    assert kept.left_out + len(kept.threads) == 4_096
    assert kept.left_out_cpus == pytest.approx(kept.left_out * 0.1 / 10)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is cut off"),
        (b"{}", "is not a bundle of temper train observe"),
        (gzip.compress(b"\xff"), "is not UTF-8 text"),
        (gzip.compress(b"{"), "is not JSON"),
        (gzip.compress(b"[" * 100_000), "is not JSON: it is nested too deeply"),
        (gzip.compress(b"[]"), "document: must be a table"),
        (gzip.compress(b"\0" * (LARGEST_BYTES + 1)), "is larger than"),
        (b"\x1f\x8b" + b"\0" * LARGEST_PACKED_BYTES, "is larger than"),
    ],
    ids=["empty", "plain", "bytes", "cut", "deep", "list", "bomb", "large"],
)
def test_a_file_that_is_no_bundle_is_refused_with_the_reason(content, why, path):
    assert problem(path, content).startswith(why)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e308, 10**400, -1, "1", None, True])
@pytest.mark.parametrize("key", ["run_s", "lived_s", "sleeps", "tid"])
def test_a_number_that_is_none_is_refused_by_its_path(key, value, path):
    document = asdict(BUNDLE)
    document["threads"][0][key] = value

    line = problem(path, packed(document))

    assert f"threads[0].{key}" in line or "number is too long" in line


@pytest.mark.parametrize("seconds", [0, 1e-300])
def test_an_observation_of_no_time_is_refused(seconds, path):
    assert "seconds" in problem(path, packed({**asdict(BUNDLE), "seconds": seconds}))


@pytest.mark.parametrize(
    "functions", [{"f": -1}, {"f" * 65: 1}, {str(n): 1 for n in range(9)}, {"f": 10**9}, [1]]
)
def test_wait_channels_out_of_bounds_are_refused(functions, path):
    document = asdict(BUNDLE)
    document["threads"][0]["sleeps_in"] = functions

    assert "threads[0].sleeps_in" in problem(path, packed(document))


@given(st.integers(min_value=0, max_value=len(packed_bundle(BUNDLE)) - 1))
def test_a_truncated_bundle_is_refused(path, length):
    assert problem(path, packed_bundle(BUNDLE)[:length])


@given(st.data())
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_a_bundle_with_anything_anywhere_is_read_or_refused_in_one_line(path, data):
    document = asdict(BUNDLE)
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        inner = place[key]
        if not (isinstance(inner, dict | list | tuple) and inner) or data.draw(st.booleans()):
            break
        if isinstance(inner, tuple):
            place[key] = inner = list(inner)
        place = inner
    place[key] = data.draw(anything)
    path.write_bytes(packed(document))

    assert len(lines_of(path)) <= 1


@given(st.binary(max_size=200))
def test_bytes_are_refused_in_one_line(path, content):
    assert problem(path, content)


def test_a_pipe_is_refused_without_waiting(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with pytest.raises(DocumentError, match="is not a regular file"):
        read_bundle(pipe)


@pytest.mark.parametrize("name", ["none", ".", "a\0b"])
def test_a_file_that_cannot_be_read_is_told(name, tmp_path):
    with pytest.raises(DocumentError):
        read_bundle(tmp_path / name)
