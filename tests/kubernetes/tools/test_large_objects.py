"""What the objects of tenants take of the commands that read many of them."""

import subprocess
import sys

import pytest
from attrs import evolve

from temper_kube.api_server import ApiServer
from temper_plugin_kubernetes.operators import installation, rivals
from temper_plugin_rightsizer.applying.edits import Edit
from temper_plugin_rightsizer.applying.record import KEY, as_annotation
from temper_plugin_rightsizer.applying.targets import Choice, Refusal, edits_of, undos
from temper_plugin_rightsizer.changes import ContainerChange
from tests.kube_client.large_lists import LARGE, MANY, MOST_HELD, many, peak_of
from tests.kube_client.made_server import listed, node
from tests.kube_client.scripted import Scripted, listing
from tests.patience import PATIENCE_S

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/temper/pods"
DEPLOYMENTS = "/apis/apps/v1/deployments"
MIB = 1 << 20
CHANGE = ContainerChange(
    "app", is_init=False, before={"limits.cpu": "1"}, after={"limits.cpu": "2"}
)


@pytest.fixture
def server():
    server = Scripted()
    yield server
    server.close()


def large(name="web", **annotations):
    container = {"name": "app", "image": "registry.example/app:1"}
    spec = {"containers": [{**container, "resources": {"limits": {"cpu": "2"}}}]}
    metric = {"resource": {"name": "cpu", "target": {"type": "Utilization"}}}
    return {
        "metadata": {"name": name, "namespace": "shop", "annotations": annotations},
        "spec": {**spec, "template": {"spec": spec}, "metrics": [metric]},
        "endpoints": [{"conditions": {"ready": False}}],
        "more": "x" * LARGE,
    }


def read_within(server, read):
    """Return what *read* yields, once it has been shown to hold no list of large objects."""
    with ApiServer(server.access) as api:
        peak, found = peak_of(lambda: list(read(api)))
    assert peak < MOST_HELD
    return found


@pytest.mark.parametrize(
    ("check", "before", "name", "found"),
    [
        (rivals.conflicting_software, [], "web", []),
        (rivals.conflicting_software, [], "koordlet", ["koordinator"]),
        (rivals.resource_definitions, [], "nodeslos.koordinator.sh", ["koordinator_resources"]),
        (rivals.autoscalers, [listing("shop")], "web", ["vpa", "hpa"]),
        (installation.priority_classes, [], "web", ["priority_classes"]),
        (installation.webhook, [(200, {}, {"webhooks": []})], "web", ["webhook"]),
    ],
)
def test_a_check_of_the_doctor_holds_one_object(server, check, before, name, found):
    server.lists = [*before, many(large(name))]
    names = ["temper"] if check in (rivals.conflicting_software, installation.webhook) else []

    findings = read_within(server, lambda api: check(api, *names))

    assert [each.check for each in findings] == found


def test_all_places_of_a_rival_are_counted(server):
    server.lists = [many(large("koordlet"))]

    (finding,) = read_within(server, lambda api: rivals.conflicting_software(api, "temper"))

    first = ", ".join(["DaemonSet shop/koordlet"] * 5)
    assert f"({first} and {2 * MANY - 5} more)" in finding.detail


def test_an_undo_holds_one_object_and_the_edits(server):
    server.lists = [many(large(**{KEY: as_annotation([CHANGE])}))]

    found = read_within(server, lambda api: undos(api, ("shop",)))

    edits = [each for each in found if isinstance(each, Edit)]
    assert {(each.kind, each.title) for each in edits} == {
        (kind, f"shop/{kind}/web") for kind in ("Deployment", "StatefulSet", "DaemonSet", "Pod")
    }
    assert [each.changes for each in edits] == [(CHANGE.undone,)] * 4 * MANY
    refused = [each for each in found if isinstance(each, Refusal)]
    assert {each.title for each in refused} == {"shop/CronJob/web"}


def test_resizing_running_pods_holds_one_of_them(server):
    of_web = {"kind": "DaemonSet", "name": "web", "uid": "u-web", "controller": True}
    template = {
        "metadata": {"name": "web", "uid": "u-web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    }
    running = large()
    running["metadata"]["ownerReferences"] = [of_web]
    server.lists = [listing_of(template), listing_of(template), many(running)]
    row = {
        "namespace": "shop",
        "owner": "DaemonSet/web",
        "container": "app",
        "current": {"cpu_limit_millis": 2000},
        "recommended": {"cpu_limit_millis": 3000},
    }
    choice = Choice(takes_low=True, in_place=True)

    found = read_within(server, lambda api: edits_of(api, {"containers": [row]}, choice))

    assert {each.title for each in found} == {"shop/Pod/web"}
    assert len([each for each in found if isinstance(each, Edit)]) == MANY


def listing_of(document):
    return 200, {}, document


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ([CHANGE, CHANGE], "a container is there more than once"),
        (
            [evolve(CHANGE, before={"limits.cpu": "0" * 5000 + "1"})],
            "an amount of more than 100 characters",
        ),
    ],
)
def test_a_record_beyond_what_is_ever_written_is_left(server, content, why):
    server.lists = [listing_of(listed(large(**{KEY: as_annotation(content)})))]

    with ApiServer(server.access) as api:
        refusals = list(undos(api, ("shop",)))

    assert all(why in each.why for each in refusals)
    assert len(refusals) == 5


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("doctor", "--no-kubelets"), DEPLOYMENTS),
        (("doctor", "--no-kubelets"), NODES),
        (("status",), NODES),
        (("resize", "--undo"), DEPLOYMENTS),
    ],
)
def test_without_memory_a_command_ends_in_one_line(made, kubeconfig_to, arguments, path):
    odd = {"metadata": {"name": "odd", "namespace": "shop"}, "spec": {"env": [[]] * 2_000_000}}
    made.answers[NODES], made.answers[PODS] = listed(node("one")), listed()
    made.answers["/apis/apps/v1/daemonsets"] = listed()
    made.answers[path] = listed(odd)
    program = (
        "from temper_core import bounded_memory\n"
        f"bounded_memory.MOST_BYTES = {96 * MIB}\n"
        "from temper_plugin_kubernetes.operators import kubectl_plugin\n"
        "kubectl_plugin()"
    )

    words = [sys.executable, "-c", program, *arguments, "--kubeconfig", kubeconfig_to(made.url)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S)

    assert (ended.returncode, ended.stdout) == (3, "")
    assert "Traceback" not in ended.stderr
    assert ended.stderr.endswith("the API server's answers take more than 96 MiB of memory\n")
