import json
import math

import click
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from temper_core.cli import observe
from temper_core.cli.main import temper as root
from temper_core.console import output_formats, output_option, print_json
from temper_core.result_formats import YAML, OutputFormat

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NUMBERS_OF_OTHERS = [
    "1e5",
    "12e345",
    "-.5e+9",
    "0o17",
    "1.",
    "no",
    "on",
    "12:30",
    "0x1f",
]


def printed(value, *arguments, option=output_option):
    @click.command()
    @option
    def command(output):
        print_json(value) if output == "json" else click.echo(output)

    return CliRunner().invoke(command, arguments)


def outputs(group, path=()):
    """Yield the name of each command below *group*, and the type of its option --output."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from outputs(command, (*path, name))
        for option in command.params:
            if "--output" in option.opts:
                yield " ".join((*path, name)), option.type


@pytest.mark.usefixtures("agent")
def test_yaml_and_json_are_the_same_document(temper):
    as_json = temper(observe.command, "-o", "json").output
    as_yaml = temper(observe.command, "-o", "yaml").output

    known, read = json.loads(as_json), yaml.safe_load(as_yaml)
    assert read["layers"] == known["layers"]
    assert [*read] == [*known]
    assert as_yaml.startswith("schema_version: 1\n")


def test_every_command_that_has_json_has_yaml():
    choices = {name: kind for name, kind in outputs(root) if isinstance(kind, click.Choice)}

    assert len(choices) > 30
    assert {name for name, kind in choices.items() if not isinstance(kind, OutputFormat)} == set()


@given(VALUES)
def test_yaml_holds_every_value(value):
    result = printed(value, "-o", "yaml")

    assert yaml.safe_load(result.output) == value
    assert result.output.isascii()


@pytest.mark.parametrize("word", NUMBERS_OF_OTHERS)
def test_a_word_that_another_reader_takes_for_a_number_is_quoted(word):
    assert printed({"name": word}, "-o", "yaml").output == f"name: '{word}'\n"


def test_what_json_writes_of_other_numbers_is_yaml_too():
    assert math.isnan(yaml.safe_load(printed({"x": math.nan}, "-o", "yaml").output)["x"])


def test_a_name_with_half_a_surrogate_pair_is_escaped():
    assert printed({"comm": "x\udc80"}, "-o", "yaml").output == 'comm: "x\\uDC80"\n'


def test_a_format_of_the_command_itself_is_no_document():
    formats = output_formats("table", "json", "html")

    assert printed({}, "-o", "html", option=formats).output == "html\n"
    assert printed({}, option=formats).output == "table\n"


def test_a_wrong_format_is_refused_with_all_that_are_known():
    result = printed({}, "-o", "xml")

    assert result.exit_code == 2
    assert "'table', 'json', 'yaml'" in result.output
    assert OutputFormat(["json", "table"]).choices == ("json", YAML, "table")
