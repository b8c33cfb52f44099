"""Who may leave a test to another target, over a collection of pytest's own."""

import re

import pytest

from tests import heavy

SKIPPED = "import pytest\n\n@pytest.mark.skip\ndef test_it(): ...\n"
LEFT = "import pytest\n\n@pytest.mark.heavy('test-kube')\ndef test_it(): ...\n"
CONDITIONAL = "import pytest\n\n@pytest.mark.skipif(True, reason='no kernel')\ndef test_it(): ...\n"


SLOW = "import time\n\ndef test_it():\n    time.sleep(2)\n"


class Checked:
    def pytest_configure(self, config):
        config.addinivalue_line("markers", "heavy(target)")

    def pytest_collection_modifyitems(self, items):
        heavy.check_places(items)
        heavy.lift_time_limit(items)


@pytest.fixture
def collect(pytester, monkeypatch):
    """Collect one test of a folder, where only ``kernel`` is heavy."""
    monkeypatch.setattr(heavy, "FOLDERS", frozenset([pytester.path / "kernel"]))

    def run(folder, text, *options):
        pytester.mkdir(folder).joinpath("test_it.py").write_text(text)
        options = options or ("--collect-only",)
        return pytester.runpytest_inprocess(*options, plugins=[Checked()])

    return run


@pytest.mark.parametrize("text", [SKIPPED, LEFT])
def test_a_skip_outside_of_a_heavy_folder_fails_the_collection(collect, text):
    done = collect("core", text)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(
        ["*1 tests outside of tests/kernel are skipped*", "*core/test_it.py*"]
    )


@pytest.mark.parametrize("text", [SKIPPED, LEFT])
def test_a_skip_in_a_heavy_folder_is_collected(collect, text):
    assert collect("kernel", text).ret == pytest.ExitCode.OK


def test_a_skip_on_a_condition_is_collected_anywhere(collect):
    assert collect("core", CONDITIONAL).ret == pytest.ExitCode.OK


@pytest.mark.parametrize(("folder", "outcome"), [("core", "failed"), ("kernel", "passed")])
def test_a_test_that_hangs_is_ended_except_in_a_heavy_folder(collect, folder, outcome):
    collect(folder, SLOW, "--timeout", "0.5").assert_outcomes(**{outcome: 1})


def test_every_heavy_folder_is_there_and_every_target_is_in_the_makefile(request):
    assert all(folder.is_dir() for folder in heavy.FOLDERS)
    targets = re.findall(r"(?m)^([a-z0-9-]+):", (heavy.TESTS.parent / "Makefile").read_text())
    assert {heavy.target_of(item) for item in request.session.items} <= {None, *targets}
