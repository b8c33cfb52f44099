"""Checks of Temper's own installation: its objects, rights, classes and webhook."""

import base64
import binascii
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Any

from temper_kube.api_server import ApiServer
from temper_kube.failures import ForbiddenError
from temper_kube.list_pages import Json
from temper_plugin_kubernetes.operators.findings import Finding, error, warning

OLDEST_CLUSTER = (1, 33)
CLASSES = {
    "temper-critical": (1_000_000, "PreemptLowerPriority"),
    "temper-high": (100_000, "PreemptLowerPriority"),
    "temper-normal": (0, "PreemptLowerPriority"),
    "temper-low": (-100, "Never"),
    "temper-background": (-1000, "Never"),
}
RIGHTS = (
    ("", "pods", ("list", "watch")),
    ("", "nodes", ("list", "watch", "patch")),
    ("", "events", ("create", "patch")),
)
AGENT = "temper-agent"
WEBHOOK = "temper-overcommit"
REINSTALL = "helm upgrade --install temper deploy/helm/temper -n {}"
SOON_S = 60 * 86_400


def cluster_version(api: ApiServer) -> Iterator[Finding]:
    """Find a cluster that is too old."""
    release = api.get("/version")
    digits = [re.match(r"\d+", str(release.get(key, ""))) for key in ("major", "minor")]
    version = tuple(int(digit[0]) for digit in digits if digit)
    if len(version) == len(OLDEST_CLUSTER) and version < OLDEST_CLUSTER:
        yield warning(
            "kubernetes",
            f"Kubernetes {release.get('gitVersion')} is older than 1.33, the oldest tested version",
            "upgrade the cluster",
        )


def objects(api: ApiServer, namespace: str) -> Iterator[Finding]:
    """Find missing objects of the chart, and agents that are not ready."""
    again = REINSTALL.format(namespace)
    for kind, path in _paths(namespace):
        if api.find(path) is None:
            yield error("installation", f"{kind} {path.rpartition('/')[2]} is missing", again)
    status = (api.find(f"{_daemon_sets(namespace)}/{AGENT}") or {}).get("status") or {}
    desired, ready = status.get("desiredNumberScheduled", 0), status.get("numberReady", 0)
    if ready < desired:
        yield warning(
            "installation",
            f"{ready} of {desired} agents are ready",
            f"kubectl -n {namespace} get pods -l app.kubernetes.io/component=agent -o wide",
        )


def _paths(namespace: str) -> Iterator[tuple[str, str]]:
    yield "DaemonSet", f"{_daemon_sets(namespace)}/{AGENT}"
    for kind, resource in (("ConfigMap", "configmaps"), ("Service", "services")):
        yield kind, f"/api/v1/namespaces/{namespace}/{resource}/{AGENT}"


def _daemon_sets(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/daemonsets"


def rights(api: ApiServer, namespace: str) -> Iterator[Finding]:
    """Find rights that the agents' account lacks, with a SubjectAccessReview for each."""
    user = f"system:serviceaccount:{namespace}:{_account(api, namespace)}"
    lacking = [
        f"{verb} {resource}"
        for group, resource, verbs in RIGHTS
        for verb in verbs
        if not _may(api, user, {"group": group, "resource": resource, "verb": verb})
    ]
    if lacking:
        yield error(
            "rights",
            f"{user} may not {', '.join(lacking)}",
            f"{REINSTALL.format(namespace)} (rbac.create=true), or grant the rights otherwise",
        )


def _account(api: ApiServer, namespace: str) -> str:
    """Return the agents' service account, whose name is a value of the chart."""
    try:
        daemon_set = api.find(f"{_daemon_sets(namespace)}/{AGENT}") or {}
    except ForbiddenError:
        return AGENT
    pod = ((daemon_set.get("spec") or {}).get("template") or {}).get("spec") or {}
    return str(pod.get("serviceAccountName") or AGENT)


def _may(api: ApiServer, user: str, what: Mapping[str, str]) -> bool:
    groups = ["system:serviceaccounts", "system:authenticated"]
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": dict(what)},
    }
    answer = api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
    return bool((answer.get("status") or {}).get("allowed"))


def priority_classes(api: ApiServer) -> Iterator[Finding]:
    """Find PriorityClasses that are missing or differ from the values of their tiers."""
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    present = dict(filter(None, api.read(path, _of_class)))
    missing = [name for name in CLASSES if name not in present]
    if missing:
        yield warning(
            "priority_classes",
            f"missing: {', '.join(missing)}",
            "set priorityClasses.create=true, unless pods use classes of your own",
        )
    for name, (value, policy) in CLASSES.items():
        present_values = present.get(name, (value, policy, False))
        if present_values != (value, policy, False):
            yield error(
                "priority_classes",
                f"{name} has value {present_values[0]}, preemptionPolicy {present_values[1]}, "
                f"globalDefault {present_values[2]}; it should have {value}, {policy}, False",
                "delete it and run helm upgrade: values cannot be changed in place",
            )


def _of_class(priority_class: Json) -> tuple[str, tuple[int, str, bool]] | None:
    """Return the name and the values of a class of ours. None for another one."""
    name = priority_class["metadata"]["name"]
    if name not in CLASSES:
        return None
    policy = priority_class.get("preemptionPolicy") or "PreemptLowerPriority"
    is_default = bool(priority_class.get("globalDefault"))
    return name, (int(priority_class.get("value", 0)), policy, is_default)


def pod_security(api: ApiServer, namespace: str) -> Iterator[Finding]:
    """Find a namespace whose Pod Security level refuses pods with the host's rights."""
    namespace_object = api.find(f"/api/v1/namespaces/{namespace}")
    if namespace_object is None:
        yield error(
            "installation", f"there is no namespace {namespace}", "name it with --namespace"
        )
        return
    label = "pod-security.kubernetes.io/enforce"
    level = (namespace_object["metadata"].get("labels") or {}).get(label, "privileged")
    if level != "privileged":
        yield error(
            "pod_security",
            f"namespace {namespace} enforces Pod Security level {level}: agents are refused",
            f"kubectl label namespace {namespace} {label}=privileged --overwrite",
        )


def webhook(api: ApiServer, namespace: str) -> Iterator[Finding]:
    """Find a webhook without a pod, or one that the API server cannot trust."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    configuration = api.find(f"{path}/{WEBHOOK}")
    if configuration is None:
        return
    effect = "pods start with their full requests meanwhile"
    log = f"kubectl -n {namespace} logs deploy/temper-webhook"
    again = REINSTALL.format(namespace)
    for hook in configuration.get("webhooks") or ():
        yield from _trust(
            str((hook.get("clientConfig") or {}).get("caBundle") or ""), effect, again
        )
        if hook.get("failurePolicy") != "Ignore":
            yield error(
                "webhook",
                "failurePolicy is not Ignore: without the webhook no pod would start",
                again,
            )
    if not _has_endpoint(api, namespace):
        yield warning("webhook", f"no pod answers for temper-webhook; {effect}", log)


def _has_endpoint(api: ApiServer, namespace: str) -> bool:
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    selector = "kubernetes.io/service-name=temper-webhook"
    return any(api.read(slices, _is_answering, selector))


def _is_answering(endpoint_slice: Json) -> bool:
    points = endpoint_slice.get("endpoints") or ()
    return any((point.get("conditions") or {}).get("ready", True) for point in points)


def _trust(bundle: str, effect: str, remedy: str) -> Iterator[Finding]:
    if not bundle:
        yield warning("webhook", f"its configuration has no caBundle; {effect}", remedy)
        return
    expiry = _expiry(bundle)
    if expiry is None:
        yield warning("webhook", f"its caBundle is not a certificate; {effect}", remedy)
    elif expiry < time.time():
        yield error("webhook", f"its certificate authority has expired; {effect}", remedy)
    elif expiry < time.time() + SOON_S:
        days = int((expiry - time.time()) / 86_400)
        yield warning("webhook", f"its certificate authority expires in {days} days", remedy)


def _expiry(bundle: str) -> float | None:
    """Return when the last certificate of the bundle expires. None if it has none."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=base64.b64decode(bundle, validate=True).decode())
    except (ssl.SSLError, binascii.Error, ValueError):
        return None
    expiries: list[Any] = [expiry.get("notAfter") for expiry in context.get_ca_certs()]
    return max(
        (ssl.cert_time_to_seconds(str(expiry)) for expiry in expiries if expiry), default=None
    )
