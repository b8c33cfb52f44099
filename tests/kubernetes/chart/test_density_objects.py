"""What the optional scheduler and webhook are made of."""

import pytest
import yaml

from tests.kubernetes.chart.charts import values_file


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
    assert "caBundle" not in hook["clientConfig"]


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


def test_the_webhook_may_touch_its_own_secret_and_configuration_and_nothing_else(webhook):
    secrets = webhook.get("Role", "temper-webhook")["rules"]
    configurations = webhook.get("ClusterRole", "temper-webhook")["rules"]

    assert [(each["resourceNames"], each["verbs"]) for each in secrets] == [
        (["temper-webhook-tls"], ["get", "update"])
    ]
    assert [(each["resourceNames"], each["verbs"]) for each in configurations] == [
        (["temper-overcommit"], ["get", "patch"])
    ]
    assert webhook.get("Secret", "temper-webhook-tls").keys().isdisjoint({"data", "stringData"})


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


def test_the_placement_service_only_reads_nodes(scheduler):
    assert scheduler.get("ClusterRole", "temper-placement")["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}
    ]
    assert _container(scheduler, "temper-placement")["args"] == [
        "placement",
        "serve",
        "--listen",
        "0.0.0.0:8888",
    ]


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


def _sums(rendered):
    template = rendered.get("Deployment", "temper-scheduler")["spec"]["template"]
    return template["metadata"]["annotations"]
