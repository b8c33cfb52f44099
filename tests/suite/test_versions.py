import pytest

from tests.versions import INDEPENDENT, TESTS


@pytest.mark.parametrize("folder", INDEPENDENT)
def test_each_folder_that_a_second_python_leaves_out_holds_tests(folder):
    assert any((TESTS / folder).rglob("test_*.py"))


def test_a_second_python_leaves_them_out_and_runs_the_others(pytester, monkeypatch):
    monkeypatch.setattr("tests.versions.TESTS", pytester.path)
    for folder in ("core/plan", "core/http"):
        made = pytester.path / folder
        made.mkdir(parents=True)
        made.joinpath("test_it.py").write_text("def test_it(): ...\n")
    options = ("-p", "tests.versions", "--import-mode=importlib")
    pytester.runpytest_inprocess(*options).assert_outcomes(passed=2)
    second = pytester.runpytest_inprocess(*options, "--second-python")
    second.assert_outcomes(passed=1, deselected=1)
