"""The page of records has what a plugin's author needs of each."""

import re
from pathlib import Path

import attrs
import pytest

import temper_core
from temper_core.plugin_host import RECORDS

PAGE = (Path(__file__).parents[2] / "docs" / "records.md").read_text()
PARTS = dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
NAMED = (getattr(temper_core, name) for name in temper_core.__all__)
PUBLIC = [
    kind
    for kind in NAMED
    if isinstance(kind, type) and kind.__module__.startswith("temper_core.records.")
]


RECORDS_OF_FIELDS = [kind for kind in PUBLIC if attrs.has(kind)]


@pytest.mark.parametrize("record", sorted({kind.__name__ for kind in RECORDS.values()}))
def test_what_each_hook_returns_is_on_the_page(record):
    assert record in PARTS


@pytest.mark.parametrize("record", RECORDS_OF_FIELDS, ids=lambda record: record.__name__)
def test_a_public_record_is_told_with_all_of_its_fields(record):
    names = re.findall(r"^\| `(\w+)` \| `", PARTS[record.__name__], re.MULTILINE)

    assert names == [field.name for field in attrs.fields(record)]
    assert PARTS[record.__name__].split("\n")[1]


@pytest.mark.parametrize(
    ("record", "row"),
    [
        ("Snapshot", "| `window_s` | `float` | required | seconds |"),
        ("Snapshot", "| `threads` | `tuple[ThreadSample, ...]` | `()` |  |"),
        ("ThreadSample", "| `tier` | `Tier \\| None` | `None` |  |"),
        ("Pod", "| `cpu_request_millis` | `int` | `0` | millicores |"),
        ("Pod", "| `key` | The name for people: `namespace/name`. |"),
        ("Event", "| `at` | `float` | required | Its time in wall-clock seconds. |"),
        ("Severity", "| `warning` | `WARNING` |"),
        ("OpenPodSource", "| `close()` | Release all resources of the source. |"),
        ("PressureLine", "| `avg10` | `float` | required | ratio, 1.0 is 100 % |"),
        ("ThreadSample", "| `cpu_used` | `float` | required | CPUs |"),
        ("Figure", "| `spread` | `float` | required | in `unit` |"),
    ],
)
def test_a_field_is_told_with_type_default_and_unit(record, row):
    assert row in PARTS[record].splitlines()


NUMBER = re.compile(r"^\| (`\w+`) \| `[^|]*\b(?:int|float)\b.*\| ([^|]*) \|$", re.MULTILINE)


@pytest.mark.parametrize("record", PARTS)
def test_a_number_is_told_with_its_unit_or_meaning(record):
    rows = NUMBER.findall(PARTS[record].replace("\\|", "or"))

    assert [name for name, meaning in rows if not meaning.strip()] == []


def test_a_record_within_a_public_one_is_on_the_page_too():
    assert "PressureLine" not in temper_core.__all__
    assert "PressureLine" in PARTS
