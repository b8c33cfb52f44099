"""Every profile that is shown or shipped fits both the schema and the reader."""

import json
import re
from pathlib import Path

import pytest
import tomli
from click.testing import CliRunner

from temper_core import DocumentError, parse_profile
from temper_core.cli.profiles import command
from temper_core.profiles.schema import profile_schema

ROOT = Path(__file__).parents[3]
PAGES = [*ROOT.glob("docs/*.md"), *ROOT.glob("*.md"), *ROOT.glob("plugins/*/README.md")]
FENCED = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
IS_PROFILE = re.compile(r"^(\[\[thread_groups\]\]|extends = )", re.MULTILINE)
FILES = [
    path
    for folder in ("plugins", "examples", "bench", "deploy", "tests")
    for path in ROOT.glob(f"{folder}/**/*.toml")
    if IS_PROFILE.search(path.read_text(encoding="utf-8"))
]
SHOWN = [
    (f"{page.name}-{number}", text)
    for page in PAGES
    for number, text in enumerate(FENCED.findall(page.read_text(encoding="utf-8")))
    if IS_PROFILE.search(text)
]
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int,
         "number": (int, float)}  # fmt: skip


def fits(value, schema):
    return not any(misfits(value, schema))


def misfits(value, schema):
    """Hold *value* against the part of JSON Schema that ours uses; yield what is wrong."""
    kind = schema.get("type")
    is_number = kind in ("integer", "number") and isinstance(value, bool)
    if kind and (is_number or not isinstance(value, TYPES[kind])):
        yield f"{value!r} is no {kind}"
        return
    yield from (key for key, test in TESTS.items() if key in schema and not test(value, schema))
    if "if" in schema:
        branch = "then" if fits(value, schema["if"]) else "else"
        yield from misfits(value, schema.get(branch, {}))
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from misfits(inner, schema.get("properties", {}).get(key, {}))
    if isinstance(value, list):
        for inner in value:
            yield from misfits(inner, schema.get("items", {}))


TESTS = {
    "anyOf": lambda value, schema: any(fits(value, each) for each in schema["anyOf"]),
    "not": lambda value, schema: not fits(value, schema["not"]),
    "enum": lambda value, schema: value in schema["enum"],
    "pattern": lambda value, schema: re.search(schema["pattern"], value) is not None,
    "required": lambda value, schema: {*schema["required"]} <= {*value},
    "additionalProperties": lambda value, schema: {*value} <= {*schema["properties"]},
    "minLength": lambda value, schema: len(value) >= schema["minLength"],
    "maxLength": lambda value, schema: len(value) <= schema["maxLength"],
    "minItems": lambda value, schema: len(value) >= schema["minItems"],
    "maxItems": lambda value, schema: len(value) <= schema["maxItems"],
    "minProperties": lambda value, schema: len(value) >= schema["minProperties"],
    "minimum": lambda value, schema: value >= schema["minimum"],
    "maximum": lambda value, schema: value <= schema["maximum"],
    "exclusiveMinimum": lambda value, schema: value > schema["exclusiveMinimum"],
}


def test_there_are_profiles_to_judge():
    assert len(FILES) >= 3
    assert len(SHOWN) >= 3


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_a_file_fits_the_schema_and_the_reader(path):
    text = path.read_text()

    assert list(misfits(tomli.loads(text), profile_schema())) == []
    assert parse_profile(text, path.name).id


@pytest.mark.parametrize("text", [text for _, text in SHOWN], ids=[name for name, _ in SHOWN])
def test_what_a_page_shows_fits_the_schema_and_the_reader(text):
    assert list(misfits(tomli.loads(text), profile_schema())) == []
    assert parse_profile(text, "shown").id


@pytest.mark.parametrize("text", [text for _, text in SHOWN], ids=[name for name, _ in SHOWN])
def test_what_a_page_shows_is_loaded_with_what_it_extends(text, tmp_path):
    path = tmp_path / "shown.toml"
    path.write_text(text)

    judged = CliRunner().invoke(command, ["lint", str(path), "--profiles", str(tmp_path)])

    assert judged.exit_code in (0, 1), judged.output


def test_every_code_of_a_remark_is_on_the_page_and_no_other():
    source = (ROOT / "temper_core" / "profiles" / "lint.py").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "profiles.md").read_text(encoding="utf-8")

    codes = {*re.findall(r'Remark\(\s*"([a-z_]+)"', source)}
    table = page.partition("| code | warns of |")[2].partition("\n\n")[0]
    assert codes == {*re.findall(r"`([a-z_]+)`", table)} - {"cpu_fraction"}


def test_the_published_schema_is_what_the_command_prints():
    printed = CliRunner().invoke(command, ["schema"])

    published = (ROOT / "docs" / "profile.schema.json").read_text(encoding="utf-8")
    assert printed.exit_code == 0
    assert printed.stdout == published
    assert json.loads(published) == profile_schema()


def test_every_keyword_of_the_schema_is_one_that_is_judged_here():
    told = {"type", "properties", "items", "description", "title", "$schema", "$id", "if", "else"}

    assert keywords(profile_schema()) <= told | {*TESTS}


def keywords(schema):
    found = set()
    for key, value in schema.items():
        found.add(key)
        if key == "properties":
            found.update(*(keywords(each) for each in value.values()))
        elif isinstance(value, dict):
            found |= keywords(value)
        elif key == "anyOf":
            found.update(*map(keywords, value))
    return found


GROUP = '[[thread_groups]]\nname = "a"\n'


@pytest.mark.parametrize(
    "text",
    [
        "",
        'id = "a"',
        'id = "A"\n' + GROUP,
        'id = "a"\ncolour = 3\n' + GROUP,
        'id = "a"\nthread_groups = []',
        'id = "a"\nschema_version = 2\n' + GROUP,
        'id = "a"\n' + GROUP + 'override = "remove"',
        'id = "a"\n' + GROUP + "match = [{}]",
        'id = "a"\n' + GROUP + 'match = [{ comm_prefix = "abcdefghijklmnop" }]',
        'id = "a"\n' + GROUP + 'treatment = "turbo"',
        'id = "a"\n' + GROUP + "cpu_fraction = 0",
        'id = "a"\nfingerprint.versions = ["~8"]\n' + GROUP,
        'id = "a"\nmachine_shape.cores = [1, 2, 3]\n' + GROUP,
        'id = "a"\nextends = "b"\n[[thread_groups]]\noverride = "remove"',
    ],
)
def test_what_the_schema_refuses_the_reader_refuses_too(text):
    assert list(misfits(tomli.loads(text), profile_schema()))
    with pytest.raises(DocumentError):
        parse_profile(text, "x.toml")


@pytest.mark.parametrize("path", ["top", "group"])
def test_every_key_is_described(path):
    schema = profile_schema()["properties"]
    keys = schema if path == "top" else schema["thread_groups"]["items"]["properties"]

    assert [key for key, said in keys.items() if not said.get("description")] == []
