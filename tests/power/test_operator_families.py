"""What the power plugin declares for its operator is what the operator exports."""

from temper_plugin_power.families.operator import OPERATOR
from tests.exported_families import declared, exported
from tests.power.operator_page import operator_page


def test_the_declared_families_are_those_of_the_page():
    assert exported(operator_page()) == declared(OPERATOR)
