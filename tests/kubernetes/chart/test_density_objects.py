"""What the optional scheduler and webhook are made of."""

from base64 import b64decode
from datetime import UTC, datetime

import pytest
import yaml
from click.testing import CliRunner

from temper_plugin_density.overcommit.command import overcommit
from temper_plugin_density.overcommit.material import read_authority
from tests.kubernetes.chart.charts import CHART, ROOT, values_file

SETTINGS = "/etc/temper/agent.toml"


@pytest.fixture
def webhook(helm):
    return helm.render("--set", "webhook.enabled=true", namespace="elsewhere")


@pytest.fixture
def scheduler(helm):
    return helm.render("--set", "scheduler.enabled=true", namespace="elsewhere")


def test_the_default_install_changes_neither_placement_nor_requests(helm):
    rendered = helm.render()

    assert not rendered.of("Deployment")
    assert not rendered.of("MutatingWebhookConfiguration")


def test_the_webhook_is_asked_about_new_pods_of_labelled_namespaces_only_and_fails_open(webhook):
    (hook,) = webhook.get("MutatingWebhookConfiguration", "temper-overcommit")["webhooks"]

    assert hook["rules"] == [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods"],
            "scope": "Namespaced",
        }
    ]
    asked = {each["key"]: each for each in hook["namespaceSelector"]["matchExpressions"]}
    assert asked["temper.codes/overcommit"]["values"] == ["enabled"]
    excluded = asked["kubernetes.io/metadata.name"]
    assert (excluded["operator"], set(excluded["values"])) == (
        "NotIn",
        {"kube-system", "elsewhere"},
    )
    assert (hook["failurePolicy"], hook["timeoutSeconds"]) == ("Ignore", 2)
    assert (hook["sideEffects"], hook["reinvocationPolicy"]) == ("None", "Never")


def test_the_webhook_is_reached_where_the_configuration_says(webhook):
    (hook,) = webhook.get("MutatingWebhookConfiguration", "temper-overcommit")["webhooks"]
    service = hook["clientConfig"]["service"]
    ports = webhook.get("Service", service["name"], service["namespace"])["spec"]["ports"]
    container = _container(webhook, "temper-webhook")

    target = next(each["targetPort"] for each in ports if each["port"] == service["port"])
    number = next(each["containerPort"] for each in container["ports"] if each["name"] == target)
    assert f"--listen=0.0.0.0:{number}" in container["args"]
    assert "--namespace=elsewhere" in container["args"]
    assert "--factor=0.7" in container["args"]


def test_the_webhooks_rights_are_those_that_are_proven_minimal(webhook):
    rights = _rights("overcommit-rbac.yaml")

    assert webhook.get("Role", "temper-webhook")["rules"] == rights["Role"]["rules"]
    assert webhook.get("ClusterRole", "temper-webhook")["rules"] == rights["ClusterRole"]["rules"]


def test_the_api_server_trusts_the_authority_that_is_made_with_the_release(webhook):
    (hook,) = webhook.get("MutatingWebhookConfiguration", "temper-overcommit")["webhooks"]
    data = webhook.get("Secret", "temper-webhook-tls", "elsewhere")["data"]

    authority = read_authority({key: b64decode(value) for key, value in data.items()})

    assert hook["clientConfig"]["caBundle"] == data["ca.crt"]
    assert 3649 < (authority.certificate.not_valid_after_utc - datetime.now(UTC)).days + 1 < 3652


def test_without_the_chart_the_same_configuration_is_printed(helm):
    webhook = helm.render("--set", "webhook.enabled=true", namespace="temper")
    (rendered,) = webhook.get("MutatingWebhookConfiguration", "temper-overcommit")["webhooks"]

    printed = CliRunner().invoke(overcommit, ["authority"]).stdout
    _, configuration = yaml.safe_load_all(printed)
    (hook,) = configuration["webhooks"]

    for each in (hook, rendered):
        assert each["clientConfig"].pop("caBundle")
    assert hook == rendered


CERT_MANAGER = """
webhook:
  enabled: true
  existingSecret: ours
  configurationAnnotations: {cert-manager.io/inject-ca-from: temper/ours}
"""


def test_a_certificate_from_elsewhere_is_read_and_nothing_is_made(helm, tmp_path):
    values = tmp_path / "values.yaml"
    values.write_text(CERT_MANAGER)

    rendered = helm.render("--values", str(values))

    configuration = rendered.get("MutatingWebhookConfiguration", "temper-overcommit")
    assert not rendered.has("Secret", "temper-webhook-tls")
    assert "--secret=ours" in _container(rendered, "temper-webhook")["args"]
    assert rendered.get("Role", "temper-webhook")["rules"][0]["resourceNames"] == ["ours"]
    assert configuration["metadata"]["annotations"] == {
        "cert-manager.io/inject-ca-from": "temper/ours"
    }
    assert "caBundle" not in configuration["webhooks"][0]["clientConfig"]


BY_CERT_MANAGER = "webhook.enabled=true,webhook.certManager.enabled=true"


def test_cert_manager_makes_a_certificate_for_the_name_that_the_api_server_calls(helm):
    rendered = helm.render("--set", BY_CERT_MANAGER, namespace="elsewhere")

    certificate = rendered.get("Certificate", "temper-webhook", "elsewhere")["spec"]
    configuration = rendered.get("MutatingWebhookConfiguration", "temper-overcommit")
    client = configuration["webhooks"][0]["clientConfig"]
    assert certificate["dnsNames"] == [f"{client['service']['name']}.elsewhere.svc"]
    assert f"--secret={certificate['secretName']}" in _container(rendered, "temper-webhook")["args"]
    (rule,) = rendered.get("Role", "temper-webhook")["rules"]
    assert rule["resourceNames"] == [certificate["secretName"]]
    assert configuration["metadata"]["annotations"] == {
        "cert-manager.io/inject-ca-from": "elsewhere/temper-webhook"
    }
    assert "caBundle" not in client
    assert not rendered.of("Secret")


def test_without_an_issuer_cert_manager_gets_an_authority_of_this_webhook(helm):
    rendered = helm.render("--set", BY_CERT_MANAGER)

    certificate = rendered.get("Certificate", "temper-webhook")["spec"]
    issuer = rendered.get("Issuer", certificate["issuerRef"]["name"])["spec"]
    authority = rendered.get("Certificate", "temper-webhook-authority")["spec"]
    first = rendered.get("Issuer", authority["issuerRef"]["name"])["spec"]
    assert issuer == {"ca": {"secretName": authority["secretName"]}}
    assert authority["isCA"] is True
    assert first == {"selfSigned": {}}


def test_an_issuer_of_the_cluster_is_taken_and_none_is_made(helm):
    issuer = "webhook.certManager.issuer.name=ours,webhook.certManager.issuer.kind=ClusterIssuer"
    rendered = helm.render("--set", f"{BY_CERT_MANAGER},{issuer}")

    (certificate,) = rendered.of("Certificate")
    assert certificate["spec"]["issuerRef"] == {
        "name": "ours",
        "kind": "ClusterIssuer",
        "group": "cert-manager.io",
    }
    assert not rendered.of("Issuer")


def test_every_rendering_with_cert_manager_is_the_same(helm):
    first, second = (helm.render("--set", BY_CERT_MANAGER) for _ in range(2))

    assert first == second


@pytest.mark.parametrize("other", ["existingSecret", "caBundle"])
def test_cert_manager_and_a_certificate_of_yours_exclude_each_other(helm, other):
    refused = helm.run("template", CHART, "--set", f"{BY_CERT_MANAGER},webhook.{other}=ours")

    assert refused.returncode == 1
    assert f"webhook.{other}" in refused.stderr
    assert "must be empty where webhook.certManager.enabled is true" in refused.stderr


def test_an_authority_that_is_given_is_trusted(helm):
    rendered = helm.render(
        "--set", "webhook.enabled=true,webhook.existingSecret=o,webhook.caBundle=PEM"
    )

    (hook,) = rendered.get("MutatingWebhookConfiguration", "temper-overcommit")["webhooks"]

    assert b64decode(hook["clientConfig"]["caBundle"]) == b"PEM"


def test_one_webhook_may_go_at_a_time(webhook):
    assert webhook.get("Deployment", "temper-webhook")["spec"]["replicas"] == 2
    assert webhook.get("PodDisruptionBudget", "temper-webhook")["spec"]["maxUnavailable"] == 1


def test_the_scheduler_asks_the_placement_service_and_goes_on_without_it(scheduler):
    configuration = yaml.safe_load(
        scheduler.get("ConfigMap", "temper-scheduler")["data"]["scheduler.yaml"]
    )
    (extender,) = configuration["extenders"]
    (port,) = scheduler.get("Service", "temper-placement", "elsewhere")["spec"]["ports"]

    assert [each["schedulerName"] for each in configuration["profiles"]] == ["temper-scheduler"]
    assert extender["urlPrefix"] == f"http://temper-placement.elsewhere.svc:{port['port']}"
    assert extender["prioritizeVerb"] == "prioritize"
    assert extender["nodeCacheCapable"] is True
    assert extender["ignorable"] is True
    assert extender["weight"] == 5


def test_the_placement_services_rights_are_those_that_are_proven_minimal(scheduler):
    rights = _rights("placement-rbac.yaml")

    found = scheduler.get("ClusterRole", "temper-placement")["rules"]

    assert found == rights["ClusterRole"]["rules"]


def test_both_map_priorities_as_the_agents_do(helm):
    on = "webhook.enabled=true,scheduler.enabled=true"
    rendered = helm.render("--set", on)
    mapped = helm.render("--set", f"{on},agent.settings.priority_mapping.high=200000")

    for name in ("temper-placement", "temper-webhook"):
        container = _container(rendered, name)
        assert "--settings" in " ".join(container["args"])
        assert any(each["mountPath"] == SETTINGS for each in container["volumeMounts"])
        assert _sums(rendered, name) != _sums(mapped, name)


def test_a_changed_weight_rolls_the_scheduler(helm, scheduler):
    heavier = helm.render(
        "--set", "scheduler.enabled=true,scheduler.weight=9", namespace="elsewhere"
    )

    assert _sums(scheduler) != _sums(heavier)


@pytest.mark.parametrize(
    ("version", "tag", "runs"),
    [
        ("v1.33.4-gke.1036000", "", "v1.33.4"),
        ("v1.34.1+k3s1", "", "v1.34.1"),
        ("v1.35.0", "v1.35.2", "v1.35.2"),
    ],
)
def test_the_scheduler_is_as_old_as_the_cluster(helm, tmp_path, version, tag, runs):
    values = values_file(tmp_path, {"scheduler": {"enabled": True, "image": {"tag": tag}}})

    rendered = helm.render("--kube-version", version, *values)

    assert _container(rendered, "temper-scheduler")["image"].endswith(f"/kube-scheduler:{runs}")


def test_an_own_scheduler_needs_only_the_placement_service(helm):
    rendered = helm.render("--set", "scheduler.enabled=true,scheduler.deploy=false")

    assert rendered.has("Deployment", "temper-placement")
    assert not any("temper-scheduler" in each["metadata"]["name"] for each in rendered.objects)


def _container(rendered, name):
    return rendered.get("Deployment", name)["spec"]["template"]["spec"]["containers"][0]


def _rights(file):
    documents = yaml.safe_load_all((ROOT / "plugins/density" / file).read_text())
    return {each["kind"]: each for each in documents}


def _sums(rendered, name="temper-scheduler"):
    template = rendered.get("Deployment", name)["spec"]["template"]
    return template["metadata"]["annotations"]
