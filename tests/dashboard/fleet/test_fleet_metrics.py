"""The metrics of the fleet server itself. tests/kubernetes/fleet scrapes them by a Prometheus."""

from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from temper_core import __version__
from temper_plugin_dashboard.fleet.families import FAMILIES
from temper_plugin_dashboard.fleet.measures import kind_of
from temper_serving.certificate_files import CertificateFiles
from tests.dashboard.fleet.made_fleet import (
    NODES,
    PODS,
    another_round,
    fleet_server,
    proxied,
    until_node,
)
from tests.kube_client.made_server import DROP
from tests.power.extender.certificate_pair import certificate_pair
from tests.prometheus import promtool


def samples(client):
    """Return the values by name and labels."""
    text = client.get("/metrics").text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_every_declared_family_is_there_without_a_session(client, entered):
    another_round(entered)
    client.cookies.clear()

    told = {family.name for family in text_string_to_metric_families(client.get("/metrics").text)}

    assert {family.name.removesuffix("_total") for family in FAMILIES} <= told


def test_the_page_of_metrics_has_no_fault_that_promtool_finds(entered):
    another_round(entered)

    checked = promtool("check", "metrics", input=entered.get("/metrics").content)

    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_nodes_are_counted_by_state_from_the_first_round_on(client, entered, made):
    before = samples(client)
    made.answers[proxied("n2")] = DROP
    until_node(entered, "n2", lambda each: each["state"] == "away")

    after = samples(client)

    assert ("temper_dashboard_nodes", "away") not in before
    assert after["temper_dashboard_nodes", "answers"] == 1
    assert after["temper_dashboard_nodes", "away"] == 1
    assert after["temper_dashboard_nodes", "slow"] == 0
    assert after["temper_dashboard_build_info", __version__] == 1


def test_the_answer_of_an_agent_that_is_away_gets_older(entered, made):
    until_node(entered, "n2", lambda each: each["state"] == "answers")
    made.answers[proxied("n2")] = DROP
    until_node(entered, "n2", lambda each: each["state"] == "away")
    ages = []
    for _ in range(3):
        another_round(entered)
        ages.append(samples(entered)["temper_dashboard_answer_age_seconds", "n2"])

    assert ages == sorted(set(ages))
    assert samples(entered)["temper_dashboard_answer_age_seconds", "n1"] < ages[-1]


def test_rounds_without_a_list_of_agents_are_counted(entered, made):
    another_round(entered)
    before = samples(entered)
    made.answers[PODS] = made.answers[NODES] = (500, {"message": "broken"})
    another_round(entered)

    after = samples(entered)

    assert before["temper_dashboard_failed_rounds_total",] == 0
    assert after["temper_dashboard_failed_rounds_total",] >= 1
    assert after["temper_dashboard_rounds_total",] > before["temper_dashboard_rounds_total",]


@pytest.mark.parametrize(
    ("answer", "cause"), [((404, {"error": "no"}), "refused"), (DROP, "no_answer")]
)
def test_requests_of_nodes_pages_without_an_answer_are_counted_by_cause(
    entered, made, answer, cause
):
    made.answers[proxied("n1", "plan")] = answer
    entered.get("/node/n1/plan")

    told = samples(entered)

    failures = {key[1]: told[key] for key in told if key[0].endswith("forwarding_failures_total")}
    assert failures == {"refused": 0, "no_answer": 0, cause: 1}


def test_requests_are_counted_and_timed_by_kind_and_class_of_status(client):
    for path in ("/fleet/nodes", "/fleet/pods", "/", "/nowhere"):
        client.get(path)

    told = samples(client)

    assert told["temper_dashboard_requests_total", "fleet", "4xx"] == 2
    assert told["temper_dashboard_requests_total", "page", "2xx"] == 1
    assert told["temper_dashboard_requests_total", "other", "4xx"] == 1
    assert told["temper_dashboard_request_seconds_count", "fleet"] == 2


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "page"),
        ("/node/n1/", "page"),
        ("/node/n1/observe", "node"),
        ("/node/n1/dashboard/files/app.js", "file"),
        ("/fleet/pod/logs", "pod"),
        ("/fleet/rounds", "fleet"),
        ("/login", "session"),
        ("/metrics", "probe"),
        ("/node/n1\n/x", "node"),
        ("/fleets", "other"),
        ("", "other"),
    ],
)
def test_a_request_has_a_kind_by_its_path(path, kind):
    assert kind_of(path) == kind


def test_a_server_with_an_expired_certificate_is_not_ready(made, tmp_path):
    certificate_pair(tmp_path, age=timedelta(days=2))
    loaded = CertificateFiles.load(tmp_path / "tls.crt", tmp_path / "tls.key")
    client = TestClient(fleet_server(made, tmp_path).application(loaded))

    ready = client.get("/readyz")

    assert (ready.status_code, "was valid until" in ready.text) == (503, True)
    expiry = samples(client)["temper_dashboard_certificate_expiry_timestamp_seconds",]
    assert expiry == loaded.period.expiry
