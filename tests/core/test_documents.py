import gzip
import io
import os
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen
from attrs.validators import ge
from hypothesis import given
from hypothesis import strategies as st

from temper_core.documents import (
    MOST_PROBLEMS,
    fit,
    parse_json,
    parse_toml,
    read,
    read_json,
    read_stream,
    read_text,
)
from temper_core.errors import DocumentError
from temper_core.records.profiles import WorkloadProfile
from temper_core.settings.models import Settings


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


@frozen
class Wheel:
    size: int = field(default=5, validator=ge(1))
    rpm: float = 1.5


@frozen
class Car:
    name: str
    colour: Colour = Colour.RED
    doors: tuple[int, ...] = ()
    gears: tuple[int, int] = (1, 2)
    wheel: Wheel = Wheel(size=7)
    spare: Wheel | None = None
    width: int | tuple[int, int] | None = None
    extras: dict[str, bool] = field(factory=dict)

    def __attrs_post_init__(self):
        if self.name == "Edsel":
            raise ValueError("nobody wants an Edsel")


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({}, "name: is required"),
        ({"name": 3}, "name: must be a string, not 3"),
        ({"name": "a", "sped": 1}, "unknown key 'sped'"),
        ({"name": "a", "colour": "blue"}, "colour: must be one of 'red', 'green', not 'blue'"),
        ({"name": "a", "colour": "gren"}, "not 'gren'; did you mean 'green'?"),
        ({"name": "a", "colour": 3}, "colour: must be one of 'red', 'green', not 3"),
        ({"name": "a", "doors": [1, "2"]}, "doors[1]: must be a whole number, not '2'"),
        ({"name": "a", "doors": 2}, "doors: must be a list, not 2"),
        ({"name": "a", "gears": [1]}, "gears: must be a list of 2 values, not [1]"),
        ({"name": "a", "wheel": {"size": 0}}, "wheel.size: must be >= 1: 0"),
        ({"name": "a", "wheel": 4}, "wheel: must be a table, not 4"),
        ({"name": "a", "spare": {"rpm": "1"}}, "spare.rpm: must be a number, not '1'"),
        ({"name": "a", "width": "w"}, "width: must be a whole number, not 'w' or must be a list"),
        ({"name": "a", "extras": {"abs": 1}}, "extras.abs: must be true or false, not 1"),
        ({"name": "a", "doors": [True]}, "doors[0]: must be a whole number, not True"),
        ({"name": "a", "wheel": {"rpm": float("inf")}}, "wheel.rpm: must be a finite number"),
        ({"name": "Edsel"}, "document: nobody wants an Edsel"),
        ("text", "document: must be a table, not 'text'"),
    ],
)
def test_each_misfit_is_named_by_its_path(document, problem):
    with pytest.raises(DocumentError) as caught:
        fit(document, Car, source="car.toml")

    assert len(caught.value.problems) == 1
    assert problem in caught.value.problems[0]
    assert str(caught.value).startswith("car.toml: ")


def test_every_misfit_is_reported_at_once():
    with pytest.raises(DocumentError) as caught:
        fit({"colour": 1, "wheel": {"size": -1, "x": 2}, "doors": "12"}, Car, source="car.toml")

    places = {problem.partition(":")[0] for problem in caught.value.problems}
    assert places == {"colour", "doors", "name", "wheel", "wheel.size"}


def test_a_table_given_in_part_keeps_the_enclosing_default():
    car = fit({"name": "a", "wheel": {"rpm": 2}}, Car, source="car.toml")

    assert car.wheel == Wheel(size=7, rpm=2.0)


def test_values_of_the_right_type_are_taken_as_they_are():
    car = fit({"name": "a", "width": [1, 2], "spare": {}, "gears": [3, 4]}, Car, source="c")

    assert (car.width, car.spare, car.gears) == ((1, 2), Wheel(), (3, 4))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a = [1", "is not TOML"),
        (b"a = 1\na = 2", "is not TOML"),
        (b"\xff\xfe", "is not UTF-8 text (byte 0)"),
        (gzip.compress(b"{}", mtime=0), "is compressed (gzip), not text"),
        (b"name = 'a'\nx = " + b"[" * 5000, "is not TOML"),
    ],
)
def test_a_document_that_cannot_be_parsed_is_one_problem(tmp_path: Path, content, problem):
    path = tmp_path / "car.toml"
    path.write_bytes(content)

    with pytest.raises(DocumentError) as caught:
        read(path, Car)

    assert len(caught.value.problems) == 1
    assert problem in caught.value.problems[0]


def test_a_missing_document_and_a_directory_are_named(tmp_path: Path):
    with pytest.raises(DocumentError, match="No such file"):
        read_text(tmp_path / "none.toml")
    with pytest.raises(DocumentError, match="Is a directory"):
        read_text(tmp_path)


@pytest.mark.parametrize("text", ["{", "", "[1,", "[" * 100_000])
def test_json_that_is_none_is_one_problem(text):
    with pytest.raises(DocumentError, match="is not JSON"):
        parse_json(text, source="stdin")


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYS = st.sampled_from(["tiers", "critical", "workloads", "name", "plan", "lint", "kind", "node"])


@given(st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON, max_size=3), max_size=4))
def test_any_table_is_settings_or_a_document_error(table):
    with suppress(DocumentError):
        assert isinstance(fit(table, Settings, source="fuzz"), Settings)


PROFILE_KEYS = st.sampled_from(
    ["id", "thread_groups", "match", "treatment", "cpu_fraction", "fingerprint", "images", "name"]
)


@given(st.dictionaries(PROFILE_KEYS, JSON | st.lists(st.dictionaries(PROFILE_KEYS, JSON))))
def test_any_table_is_a_profile_or_a_document_error(table):
    with suppress(DocumentError):
        assert isinstance(fit(table, WorkloadProfile, source="fuzz"), WorkloadProfile)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("width = " + "1" * 5000, "a number is too long"),
        ("width = 0x1" + "f" * 5000, "a number is too long"),
        ("name = 'a'\nextras = " + "[" * 5000, "nested too deeply"),
    ],
)
def test_toml_that_exceeds_python_is_told_in_the_words_of_the_document(content, problem):
    with pytest.raises(DocumentError, match=problem) as caught:
        parse_toml(content, source="car.toml")

    assert "sys." not in str(caught.value)
    assert "recursion" not in str(caught.value)


@pytest.mark.parametrize("text", ["1" * 5000, "[" * 100_000])
def test_json_that_exceeds_python_is_told_in_the_words_of_the_document(text):
    with pytest.raises(DocumentError, match=r"too long|too deeply") as caught:
        parse_json(text, source="stdin")

    assert "sys." not in str(caught.value)
    assert "recursion" not in str(caught.value)


@pytest.mark.parametrize("key", ["rpm", "size"])
def test_a_number_that_no_machine_holds_is_a_misfit(key):
    with pytest.raises(DocumentError, match=f"wheel.{key}: is too long a number"):
        fit({"name": "a", "wheel": {key: 10**400}}, Car, source="car.json")


def test_a_byte_order_mark_is_no_part_of_a_document(tmp_path: Path):
    path = tmp_path / "car.toml"
    path.write_bytes(b"\xef\xbb\xbfname = 'a'\n")

    assert read(path, Car).name == "a"
    assert parse_json('\ufeff{"a": 1}', source="car.json") == {"a": 1}


def test_a_pipe_is_refused_without_waiting_unless_it_is_asked_for(tmp_path: Path):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    with pytest.raises(DocumentError, match="is not a regular file"):
        read_text(path)


def test_a_pipe_is_read_where_it_is_allowed():
    reader, writer = os.pipe()
    os.write(writer, b"name")
    os.close(writer)

    try:
        assert read_text(Path(f"/dev/fd/{reader}"), pipes=True) == "name"
    finally:
        os.close(reader)


@pytest.mark.parametrize(
    "document",
    [
        {"name": "a", "doors": ["open"] * 1000},
        {"name": "a", "extras": {f"part_{n}": 1 for n in range(1000)}},
        {"name": "a", **{f"part_{n}": 1 for n in range(1000)}},
    ],
)
def test_of_very_many_misfits_the_first_are_named(document):
    with pytest.raises(DocumentError) as refused:
        fit(document, Car, source="car")

    assert len(refused.value.problems) == MOST_PROBLEMS


def test_what_never_ends_is_too_large():
    with pytest.raises(DocumentError, match="/dev/zero: is larger than 67108864 bytes"):
        read_text(Path("/dev/zero"), pipes=True)


def test_a_stream_that_is_no_text_names_the_byte():
    with pytest.raises(DocumentError, match=r"-: is not UTF-8 text \(byte 2\)"):
        read_stream(io.BytesIO(b"ab\xff"), source="-")


def test_a_name_that_no_file_can_have_is_a_document_error():
    with pytest.raises(DocumentError, match="is no name of a file"):
        read_text(Path("a\0b"))


def test_a_date_without_quotes_is_told_as_it_is_written():
    with pytest.raises(DocumentError, match="name: must be a string, not 2026-05-04 without"):
        fit(parse_toml("name = 2026-05-04", source="car"), Car, source="car")


def test_a_packed_recording_names_the_command_that_reads_it(tmp_path: Path):
    path = tmp_path / "node.rec.gz"
    path.write_bytes(gzip.compress(b"{}", mtime=0))

    with pytest.raises(DocumentError) as caught:
        read_json(path)

    assert str(caught.value) == (
        f"{path}: is compressed (gzip), not text; temper simulate reads the recording of a node"
    )
