from unittest.mock import Mock

from tests.workers import SLOW, TOGETHER, ByUnit, unit_of


def test_a_file_is_a_unit_of_work_of_its_own():
    assert unit_of("tests/core/plan/test_shapes.py") == "tests/core/plan/test_shapes.py"


def test_files_that_share_something_of_the_machine_are_one_unit():
    agents = "agents of this node: they hold one lock"
    assert unit_of("tests/core/agent/test_agent_process.py") == agents
    assert unit_of("tests/installed/test_example_plugin.py") == agents


def test_every_file_that_is_named_is_there(request):
    root = request.config.rootpath
    named = [pattern for patterns in TOGETHER.values() for pattern in patterns]
    assert [pattern for pattern in named if not any(root.glob(pattern))] == []


def test_slow_units_are_those_that_there_are(request):
    root = request.config.rootpath
    assert [unit for unit in SLOW if unit not in TOGETHER and not (root / unit).is_file()] == []


def test_slow_units_are_handed_out_before_large_ones(pytester):
    sent = []
    node = Mock(send_runtest_some=sent.extend, shutting_down=False)
    scheduler = ByUnit(pytester.parseconfig("--dist", "loadfile", "--tx", "popen"))
    scheduler.add_node(node)
    large = [f"tests/a.py::test_{number}" for number in range(5)]
    tests = [*large, *(f"{unit}::test" for unit in SLOW if unit not in TOGETHER)]
    scheduler.add_node_collection(node, tests)
    scheduler.schedule()

    assert [tests[index].partition("::")[0] for index in sent][:2] == [
        unit for unit in SLOW if unit not in TOGETHER
    ][:2]
