import pytest

from tests.versions import DEPENDENT, TESTS


@pytest.mark.parametrize("place", DEPENDENT)
def test_each_place_that_a_second_python_runs_holds_tests(place):
    path = TESTS / place
    assert path.is_file() or any(path.rglob("test_*.py"))


def test_a_second_python_runs_these_and_leaves_the_others_out(pytester, monkeypatch):
    monkeypatch.setattr("tests.versions.TESTS", pytester.path)
    for folder in ("core/plan", "core/http"):
        made = pytester.path / folder
        made.mkdir(parents=True)
        made.joinpath("test_it.py").write_text("def test_it(): ...\n")
    options = ("-p", "tests.versions", "--import-mode=importlib")
    pytester.runpytest_inprocess(*options).assert_outcomes(passed=2)
    second = pytester.runpytest_inprocess(*options, "--second-python")
    second.assert_outcomes(passed=1, deselected=1)
