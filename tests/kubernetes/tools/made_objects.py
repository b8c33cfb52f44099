"""Objects of a cluster that tests of the tools need, as small as the API server takes them."""

classes_path = "/apis/scheduling.k8s.io/v1/priorityclasses"
CLASSES = {
    "temper-critical": (1_000_000, "PreemptLowerPriority"),
    "temper-high": (100_000, "PreemptLowerPriority"),
    "temper-normal": (0, "PreemptLowerPriority"),
    "temper-low": (-100, "Never"),
    "temper-background": (-1000, "Never"),
}


def priority_class(name, value, policy):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": policy,
    }


def workload(name, image, labels=None, kind="DaemonSet"):
    pods = {"app": name}
    container = {"name": "it", "image": image}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "selector": {"matchLabels": pods},
            "template": {"metadata": {"labels": pods}, "spec": {"containers": [container]}},
        },
    }


def installation_of(namespace):
    """Return what the chart makes beside the account and its role, with its collections."""
    core = f"/api/v1/namespaces/{namespace}"
    metadata = {"metadata": {"name": "temper-agent"}}
    ours = {"app.kubernetes.io/name": "temper"}
    yield (
        f"/apis/apps/v1/namespaces/{namespace}/daemonsets",
        workload("temper-agent", "registry.temper.codes/temper:1", ours),
    )
    yield f"{core}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", **metadata}
    yield (
        f"{core}/services",
        {
            "apiVersion": "v1",
            "kind": "Service",
            **metadata,
            "spec": {"clusterIP": "None", "ports": [{"port": 9100}]},
        },
    )
    for name, (value, policy) in CLASSES.items():
        yield classes_path, priority_class(name, value, policy)


def crd(plural, group):
    kind = plural.capitalize()
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    approval = {"api-approved.kubernetes.io": "unapproved, for a test"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": approval},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural[:-1], "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def autoscaler(name):
    target = {"type": "Utilization", "averageUtilization": 80}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }


def webhook(bundle, **hook):
    service = {"name": "temper-webhook", "namespace": "temper", "path": "/mutate"}
    client = {"service": service, **({"caBundle": bundle} if bundle else {})}
    nobody = {"matchLabels": {"temper.codes/overcommit": "never-in-a-test"}}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "temper-overcommit"},
        "webhooks": [
            {
                "name": "overcommit.temper.codes",
                "clientConfig": client,
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Ignore",
                "namespaceSelector": nobody,
                "rules": [],
                **hook,
            }
        ],
    }
