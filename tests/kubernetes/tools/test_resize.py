"""``kubectl temper resize`` on objects of a real API server."""

import json

import pytest
from attrs import asdict

from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.applying.record import KEY
from temper_plugin_rightsizer.kinds import POD, TEMPLATES
from tests.control_plane.cluster import PATCHES, pod, unique
from tests.kube_client.made_server import DROP
from tests.kubernetes.tools.conftest import here
from tests.kubernetes.tools.test_rightsizer_patches import containers_of, workload

MIB = 1024 * 1024
KINDS = ("Deployment", "StatefulSet", "DaemonSet", "CronJob")
NOW = Resources(500, 1000, 256 * MIB, 512 * MIB)
WANTED = Resources(1010, 1500, 300 * MIB, 512 * MIB)
LOTS = (
    '{"container":"app","is_init":false,"before":{"limits.cpu":"1"},"after":{"limits.cpu":"lots"}}'
)
BEFORE = {
    "requests": {"cpu": "500m", "memory": "256Mi"},
    "limits": {"cpu": "1", "memory": "512Mi"},
}
AFTER = {
    "requests": {"cpu": "1010m", "memory": "300Mi"},
    "limits": {"cpu": "1500m", "memory": "512Mi"},
}


def row(namespace, owner, container="app", current=NOW, recommended=WANTED, **more):
    return {
        "namespace": namespace,
        "owner": owner,
        "container": container,
        "container_kind": "app" if container == "app" else "sidecar",
        "current": asdict(current),
        "recommended": asdict(recommended),
        "keeps": current == recommended,
        "confidence": "high",
        **more,
    }


@pytest.fixture
def namespace(cluster):
    name = unique("sizes")
    cluster.make({"kind": "Namespace", "metadata": {"name": name}})
    return name


@pytest.fixture
def resize(k8s, tmp_path):
    """Run the command on a report of some rows."""

    def run(*options, rows=None):
        given = []
        if rows is not None:
            report = tmp_path / "report.json"
            report.write_text(json.dumps({"containers": rows}))
            given = [report]
        done = k8s("resize", *given, *options)
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture
def web(cluster, namespace):
    """A workload of each kind."""
    return {kind: create(cluster, kind, namespace) for kind in KINDS}


def create(cluster, kind, namespace, **annotations):
    document = workload(kind)
    document["metadata"] |= {"namespace": namespace, "annotations": annotations}
    return cluster.call("POST", TEMPLATES[kind].path(namespace), document)


def rows_of(namespace):
    return [row(namespace, f"{kind}/web") for kind in KINDS]


def found(cluster, kind, namespace, name="web"):
    path = (POD if kind == "Pod" else TEMPLATES[kind]).path(namespace, name)
    return {**cluster.call("GET", path), "kind": kind}


def sizes(item):
    (app, *_) = item["spec"]["containers"] if item["kind"] == "Pod" else containers_of(item)
    return app["resources"]


def annotation(item):
    return (item["metadata"].get("annotations") or {}).get(KEY)


@pytest.mark.usefixtures("web")
def test_without_apply_the_server_only_says_what_it_would_accept(cluster, namespace, resize):
    done = resize(rows=rows_of(namespace))

    assert done.returncode == 0, done.stderr
    line = f"change   {namespace}/Deployment/web container app: requests.cpu 500m -> 1010m"
    assert line in done.stdout
    assert "4 objects would change" in done.stderr
    assert all(sizes(found(cluster, kind, namespace)) == BEFORE for kind in KINDS)


@pytest.mark.usefixtures("web")
def test_what_is_applied_is_undone_to_the_letter(cluster, namespace, resize):
    done = resize("--apply", "--yes", rows=rows_of(namespace))

    assert done.returncode == 0, done.stdout + done.stderr
    applied = [found(cluster, kind, namespace) for kind in KINDS]
    assert all(sizes(item) == AFTER for item in applied)
    assert all(annotation(item) for item in applied)

    again = resize("--apply", "--yes", rows=rows_of(namespace))
    assert again.returncode == 1
    assert "it has been changed since" in again.stdout
    assert [found(cluster, kind, namespace) for kind in KINDS] == applied

    undone = resize("--undo", "--in", namespace, "--apply", "--yes")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    restored = [found(cluster, kind, namespace) for kind in KINDS]
    assert all(sizes(item) == BEFORE for item in restored)
    assert not any(annotation(item) for item in restored)

    assert "nothing is to be changed" in resize("--undo", "--in", namespace).stdout


@pytest.mark.usefixtures("web")
def test_an_amount_that_was_not_set_is_unset_again(cluster, namespace, resize):
    side = row(
        namespace,
        "Deployment/web",
        "side",
        current=Resources(),
        recommended=Resources(100, None, 64 * MIB, None),
        container_kind="app",
    )

    assert resize("--apply", "--yes", rows=[side]).returncode == 0
    assert containers_of(found(cluster, "Deployment", namespace))[1]["resources"] == {
        "requests": {"cpu": "100m", "memory": "64Mi"}
    }
    assert resize("--undo", "--apply", "--yes", "--in", namespace).returncode == 0

    restored = containers_of(found(cluster, "Deployment", namespace))[1]["resources"]
    assert not restored.get("requests")


@pytest.mark.usefixtures("web")
def test_two_reports_are_undone_to_what_was_there_first(cluster, namespace, resize):
    more = Resources(2000, 2500, 300 * MIB, 512 * MIB)
    resize("--apply", "--yes", rows=[row(namespace, "Deployment/web")])
    second = row(namespace, "Deployment/web", current=WANTED, recommended=more)
    assert resize("--apply", "--yes", rows=[second]).returncode == 0
    assert sizes(found(cluster, "Deployment", namespace))["requests"]["cpu"] == "2"

    assert resize("--undo", "--apply", "--yes", "--in", namespace).returncode == 0

    assert sizes(found(cluster, "Deployment", namespace)) == BEFORE


def set_by_hand(cluster, namespace, **requests):
    item = found(cluster, "Deployment", namespace)
    sizes(item)["requests"] |= requests
    changed = {"spec": {"template": item["spec"]["template"]}}
    cluster.call("PATCH", TEMPLATES["Deployment"].path(namespace, "web"), changed, **PATCHES)


@pytest.mark.usefixtures("web")
def test_an_undo_goes_back_to_what_was_set_by_hand_between_two_reports(cluster, namespace, resize):
    resize("--apply", "--yes", rows=[row(namespace, "Deployment/web")])
    by_hand = Resources(1400, 1500, 400 * MIB, 512 * MIB)
    set_by_hand(cluster, namespace, cpu="1.4", memory="400Mi")
    lower = Resources(1200, 1300, 350 * MIB, 512 * MIB)
    second = row(namespace, "Deployment/web", current=by_hand, recommended=lower)
    assert resize("--apply", "--yes", rows=[second]).returncode == 0

    undone = resize("--undo", "--apply", "--yes", "--in", namespace)

    assert undone.returncode == 0, undone.stdout
    assert sizes(found(cluster, "Deployment", namespace)) == {
        "requests": {"cpu": "1400m", "memory": "400Mi"},
        "limits": {"cpu": "1500m", "memory": "512Mi"},
    }


@pytest.mark.usefixtures("web")
def test_an_undo_leaves_what_somebody_has_changed_since(cluster, namespace, resize):
    resize("--apply", "--yes", rows=[row(namespace, "Deployment/web")])
    set_by_hand(cluster, namespace, cpu="800m")

    done = resize("--undo", "--apply", "--yes", "--in", namespace)

    assert done.returncode == 1
    assert f"left     {namespace}/Deployment/web: " in done.stdout
    assert sizes(found(cluster, "Deployment", namespace))["requests"]["cpu"] == "800m"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "not JSON"),
        (f"[{LOTS}]", "lots"),
        ("[1]", "changes"),
        ('[{"container":"app","is_init":false,"before":{"x":"1"},"after":{"x":"1"}}]', "same keys"),
    ],
)
def test_a_malformed_annotation_is_named_and_changes_nothing(
    cluster, namespace, resize, content, why
):
    create(cluster, "StatefulSet", namespace, **{KEY: content})

    done = resize("--undo", "--apply", "--yes", "--in", namespace)

    assert done.returncode == 1
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"left     {namespace}/StatefulSet/web: annotation {KEY}: ")
    assert why in line
    assert sizes(found(cluster, "StatefulSet", namespace)) == BEFORE


def run(cluster, namespace, node, owner=None, **labels):
    """Run a pod with the label of the workloads ``web``, and return its name."""
    name = unique("web")
    document = pod(name, node, namespace, ownerReferences=[owner] if owner else [])
    document["metadata"]["labels"] = {"app": "web", **labels}
    document["spec"]["containers"] = [
        {"name": "app", "image": "registry.example/app:1", "resources": BEFORE}
    ]
    cluster.run(document)
    return name


@pytest.fixture
def alone(cluster, namespace, node):
    """A running pod without a controller. It has the label of the workloads ``web``."""
    return run(cluster, namespace, node)


@pytest.fixture
def running(cluster, namespace, node, web):
    """A running pod of the Deployment ``web``."""
    return run(cluster, namespace, node, replica_set(cluster, namespace, web["Deployment"]))


def replica_set(cluster, namespace, deployment):
    """Make a ReplicaSet of a Deployment. Return the reference to it."""
    template = deployment["spec"]["template"]
    labels = template["metadata"]["labels"]
    document = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": unique("set"),
            "namespace": namespace,
            "labels": labels,
            "ownerReferences": [reference("Deployment", deployment)],
        },
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }
    return reference("ReplicaSet", cluster.make(document))


def reference(kind, item):
    name, uid = (item["metadata"][key] for key in ("name", "uid"))
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


def canary(cluster, namespace):
    """Make a Deployment whose pods have the label of the workloads ``web``, too."""
    document = workload("Deployment")
    document["metadata"] |= {"name": "web-canary", "namespace": namespace}
    labels = {"app": "web", "track": "canary"}
    document["spec"]["selector"]["matchLabels"] = labels
    document["spec"]["template"]["metadata"]["labels"] = labels
    return cluster.call("POST", TEMPLATES["Deployment"].path(namespace), document)


def test_running_pods_are_resized_in_place_and_back(cluster, namespace, resize, running):
    report = [row(namespace, "Deployment/web")]

    done = resize("--in-place", "--apply", "--yes", rows=report)

    assert done.returncode == 0, done.stdout + done.stderr
    item = found(cluster, "Pod", namespace, running)
    assert sizes(item) == AFTER
    assert annotation(item)
    assert sizes(found(cluster, "Deployment", namespace)) == BEFORE

    undone = resize("--undo", "--apply", "--yes", "--in", namespace)

    assert undone.returncode == 0, undone.stdout + undone.stderr
    item = found(cluster, "Pod", namespace, running)
    assert sizes(item) == BEFORE
    assert annotation(item) is None


def test_running_pods_of_others_are_left(cluster, namespace, node, resize, running, alone):
    others = replica_set(cluster, namespace, canary(cluster, namespace))
    of_canary = run(cluster, namespace, node, others, track="canary")

    done = resize("--in-place", "--apply", "--yes", rows=[row(namespace, "Deployment/web")])

    assert done.returncode == 1, done.stderr
    left = [line for line in done.stdout.splitlines() if line.startswith("left ")]
    why = "it has the labels of Deployment/web, which does not control it"
    assert left == [f"left     {namespace}/Pod/{alone}: {why}"]
    assert sizes(found(cluster, "Pod", namespace, running)) == AFTER
    for name in (alone, of_canary):
        item = found(cluster, "Pod", namespace, name)
        assert (sizes(item), annotation(item)) == (BEFORE, None)


@pytest.mark.parametrize("kind", ["StatefulSet", "DaemonSet"])
def test_pods_that_a_workload_controls_itself_are_resized(
    cluster, namespace, node, resize, web, kind
):
    name = run(cluster, namespace, node, reference(kind, web[kind]))

    done = resize("--in-place", "--apply", "--yes", rows=[row(namespace, f"{kind}/web")])

    assert done.returncode == 0, done.stdout + done.stderr
    assert sizes(found(cluster, "Pod", namespace, name)) == AFTER


def test_a_resize_that_the_server_refuses_changes_nothing(cluster, namespace, resize, alone):
    guaranteed = Resources(1000, 1000, 512 * MIB, 512 * MIB)
    report = [row(namespace, f"Pod/{alone}", recommended=guaranteed)]

    done = resize("--in-place", "--apply", "--yes", rows=report)

    assert done.returncode == 1
    assert "QOS" in done.stdout.upper()
    item = found(cluster, "Pod", namespace, alone)
    assert (sizes(item), annotation(item)) == (BEFORE, None)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"confidence": "low"}, "the confidence is low"),
        ({"managed_by": "the VPA web (mode Auto)"}, "the VPA web (mode Auto) sets the requests"),
        ({"owner": "Job/once"}, "the requests of a Job cannot change"),
        ({"owner": "Pod/alone"}, "--in-place"),
        ({"owner": "Deployment/../../secrets/web"}, "no name of an object"),
        ({"namespace": "shop/../x"}, "no name of an object"),
        ({"owner": "Deployment/gone"}, "not found"),
        ({"container": "gone"}, "there is no container 'gone' any more"),
    ],
)
@pytest.mark.usefixtures("web")
def test_what_is_left_as_it_is_has_a_reason(namespace, resize, changes, why):
    done = resize("--apply", "--yes", rows=[{**row(namespace, "Deployment/web"), **changes}])

    assert done.returncode == 1
    (line,) = done.stdout.splitlines()
    assert line.startswith("left ")
    assert why in line


@pytest.mark.usefixtures("web")
def test_low_confidence_may_be_taken(cluster, namespace, resize):
    report = [row(namespace, "Deployment/web", confidence="low")]

    assert resize("--low-confidence", "--apply", "--yes", rows=report).returncode == 0

    assert sizes(found(cluster, "Deployment", namespace)) == AFTER


def test_a_namespace_of_the_webhook_has_one_owner(cluster, resize):
    name = unique("lowered")
    labels = {"temper.codes/overcommit": "enabled"}
    cluster.make({"kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    create(cluster, "Deployment", name)

    done = resize("--apply", "--yes", rows=[row(name, "Deployment/web")])

    assert done.returncode == 1
    assert "the webhook sets its requests" in done.stdout
    assert sizes(found(cluster, "Deployment", name)) == BEFORE


def refuses_for_real(query):
    """Accept what is only tried, and refuse what is meant."""
    if query.get("dryRun"):
        return {"metadata": {"resourceVersion": "7"}}
    return 409, {"kind": "Status", "message": "the object has been modified"}


def test_a_pod_whose_resize_is_refused_at_last_has_no_record(made, kubeconfig_to, tmp_path):
    path = "/api/v1/namespaces/shop/pods/web-1"
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"containers": [row("shop", "Pod/web-1")]}))
    container = {"name": "app", "resources": BEFORE}
    metadata = {"namespace": "shop", "name": "web-1", "resourceVersion": "6"}
    made.answers["/api/v1/namespaces/shop"] = {"metadata": {"name": "shop"}}
    made.answers[path] = {"metadata": metadata, "spec": {"containers": [container]}}
    made.answers[f"{path}/resize"] = refuses_for_real

    options = ("--in-place", "--apply", "--yes")
    done = here("k8s", "resize", report, *options, kubeconfig=kubeconfig_to(made.url))

    assert done.returncode == 1, done.stderr
    assert "failed   shop/Pod/web-1: the API server refuses with status 409" in done.stdout
    written = [
        body["metadata"]["annotations"][KEY]
        for (method, asked, _), body in zip(made.asked, made.bodies, strict=True)
        if method == "PATCH" and asked == path
    ]
    assert len(written) == 2
    assert json.loads(written[0])[0]["before"]["requests.cpu"] == "500m"
    assert written[1] is None


def test_a_pod_whose_resize_has_no_answer_keeps_its_record(made, kubeconfig_to, tmp_path):
    path = "/api/v1/namespaces/shop/pods/web-1"
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"containers": [row("shop", "Pod/web-1")]}))
    metadata = {"namespace": "shop", "name": "web-1", "resourceVersion": "6"}
    spec = {"containers": [{"name": "app", "resources": BEFORE}]}
    made.answers["/api/v1/namespaces/shop"] = {"metadata": {"name": "shop"}}
    made.answers[path] = {"metadata": metadata, "spec": spec}
    made.answers[f"{path}/resize"] = lambda query: metadata if query.get("dryRun") else DROP

    options = ("--in-place", "--apply", "--yes")
    done = here("k8s", "resize", report, *options, kubeconfig=kubeconfig_to(made.url))

    assert done.returncode == 3, done.stdout
    written = [
        body["metadata"]["annotations"][KEY]
        for (method, asked, _), body in zip(made.asked, made.bodies, strict=True)
        if method == "PATCH" and asked == path
    ]
    assert len(written) == 1
    assert written[0]


def test_an_undo_of_a_resize_that_never_happened_removes_the_record(
    cluster, namespace, resize, alone
):
    resize("--in-place", "--apply", "--yes", rows=[row(namespace, f"Pod/{alone}")])
    record = annotation(found(cluster, "Pod", namespace, alone))
    resize("--undo", "--apply", "--yes", "--in", namespace)
    change = {"metadata": {"annotations": {KEY: record}}}
    cluster.call("PATCH", POD.path(namespace, alone), change, **PATCHES)

    done = resize("--undo", "--apply", "--yes", "--in", namespace)

    assert done.returncode == 0, done.stdout
    item = found(cluster, "Pod", namespace, alone)
    assert (sizes(item), annotation(item)) == (BEFORE, None)


def test_without_an_api_server_it_ends_with_3(kubeconfig_to, tmp_path):
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"containers": [row("shop", "Deployment/web")]}))

    done = here("k8s", "resize", report, kubeconfig=kubeconfig_to("http://127.0.0.1:1"))

    assert done.returncode == 3
    assert "no API server" in done.stderr


@pytest.mark.parametrize(
    ("options", "content", "why"),
    [
        ([], None, "give a REPORT, or --undo"),
        (["--undo"], "{}", "give a REPORT, or --undo"),
        (["--in", "shop"], "{}", "--in is for --undo"),
        (["--apply"], "{}", "--yes"),
        (["--undo", "--in", "../x"], None, "must be a namespace's name"),
        ([], "{", "is not JSON"),
        ([], "[]", "containers: must be a list"),
        ([], '{"containers": 1}', "containers: must be a list"),
    ],
)
def test_bad_input_is_one_line(kubeconfig_to, tmp_path, options, content, why):
    report = tmp_path / "report.json"
    report.write_text(content or "")
    given = [] if content is None else [report]

    done = here("k8s", "resize", *given, *options, kubeconfig=kubeconfig_to("http://127.0.0.1:1"))

    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert why in line
