from tests.workers import TOGETHER, unit_of


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
