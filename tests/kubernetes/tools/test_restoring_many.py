"""Many nodes that are asked to be restored: a few at a time, and told in order."""

import threading

import pytest

from temper_plugin_kubernetes.operators.node_patches import AT_ONCE
from tests.kube_client.made_server import agent, listed, node

NODES = "/api/v1/nodes"
NAMES = [f"n{number:02}" for number in range(2 * AT_ONCE + 1)]
PATIENCE_S = 30


def serve_all(made, **annotations):
    """Serve NAMES with their agents. Return the answer of each node, which may be replaced."""
    nodes = {name: node(name, **annotations) for name in NAMES}
    made.answers[NODES] = lambda query: [] if "watch" in query else listed(*nodes.values())
    made.answers["/api/v1/namespaces/temper/pods"] = listed(*map(agent, NAMES))
    made.answers |= {f"{NODES}/{name}": found for name, found in nodes.items()}


def wait_for_others(made):
    """Let each node but the first wait until ``AT_ONCE`` are asked. Return the nodes asked."""
    together, asked, most, counting = threading.Barrier(AT_ONCE), [], [0], threading.Lock()
    now = [0]

    def answering(name):
        def answer(_):
            with counting:
                asked.append(name)
                now[0] += 1
                most[0] = max(most[0], now[0])
            together.wait(PATIENCE_S)
            with counting:
                now[0] -= 1
            return node(name)

        return answer

    made.answers |= {f"{NODES}/{name}": answering(name) for name in NAMES[1:]}
    return asked, most


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--timeout", "0.2"), "no answer: within 0.2 s"),
        (("--release",), "released; the agent works again"),
    ],
)
def test_a_few_nodes_are_asked_at_a_time_and_told_in_order(made, ask, options, told):
    serve_all(made, restore_requested="true")
    asked, most = wait_for_others(made)

    done = ask("restore", "--all-nodes", *options)

    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == NAMES
    assert all(told in line for line in lines)
    assert (sorted(asked), most) == (NAMES[1:], [AT_ONCE])


def test_a_few_nodes_are_cleaned_at_a_time_and_told_in_order(made, ask):
    serve_all(made, restore_requested="uninstall", restored="2026-11-21T10:00:00Z")
    asked, most = wait_for_others(made)

    done = ask("restore", "--all-nodes", "--uninstall", "--timeout", "20")

    assert done.stdout.splitlines() == [f"{name}: restored" for name in NAMES]
    assert (sorted(asked), most) == (sorted(2 * NAMES[1:]), [AT_ONCE])


def test_no_further_node_is_asked_once_the_credentials_have_expired(made, ask):
    serve_all(made)
    refused = 401, {"kind": "Status", "message": "Unauthorized"}
    made.answers |= {f"{NODES}/{name}": refused for name in NAMES[:1]}

    done = ask("restore", "--all-nodes")

    assert done.returncode == 3
    assert [path for method, path, _ in made.asked if method == "PATCH"] == [f"{NODES}/n00"]
