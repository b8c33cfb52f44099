"""What the power plugin declares for its extender is what the extender exports."""

from temper_plugin_power.families.extender import EXTENDER
from tests.exported_families import declared, exported
from tests.power.extender.metrics_page import extender_page


def test_the_declared_families_are_those_of_the_page():
    assert exported(extender_page()) == declared(EXTENDER)
