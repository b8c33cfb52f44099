"""How targets are found and named: by the chart's ServiceMonitors, and by the example without."""

import json

import pytest
import yaml

from tests.kubernetes.chart.charts import ROOT, values_file
from tests.prometheus import promtool

EXAMPLE = ROOT / "examples/prometheus.yaml"
RULES = ROOT / "deploy/helm/temper/files/rules/alerts.yaml"
OF_A_POD = {
    "__address__": "10.0.0.3:9100",
    "__meta_kubernetes_pod_node_name": "worker-3",
    "__meta_kubernetes_pod_name": "temper-x7k2p",
    "__meta_kubernetes_namespace": "temper",
    "__meta_kubernetes_pod_label_temper_codes_track": "main",
}


@pytest.fixture
def example(tmp_path):
    """The example with targets in place of an API server, which Debian's build cannot ask."""
    (tmp_path / "prometheus").mkdir()
    document = yaml.safe_load(EXAMPLE.read_text())
    document["rule_files"] = [
        str((EXAMPLE.parent / each).resolve()) for each in document["rule_files"]
    ]

    def with_target(**labels):
        told = {"__meta_kubernetes_pod_label_" + k: v for k, v in labels.items() if k != "port"}
        told["__meta_kubernetes_pod_container_port_name"] = labels.get("port", "metrics")
        for job in document["scrape_configs"]:
            if job.pop("kubernetes_sd_configs", None):
                target = {**OF_A_POD, **told}
                job["static_configs"] = [{"targets": [target.pop("__address__")], "labels": target}]
        path = tmp_path / "prometheus.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    return with_target


def found(path, job):
    """Return the labels of the job's targets, as Prometheus would scrape them."""
    done = promtool("check", "service-discovery", "--timeout=1s", path, job, text=True)
    assert done.returncode == 0, done.stderr
    return [each["labels"] for each in json.loads(done.stdout) if each["labels"]]


def test_the_example_is_valid_and_finds_every_alert(example):
    alerts = RULES.read_text().count("- alert: ")

    done = promtool("check", "config", example(), text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{alerts} rules found" in done.stdout


def test_hosts_are_called_by_their_names(example):
    names = {each["instance"] for each in found(example(), "temper-agent")}

    assert names == {"worker-1", "worker-2"}


def test_agents_pods_are_called_by_their_nodes(example):
    (labels,) = found(example(app_kubernetes_io_component="agent"), "temper-agent-pods")

    told = {key: value for key, value in labels.items() if not key.startswith("__")}
    assert told == {
        "instance": "worker-3", "job": "temper-agent", "node": "worker-3", "track": "main"
    }  # fmt: skip


@pytest.mark.parametrize("labels", [{}, {"app_kubernetes_io_component": "agent", "port": "other"}])
def test_other_pods_and_ports_are_left_alone(example, labels):
    path = example(**labels)

    assert found(path, "temper-agent-pods") == []
    assert found(path, "temper-services") == []


@pytest.mark.parametrize(
    ("component", "port"), [("webhook", "metrics"), ("placement", "http"), ("dashboard", "page")]
)
def test_services_are_called_as_the_alerts_know_them(example, component, port):
    path = example(app_kubernetes_io_component=component, port=port)

    (labels,) = found(path, "temper-services")

    assert labels["job"] == f"temper-{component}"
    assert found(path, "temper-agent-pods") == []


def test_monitors_select_the_services_that_there_are_by_their_ports(helm):
    given = ["serviceMonitor", "webhook", "scheduler", "dashboard"]
    rendered = helm.render("--set", ",".join(f"{each}.enabled=true" for each in given))

    for monitor in rendered.of("ServiceMonitor"):
        wanted = monitor["spec"]["selector"]["matchLabels"].items()
        (service,) = (
            each for each in rendered.of("Service") if wanted <= each["metadata"]["labels"].items()
        )
        ports = {port["name"] for port in service["spec"]["ports"]}
        assert {each["port"] for each in monitor["spec"]["endpoints"]} <= ports
        assert monitor["metadata"]["name"] == service["metadata"]["name"]
        assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["temper"]}
    assert len(rendered.of("ServiceMonitor")) == 4


def test_the_services_monitors_are_there_with_their_services_only(helm):
    rendered = helm.render("--set", "serviceMonitor.enabled=true")

    (monitor,) = rendered.of("ServiceMonitor")
    assert monitor["metadata"]["name"] == "temper-agent"


def test_values_of_the_monitor_are_taken_up(helm, tmp_path):
    dropped = {"action": "drop", "regex": "temper_pod_.*", "sourceLabels": ["__name__"]}
    added = {"targetLabel": "team", "replacement": "platform"}
    given = {
        "enabled": True, "interval": "15s", "scrapeTimeout": "5s", "labels": {"release": "p"},
        "relabelings": [added], "metricRelabelings": [dropped],
    }  # fmt: skip

    rendered = helm.render(*values_file(tmp_path, {"serviceMonitor": given}))

    monitor = rendered.get("ServiceMonitor", "temper-agent")
    (endpoint,) = monitor["spec"]["endpoints"]
    assert monitor["metadata"]["labels"]["release"] == "p"
    assert (endpoint["interval"], endpoint["scrapeTimeout"]) == ("15s", "5s")
    assert endpoint["relabelings"][-1] == added
    assert endpoint["metricRelabelings"] == [dropped]
