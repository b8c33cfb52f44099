"""API servers that are slow, busy, half there, or behind something else that answers."""

import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.kube_client.made_server import DROP, agent, listed, node
from tests.kubernetes.tools.conftest import here

NODES, PODS = "/api/v1/nodes", "/api/v1/namespaces/temper/pods"
BUSY = (429, {"kind": "Status", "message": "too many requests"}, {"Retry-After": "1"})


def in_turn(*answers):
    """Give one answer after the other, the last again and again."""
    left = list(answers)
    return lambda _query: left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def waits(monkeypatch):
    """What would be waited for."""
    found = []
    monkeypatch.setattr("temper_kube.api_server.time.sleep", found.append)
    return found


def test_a_server_that_asks_for_patience_gets_it(made, ask, waits):
    made.answers[NODES] = in_turn(BUSY, BUSY, listed(node("one")))
    made.answers[PODS] = listed()

    done = ask("status")

    assert done.stdout.endswith("1 node: 1 without an agent\n")
    assert waits == [1.0, 1.0]


def test_a_server_that_is_busy_for_good_is_told_in_one_line(made, ask, waits):
    made.answers[NODES] = BUSY

    done = ask("status")

    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert "status 429: too many requests" in done.stderr
    assert len(waits) == 3


def test_a_connection_that_was_closed_while_it_rested_is_made_anew(made, ask):
    made.answers[NODES] = listed(node("one"))
    made.answers[PODS] = in_turn(DROP, listed())

    done = ask("status")

    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 node: 1 without an agent")


def test_a_check_that_the_server_fails_keeps_no_other_from_being_run(made, ask):
    made.answers[NODES], made.answers[PODS] = listed(node("one")), listed()
    failing = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    made.answers[failing] = (500, {"kind": "Status", "message": "conversion webhook failed"})

    done = ask("doctor", "--no-kubelets", "-o", "json")

    told = json.loads(done.stdout)
    assert (
        "conversion webhook failed"
        in {each["what"]: each["why"] for each in told["unknown"]}["resource definitions"]
    )
    assert done.returncode == 1


def test_a_page_of_somebody_else_is_no_api_server(made, ask):
    made.answers[NODES] = ["<html>log in</html>"]

    done = ask("status")

    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert done.stderr.startswith("temper: no API server: ")


def test_where_a_proxy_is_named_it_says_that_none_is_used(kubeconfig_to):
    nowhere = kubeconfig_to("http://127.0.0.1:9")

    done = here("k8s", "status", kubeconfig=nowhere, HTTPS_PROXY="http://proxy.example:3128")

    assert done.returncode == 3
    assert done.stderr.endswith("; HTTPS_PROXY is set, and proxies are not used\n")


def test_an_answer_that_is_older_than_the_request_does_not_count(made, ask):
    before = node("one", agent_status="enforcing", restored="then", restore_requested="true")
    made.answers[f"{NODES}/one"] = {}
    made.answers[PODS] = listed(agent("one"))
    made.answers[NODES] = lambda query: [] if "watch" in query else listed(before)

    done = ask("restore", "one", "--timeout", "1")

    assert done.returncode == 1
    assert done.stdout.startswith("one: no answer: within 1 s")


def test_a_node_that_may_not_be_written_to_holds_up_no_other(made, ask):
    made.answers[NODES] = listed(node("one", agent_status="x"), node("two", agent_status="x"))
    made.answers[PODS] = listed()
    made.answers[f"{NODES}/one"] = (422, {"kind": "Status", "message": "a policy denies it"})
    made.answers[f"{NODES}/two"] = {}

    done = ask("restore", "--all-nodes")

    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("one: the request cannot be written: ")
    assert lines[0].endswith("a policy denies it")
    assert lines[1].startswith("two: no agent runs here")


@pytest.mark.parametrize(
    ("version", "is_found"),
    [
        ({"major": "1", "minor": "32", "gitVersion": "v1.32.9"}, True),
        ({"major": "1", "minor": "32+", "gitVersion": "v1.32.9-eks-1"}, True),
        ({"major": "1", "minor": "33", "gitVersion": "v1.33.0"}, False),
        ({"major": "1", "minor": "36+", "gitVersion": "v1.36.3-gke.1"}, False),
        ({"major": "2", "minor": "0", "gitVersion": "v2.0.0"}, False),
        ({}, False),
    ],
)
def test_a_cluster_that_is_too_old_is_found(made, ask, version, is_found):
    made.answers[NODES], made.answers[PODS] = listed(node("one")), listed()
    made.answers["/version"] = version

    told = json.loads(ask("doctor", "--no-kubelets", "-o", "json").stdout)

    found = [each for each in told["findings"] if each["check"] == "kubernetes"]
    assert [each["severity"] for each in found] == (["warning"] if is_found else [])
    assert all(version["gitVersion"] in each["detail"] for each in found)


@pytest.mark.parametrize("namespace", ["a/b", "../kube-system", "A", "", "-x", "a b", "x" * 64])
def test_a_namespace_that_is_no_name_is_the_users_error(made, ask, namespace):
    done = ask("doctor", "--namespace", namespace)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--namespace" in done.stderr
    assert made.asked == []


MALFORMED = {
    "no metadata": {"metadata": None},
    "a name that is a number": {"metadata": {"name": 5}},
    "an annotation that is a number": {"metadata": {"name": "n", "annotations": {"a": 5}}},
    "annotations that are a list": {"metadata": {"name": "n", "annotations": [1]}},
    "conditions that are a number": {"metadata": {"name": "n"}, "status": {"conditions": 5}},
    "a provider that is a number": {"metadata": {"name": "n"}, "spec": {"providerID": 5}},
    "a status that is a text": {"metadata": {"name": "n"}, "status": "well"},
}


@pytest.mark.parametrize("what", MALFORMED)
def test_an_object_with_values_of_other_types_is_one_line(made, ask, what):
    made.answers[NODES], made.answers[PODS] = listed(MALFORMED[what]), listed()

    done = ask("status")

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert "/api/v1/nodes: the API server sent an object that cannot be read: " in done.stderr


def test_a_check_of_malformed_objects_keeps_no_other_from_being_run(made, ask):
    made.answers[NODES], made.answers[PODS] = listed(node("one")), listed()
    made.answers["/apis/apps/v1/deployments"] = listed({"metadata": {"name": "x"}, "spec": {}})
    made.answers["/apis/apps/v1/daemonsets"] = listed()

    done = ask("doctor", "--no-kubelets")

    assert "not checked: conflicting workloads: the API server sent an object" in done.stdout
    assert "FAIL  installation  DaemonSet temper-agent is missing" in done.stdout


@pytest.mark.parametrize("items", [[], [node("one")]])
def test_pages_without_end_are_left_after_a_while(made, ask, monkeypatch, items):
    monkeypatch.setattr("temper_kube.list_pages.LIST_S", 0.3)
    made.answers[NODES] = {"metadata": {"continue": "more"}, "items": items}

    done = ask("status")

    assert (done.returncode, done.stderr) == (
        3,
        "temper: the API server's list does not end within 0.3 s\n",
    )


def test_a_list_that_trickles_is_left_after_a_while(
    server_that_trickles, kubeconfig_to, monkeypatch
):
    monkeypatch.setattr("temper_kube.list_pages.LIST_S", 0.3)

    done = here("k8s", "status", "--kubeconfig", kubeconfig_to(server_that_trickles))

    assert done.returncode == 3
    assert done.stderr == "temper: the API server's list does not end within 0.3 s\n"


@pytest.fixture
def server_that_trickles():
    """Serve a list whose first object never begins: a blank every few milliseconds."""
    ends = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            with suppress(OSError):
                while not ends.wait(0.02):
                    self.wfile.write(b" ")

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    ends.set()
    server.shutdown()
    server.server_close()
    thread.join()
