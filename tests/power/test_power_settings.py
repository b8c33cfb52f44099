"""``[plugins.power]`` of the settings file: its durations, its bounds, and what it refuses."""

import pytest
from attrs import evolve

from temper_core import DocumentError
from temper_plugin_power.placing.subjects import Choices
from temper_plugin_power.settings.durations import seconds
from temper_plugin_power.settings.power import PowerSettings, power_settings


@pytest.fixture
def read(tmp_path):
    """Return a function that reads the lines of a table as settings."""

    def reading(*lines):
        path = tmp_path / "agent.toml"
        path.write_text("\n".join(lines))
        return power_settings(path)

    return reading


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1s", 1), ("90s", 90), ("5m", 300), ("2h", 7200), ("999h", 3596400)],
)
def test_a_duration_has_a_number_and_a_unit(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "0s", "5", "m", "-5m", "1.5m", "5 m", "5M", "1000000s", "٣s"])
def test_another_text_is_no_duration(text):
    with pytest.raises(ValueError, match="must be a duration such as 30s, 5m or 1h"):
        seconds(text)


def test_without_a_table_the_defaults_hold(read):
    assert read() == PowerSettings()
    assert PowerSettings().extender.choices == Choices()


def test_settings_reach_the_scores(read):
    settings = read(
        "[plugins.power.extender]",
        'twin_staleness = "1m"',
        "marginal = false",
        "cap_penalty_gpu = 7",
    )

    expected = evolve(Choices(), twin_staleness_s=60.0, is_marginal=False, cap_penalty_gpu=7.0)
    assert settings.extender.choices == expected


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("score_scale = 50", "extender.score_scale: must be one of 10, 100, not 50"),
        ("cpu_util_coeff = 1.1", "extender.cpu_util_coeff"),
        ("ref_node_watts = 0", "extender.ref_node_watts"),
        ("cap_penalty_cpu = -1", "extender.cap_penalty_cpu"),
        ('marginal = "no"', "extender.marginal: must be true or false"),
        ('twin_staleness = "soon"', "extender.twin_staleness: must be a duration"),
        ("stale = 1", "extender: unknown key 'stale'"),
    ],
)
def test_a_setting_that_does_not_fit_is_named(read, line, problem):
    with pytest.raises(DocumentError) as raised:
        read("[plugins.power.extender]", line)

    assert problem in str(raised.value)


@pytest.mark.parametrize("alias", ["", "a/b", "Upper.case", "-a"])
def test_an_alias_is_a_prefix_of_annotations(read, alias):
    with pytest.raises(DocumentError, match="annotation_aliases"):
        read("[plugins.power]", f'annotation_aliases = ["{alias}"]')


@pytest.mark.parametrize(
    ("table", "line", "problem"),
    [
        ("", 'node_selector = "managed"', "node_selector: must be labels such as 'zone=a"),
        ("", 'node_selector = "a=b,"', "node_selector"),
        (".classifier", 'prometheus_url = "prometheus"', "must be such as http://prometheus:9090"),
        (".classifier", 'energy = "kepler"', "classifier.energy"),
        (".classifier", "gpu_proxy_watts = 0", "classifier.gpu_proxy_watts"),
        (".classifier", 'skip_namespaces = ["A"]', "must be the name of a namespace, not 'A'"),
        (".node", 'spec_file = "x"', "node.spec_file: must be an absolute path, or empty, not 'x'"),
        (".node", 'powercap_path = ""', "node.powercap_path: must be an absolute path, not ''"),
        (".operator", 'policy = "static"', "operator.policy"),
        (".operator", "static_hp_frac = 1.01", "operator.static_hp_frac"),
        (".operator", "queue_perf_per_hp_node = 0", "operator.queue_perf_per_hp_node"),
        (".operator.facility", 'ambient_metric = "1"', "must be the name of a metric, or empty"),
        (".operator.caps", "cpu_eco_pct = 101", "operator.caps.cpu_eco_pct"),
        (".operator", "dry_run = 0", "operator.dry_run: must be true or false"),
    ],
)
def test_a_setting_of_the_operator_that_does_not_fit_is_named(read, table, line, problem):
    with pytest.raises(DocumentError) as raised:
        read(f"[plugins.power{table}]", line)

    assert problem in str(raised.value)


def test_the_defaults_of_the_operator_touch_no_node():
    settings = PowerSettings()

    assert settings.operator.dry_run
    assert settings.classifier.interval == "30s"
    assert settings.classifier.reclassify_interval == "15m"
    assert settings.node_selector == "joulie.io/managed=true"
