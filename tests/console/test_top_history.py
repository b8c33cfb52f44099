import pytest

from temper_plugin_console.top.history import LOOKS, longer, sparkline
from temper_plugin_console.top.looks import ObservationPoller
from temper_plugin_console.top.screen import whole_text
from tests.console.observations import a_pod, an_observation


def of_pods(**used):
    return {"pods": [{"namespace": "shop", "pod": pod, "cpu_used": n} for pod, n in used.items()]}


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ((), ""),
        ((1.0,), ""),
        ((0.0, 0.0), "▁▁"),
        ((0.0, 0.5, 1.0), "▁▅█"),
        ((2.0, 4.0), "▅█"),
    ],
)
def test_the_largest_value_is_a_whole_bar(values, drawn):
    assert sparkline(values) == drawn


def test_a_history_has_the_last_looks_of_what_is_there():
    history = {}
    for look in range(LOOKS + 3):
        history = longer(history, of_pods(web=float(look)))
    history = longer(history, of_pods(web=9.0, db=1.0))

    assert history["pods shop/web"][-2:] == (LOOKS + 2.0, 9.0)
    assert len(history["pods shop/web"]) == LOOKS
    assert history["pods shop/db"] == (1.0,)
    assert longer(history, of_pods(db=2.0)) == {"pods shop/db": (1.0, 2.0)}


def test_a_layer_and_a_workload_of_one_name_have_a_history_each():
    document = {
        "layers": [{"name": "low", "cpus_used": 3.0}],
        "pods": [{"pod": "low", "cpu_used": 1.0}],
    }

    assert longer({}, document) == {"layers low": (3.0,), "pods low": (1.0,)}


def test_the_screen_draws_the_looks_of_a_pod(view):
    used = iter([0.1, 0.8, 0.4])
    looks = ObservationPoller.begin(
        lambda _: an_observation(view.last, pods=(a_pod(cpu_used=next(used)),)), 50
    )
    first = "".join(line.plain for line in whole_text(looks.seen, 150))
    looks.look()

    seen = looks.look()

    [row] = [line.plain for line in whole_text(seen, 150) if line.plain.startswith("shop/web")]
    assert "history" not in first
    assert "▂█▅" in row
