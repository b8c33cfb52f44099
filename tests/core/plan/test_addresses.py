from temper_core.plan import ProfileCatalogue, decide, render_engine
from temper_core.settings.models import Settings
from temper_core.testing import make_machine, make_pod


def test_a_pod_whose_cgroup_is_no_utf_8_shares_the_open_layer_with_a_note():
    pod = make_pod(cgroups=("kubepods.slice/evil\udcff/",), priority=1_000_000)

    plan = decide([pod], ProfileCatalogue(), make_machine(), Settings())

    assert plan.layer_by_pod == {pod.key: "open"}
    assert "folded" in [note.code for note in plan.notes]
    assert render_engine(plan).isascii()
