"""Other software that moves threads is warned of, and keeps no engine away."""

import pytest

from temper_core.scheduler.preflight.checks import CheckState
from temper_core.scheduler.preflight.preflight import look_closely, verdict
from temper_core.scheduler.preflight.rival_checks import RIVALS, conflicting_software
from temper_core.settings import Settings


@pytest.mark.parametrize("comm", RIVALS)
def test_each_is_named_with_its_process_and_what_it_does(node, comm):
    node.put("proc/4711/comm", f"{comm}\n")
    node.put("proc/4712/comm", f"{comm}\n")

    found = conflicting_software(node.roots)

    name, why = RIVALS[comm]
    assert found.state is CheckState.WARNING
    assert found.detail == f"{name} runs (process 4711): {why}"
    assert found.remedy


def test_several_are_told_in_one_line(node):
    node.put("proc/12/comm", "tuned\n")
    node.put("proc/9/comm", "irqbalance\n")

    told = conflicting_software(node.roots).detail.split("; ")

    assert [each.partition(" runs ")[0] for each in told] == ["irqbalance", "TuneD"]


@pytest.mark.parametrize("comm", ["tuned-adm", "bash", "koordlets", "irqbalance-ui"])
def test_others_are_none_of_its_business(node, comm):
    node.put("proc/4711/comm", f"{comm}\n")

    assert conflicting_software(node.roots).state is CheckState.OK


def test_it_is_one_of_the_closer_looks_and_keeps_no_engine_away(node):
    node.put("proc/4711/comm", "koordlet\n")

    checks = [
        each for each in look_closely(node.roots, Settings()) if each.name == "conflicting_software"
    ]

    assert [each.state for each in checks] == [CheckState.WARNING]
    assert verdict(checks) is None
