import pytest

from temper_plugin_tracer.capture.selection import Selection


@pytest.mark.parametrize(
    ("selection", "shown"),
    [
        (Selection(), "the whole node"),
        (Selection(cpus=(0, 4)), "the whole node, only on CPU 0, 4"),
        (Selection("pod shop/web", cpus=(1,)), "pod shop/web, only on CPU 1"),
    ],
)
def test_a_selection_is_shown_with_its_cpus(selection, shown):
    assert selection.shown == shown
