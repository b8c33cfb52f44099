"""Values: what is written of them, and what is refused before anything is installed."""

import json
import sys
import tomllib
from enum import Enum

import pytest
import yaml
from attrs import asdict
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from temper_core.settings import Settings
from tests.kubernetes.chart.charts import CHART, ROOT, values_file
from tests.kubernetes.chart.written_values import comments

sys.path.insert(0, str(ROOT / "docs"))

from helm_reference import THE_CHARTS_OWN, settings_schema

TEXT = (CHART / "values.yaml").read_text()
VALUES = yaml.safe_load(TEXT)
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
FROM_HELM = {"global"}


def test_the_chart_is_of_the_version_of_what_it_installs():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert chart["version"] == chart["appVersion"] == project["version"]


def test_every_value_is_in_the_schema_and_the_other_way_round():
    described = {path for path, _ in _described(SCHEMA)} - FROM_HELM

    assert described == set(_paths(VALUES, SCHEMA))


def test_every_value_has_a_comment_which_the_schema_repeats():
    said = comments(TEXT)

    for path, schema in _described(SCHEMA):
        if path not in FROM_HELM:
            words = schema.get("description", "").rstrip(".")
            assert words, f"{path} is not described"
            assert said[path].startswith(words), f"{path}: {said[path]!r} and {words!r}"


def test_every_object_of_the_schema_is_closed_or_says_what_its_values_are():
    for path, schema in _described(SCHEMA):
        if "properties" in schema:
            assert schema["additionalProperties"] is False, path


def test_the_schema_knows_every_setting_of_the_agent():
    assert SCHEMA["$defs"]["settings"] == settings_schema(), "run python docs/helm_reference.py"


def test_every_default_of_the_settings_is_taken(helm, tmp_path):
    given = _plain(asdict(Settings()))
    for path in THE_CHARTS_OWN:
        *tables, key = path.split(".")
        table = given
        for name in tables:
            table = table[name]
        del table[key]
    given["plugin_host"].pop("allow")

    assert helm.render(*values_file(tmp_path, {"agent": {"settings": given}}))


REFUSED = {
    "nonsense: 1": "additional properties 'nonsense' not allowed",
    "image: {pullPolicy: Sometimes}": "'/image/pullPolicy'",
    "image: {digest: sha256:12}": "'/image/digest'",
    "image: {tag: 'a b'}": "'/image/tag'",
    "image: {pullSecrets: [registry]}": "'/image/pullSecrets/0'",
    "listen: everywhere": "'/listen'",
    "agent: {enabled: true}": "'/agent': additional properties 'enabled'",
    "agent: {port: 80}": "'/agent/port': minimum: got 80",
    "agent: {port: '9100'}": "'/agent/port': got string, want integer",
    "agent: {logLevel: loud}": "'/agent/logLevel'",
    "agent: {resources: {limit: {}}}": "'/agent/resources': additional properties 'limit'",
    "agent: {tolerations: [{operator: Maybe}]}": "'/agent/tolerations/0/operator'",
    "agent: {hostPaths: {state: var/lib}}": "'/agent/hostPaths/state'",
    "agent: {nodeExpressions: [{key: a}]}": "'/agent/nodeExpressions/0': missing",
    "agent: {terminationGracePeriodSeconds: 1}": "'/agent/terminationGracePeriodSeconds'",
    "agent: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}": "'maxSurge'",
    "agent: {profiles: {my-service: x}}": "'my-service' does not match",
    "agent: {probes: {startup: {period: 1}}}": "'/agent/probes/startup'",
    "agent: {settings: {schedular: {}}}": "'/agent/settings': additional properties 'schedular'",
    "agent: {settings: {scheduler: {enforce: maybe}}}": "'/agent/settings/scheduler/enforce'",
    "agent: {settings: {scheduler: {steer_s: 0.01}}}": "'/agent/settings/scheduler/steer_s'",
    "agent: {settings: {server: {listen: x}}}": "additional properties 'listen' not allowed",
    "agent: {settings: {tiers: {high: {kind: Open!}}}}": "'/agent/settings/tiers/high/kind'",
    "agent: {settings: {tiers: {low: {util_range: [1]}}}}": "/low/util_range'",
    "agent: {settings: {workloads: [{tier: high}]}}": "missing property 'name'",
    "agent: {canary: {settings: {plan: {cores: 1}}}}": "'/agent/canary/settings/plan'",
    "agent: {canary: {enabled: true}}": "agent.canary.nodeSelector: needs a label",
    "scheduler: {weight: 0}": "'/scheduler/weight'",
    "scheduler: {placement: {replicas: 0}}": "'/scheduler/placement/replicas'",
    "webhook: {cpuRequestFactor: 0}": "'/webhook/cpuRequestFactor'",
    "webhook: {cpuRequestFactor: 1.5}": "'/webhook/cpuRequestFactor'",
    "webhook: {cpuRequestFactor: '0.0'}": "'/webhook/cpuRequestFactor'",
    "webhook: {failurePolicy: Fail}": "additional properties 'failurePolicy' not allowed",
    "webhook: {timeoutSeconds: 30}": "'/webhook/timeoutSeconds': maximum: got 30, want 10",
    "networkPolicy: {apiServer: [{cidr: 10.0.0.1}]}": "missing property 'port'",
    "networkPolicy: {dns: [{}]}": "'/networkPolicy/dns/0'",
    "networkPolicy: {collectorNamespaces: ['*']}": "'/networkPolicy/collectorNamespaces/0'",
    "serviceMonitor: {interval: fast}": "'/serviceMonitor/interval'",
    "serviceMonitor: {enabled: true, interval: 5s}": "serviceMonitor.scrapeTimeout: 10s is longer",
    "serviceMonitor: {enabled: true, scrapeTimeout: 1m30s, interval: 89000ms}": "1m30s is longer",
    "agent: {settings: {plugins: {kubernetes: {stale_s: 1}}}}": "properties 'stale_s' not allowed",
    "agent: {settings: {plugins: {linter: {hot_cpu: 2}}}}": "/plugins/linter/hot_cpu'",
    "agent: {token: {existingSecret: 'a: b'}}": "'/agent/token/existingSecret'",
    'webhook: {existingSecret: "a\\nb"}': "'/webhook/existingSecret'",
    'power: {extender: {tls: {existingSecret: "a\\nhostNetwork: true"}}}': "/tls/existingSecret'",
    "dashboard: {reach: host}": "'/dashboard/reach'",
    "dashboard: {prometheus: prometheus:9090}": "'/dashboard/prometheus'",
    "dashboard: {image: {tag: 'a b'}}": "'/dashboard/image/tag'",
    "dashboard: {replicas: 2}": "'/dashboard': additional properties 'replicas' not allowed",
    'dashboard: {token: {existingSecret: "a\\nb"}}': "'/dashboard/token/existingSecret'",
    "prometheusRule: {namespace: '{a: b}'}": "'/prometheusRule/namespace'",
    "grafanaDashboards: {namespace: A}": "'/grafanaDashboards/namespace'",
    "agent: {env: [{name: NODE_NAME, value: another}]}": "'/agent/env/0/name'",
    "hookTolerations: [{operator: Maybe}]": "'/hookTolerations/0/operator'",
    "restoreOnUninstall: 'yes'": "'/restoreOnUninstall': got string, want boolean",
}


@pytest.mark.parametrize("given", REFUSED)
def test_a_wrong_value_is_refused_by_name(helm, tmp_path, given):
    said = helm.refusal(*values_file(tmp_path, yaml.safe_load(given)))

    assert REFUSED[given] in said


NUMBERS = {
    "agent.port": st.integers(-1, 70_000),
    "webhook.timeoutSeconds": st.integers(-1, 12),
    "webhook.cpuRequestFactor": st.floats(-0.5, 1.5).map(lambda value: round(value, 3)),
    "agent.settings.scheduler.watchdog_ms": st.integers(0, 40_000),
    "agent.settings.observe.budget_cpu_ratio": st.floats(-0.1, 1.1).map(lambda v: round(v, 4)),
}
ALLOWED = {
    "agent.port": lambda value: 1024 <= value <= 65_535,
    "webhook.timeoutSeconds": lambda value: 1 <= value <= 10,
    "webhook.cpuRequestFactor": lambda value: 0 < value <= 1,
    "agent.settings.scheduler.watchdog_ms": lambda value: 1_000 <= value <= 30_000,
    "agent.settings.observe.budget_cpu_ratio": lambda value: 0 < value <= 1,
}


@settings(
    max_examples=20,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.sampled_from(sorted(NUMBERS)).flatmap(lambda path: st.tuples(st.just(path), NUMBERS[path]))
)
def test_a_number_is_taken_within_its_bounds_and_refused_by_name_beyond(helm, tmp_path, asked):
    path, value = asked
    options = values_file(tmp_path, _nested(path, value))

    if ALLOWED[path](value):
        assert helm.render(*options)
    else:
        assert f"'/{path.replace('.', '/')}'" in helm.refusal(*options)


@pytest.mark.parametrize("factor", ["0.7", "1", "1.0", "0.05"])
def test_a_factor_on_the_command_line_is_taken(helm, factor):
    # helm reads a number with a point in it as text there.
    rendered = helm.render("--set", f"webhook.enabled=true,webhook.cpuRequestFactor={factor}")

    (container,) = rendered.get("Deployment", "temper-webhook")["spec"]["template"]["spec"][
        "containers"
    ]
    assert f"--factor={factor}" in container["args"]


def _described(schema, prefix=""):
    for key, each in schema.get("properties", {}).items():
        path = f"{prefix}{key}"
        yield path, each
        yield from _described(each, f"{path}.")


def _paths(values, schema, prefix=""):
    for key, value in values.items():
        path = f"{prefix}{key}"
        yield path
        inner = schema.get("properties", {}).get(key, {})
        if isinstance(value, dict) and "properties" in inner:
            yield from _paths(value, inner, f"{path}.")


def _plain(value):
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _nested(path, value):
    for key in reversed(path.split(".")):
        value = {key: value}
    return value
