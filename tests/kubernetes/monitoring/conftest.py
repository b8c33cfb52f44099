import pytest

from tests.kubernetes.chart.conftest import helm  # noqa: F401 - a fixture
from tests.kubernetes.monitoring.firing import Rules
from tests.prometheus import program

ON = ("--set", "prometheusRule.enabled=true,webhook.enabled=true")


@pytest.fixture(scope="session", autouse=True)
def _prometheus_is_fetched(request):
    """With --kube a machine that cannot have a Prometheus is a failure; otherwise tests skip."""
    if request.config.getoption("--kube", default=False):
        program("prometheus", fetch=True)


@pytest.fixture(scope="session")
def rules(helm, tmp_path_factory):  # noqa: F811 - the fixture above
    """The alerts as the chart renders them, webhook and all."""
    rendered = helm.render(*ON)
    groups = rendered.get("PrometheusRule", "temper")["spec"]["groups"]
    return Rules(tmp_path_factory.mktemp("rules"), groups)
