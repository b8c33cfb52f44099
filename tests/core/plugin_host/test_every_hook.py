import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import temper_core
from temper_core import Answer, Endpoint, PluginError, hookimpl, hookspecs
from temper_core.testing import HOOKS, assert_keeps_contract

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "hooks.md"
SPECS = [name for name, it in vars(hookspecs).items() if hasattr(it, "temper_spec")]


@pytest.mark.parametrize("hook", SPECS)
def test_is_documented(hook):
    assert re.search(rf"^## `{hook}\(", PAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize("part", ["Called", "Returned", "On failure"])
@pytest.mark.parametrize("hook", SPECS)
def test_says_when_it_is_called_what_it_returns_and_what_its_failure_costs(hook, part):
    words = inspect.getdoc(getattr(hookspecs, hook))

    assert re.search(rf"^{part}\n    \w", words, re.MULTILINE)


def test_is_known_to_the_test_kit():
    assert list(HOOKS) == SPECS


@pytest.mark.parametrize("hook", SPECS)
def test_is_used_by_a_plugin_of_this_repository(hook):
    # Detectors are contributed by the example: what ships tells workloads by fingerprints, which
    # leave the image to whoever wrote a profile for it.
    places = ("plugins", "examples")
    sources = [
        each for place in places for each in (ROOT / place).glob("*/temper_plugin_*/__init__.py")
    ]

    assert any(f"def {hook}(" in source.read_text() for source in sources)


def test_the_page_says_what_the_code_says():
    checked = subprocess.run(
        [sys.executable, "-m", "cogapp", "--check", "hooks.md"],
        cwd=PAGE.parent,
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_public_name_can_be_imported_and_is_known_to_type_checkers():
    stub = Path(temper_core.__file__).with_suffix(".pyi").read_text()
    declared = re.findall(r'^    "(\w+)",$', stub, re.MULTILINE)

    assert sorted(declared) == list(temper_core.__all__)
    assert all(getattr(temper_core, name) is not None for name in declared)


class Pages:
    """A plugin whose endpoints answer in full."""

    def __init__(self, answer):
        self._answer = answer

    @hookimpl
    def temper_endpoints(self):
        return [Endpoint("page", "GET", "/page", "A page.", lambda _: self._answer)]


@pytest.mark.parametrize(
    "answer",
    [{"a": 1}, Answer(b"a", "text/html"), Answer(file="/etc/passwd"), Answer(stream=iter([b"a"]))],
)
def test_the_contract_holds_for_every_answer_that_can_be_sent(answer):
    assert_keeps_contract(Pages(answer))


@pytest.mark.parametrize("answer", [b"raw", Answer("text"), Answer(headers={"x-a": "1\n2"})])
def test_the_contract_is_broken_by_an_answer_that_cannot_be_sent(answer):
    with pytest.raises(PluginError):
        assert_keeps_contract(Pages(answer))
