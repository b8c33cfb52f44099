"""The canary's DaemonSet beside the main one."""

import itertools
import tomllib

import pytest

from tests.kubernetes.chart.charts import values_file


@pytest.mark.parametrize(
    "selector", [{"temper-canary": "true"}, {"pool": "new", "zone": "b"}], ids=["one", "two"]
)
def test_every_node_has_one_agent_the_canary_or_the_main_one(helm, tmp_path, selector):
    canary = {"enabled": True, "nodeSelector": selector}
    more = [{"key": "edge", "operator": "DoesNotExist"}]
    values = {"agent": {"canary": canary, "nodeExpressions": more}}
    rendered = helm.render(*values_file(tmp_path, values))
    main, other = _spec(rendered), _spec(rendered, "temper-agent-canary")

    for choice in itertools.product((None, "true", "new", "b", "else"), repeat=len(selector)):
        labels = {key: said for key, said in zip(selector, choice, strict=True) if said}
        labels["kubernetes.io/os"] = "linux"
        is_canary = selector.items() <= labels.items()
        assert _fits(other, labels) is is_canary, labels
        assert _fits(main, labels) is not is_canary, labels
        assert not _fits(main, {**labels, "edge": ""})
        assert not _fits(other, {**labels, "edge": ""})


def test_the_canary_is_of_its_own_image_and_settings_and_answers_to_the_same_service(
    helm, tmp_path
):
    canary = {
        "enabled": True,
        "image": {"tag": "9.9.9"},
        "nodeSelector": {"temper-canary": True},
        "settings": {"plan": {"reserve_cores": 3}},
    }
    own = {"plan": {"headroom_cores": 2, "reserve_cores": 2}}
    values = {"image": {"tag": "1.0.0"}, "agent": {"canary": canary, "settings": own}}
    rendered = helm.render(*values_file(tmp_path, values))
    main, other = _spec(rendered), _spec(rendered, "temper-agent-canary")

    assert main["containers"][0]["image"].endswith(":1.0.0")
    assert other["containers"][0]["image"].endswith(":9.9.9")
    assert other["nodeSelector"]["temper-canary"] == "true"
    plans = [
        tomllib.loads(rendered.settings(f"temper-agent{end}"))["plan"] for end in ("", "-canary")
    ]
    assert plans == [own["plan"], {"headroom_cores": 2, "reserve_cores": 3}]
    selected = rendered.get("Service", "temper-agent")["spec"]["selector"].items()
    for name in ("temper-agent", "temper-agent-canary"):
        assert (
            selected
            <= rendered.get("DaemonSet", name)["spec"]["template"]["metadata"]["labels"].items()
        )


def test_without_a_canary_the_main_one_asks_nothing_more(helm):
    rendered = helm.render()

    assert "affinity" not in _spec(rendered)
    assert not rendered.has("DaemonSet", "temper-agent-canary")


def _fits(spec, labels):
    """Whether a node of these labels gets such a pod, as the scheduler judges."""
    if not spec["nodeSelector"].items() <= labels.items():
        return False
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    terms = required["nodeSelectorTerms"]
    return any(all(_holds(each, labels) for each in term["matchExpressions"]) for term in terms)


def _holds(expression, labels):
    value = labels.get(expression["key"])
    return {
        "In": lambda: value in expression["values"],
        "NotIn": lambda: value not in expression["values"],
        "Exists": lambda: value is not None,
        "DoesNotExist": lambda: value is None,
    }[expression["operator"]]()


def _spec(rendered, name="temper-agent"):
    return rendered.get("DaemonSet", name)["spec"]["template"]["spec"]
