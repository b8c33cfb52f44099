"""Nodes that are asked to be restored: a real instrument, a real agent, and nodes without one."""

import json
import os
import subprocess
import threading

import pytest

from temper_core import Leftover, Mode, Restored, Status
from temper_core.testing import MadeContext, make_snapshot
from temper_plugin_kubernetes.accounts import Account
from temper_plugin_kubernetes.annotation_requests import AnnotationRequests as ObeyedWishes
from temper_plugin_kubernetes.instrument import ClusterInstrument
from temper_plugin_kubernetes.node import NodeState
from temper_plugin_kubernetes.options import Options
from tests.control_plane.cluster import wait_until
from tests.kube_client.made_server import agent as made_agent
from tests.kube_client.made_server import listed
from tests.kube_client.made_server import node as made_node
from tests.kubernetes.tools.conftest import TEMPER, told_by_an_agent
from tests.machine_paths.watch import NOTES

ASKED, DONE = "temper.codes/restore-requested", "temper.codes/restored"
FORMER = "temper.codes/agent-former-requests"
SWITCH = "temper.codes/safe-mode-requested"
STATUS = "temper.codes/agent-status"
NOTHING_LEFT = Restored()
SEEN = make_snapshot(status=Status(Mode.SAFE_MODE, "requested"))


class AnnotationRequests:
    """What the agent behind a instrument was asked for."""

    def __init__(self, found):
        self.heard, self.found = [], found

    def restore(self, reason, done):
        self.heard.append(f"restore: {reason}")
        threading.Timer(0.05, done, [self.found]).start()


@pytest.fixture
def accompany(node, access):
    opened = []

    def begin(found=NOTHING_LEFT, **options):
        wishes = AnnotationRequests(found)
        context = MadeContext(
            node,
            lambda reason: wishes.heard.append(f"safe mode: {reason}"),
            lambda: wishes.heard.append("released"),
            wishes.restore,
        )
        given = Options(node=node, write_every_s=0.2, **options)
        opened.append(ClusterInstrument(context, access, given, Account()))
        opened[-1].tell(SEEN)
        return wishes

    yield begin
    for instrument in opened:
        instrument.close()


def test_the_annotation_has_the_host_restored_and_is_answered_with_the_time(
    cluster, node, accompany
):
    wishes = accompany()

    cluster.annotate(node, restore_requested="2026-11-21T10:00:00Z")

    answer = wait_until(lambda: cluster.annotations(node).get(DONE), "the answer")
    assert len(answer) == len("2026-11-21T10:00:00Z")
    uid = cluster.get("Node", node)["metadata"]["uid"]
    reason = f"the node annotation {ASKED}=2026-11-21T10:00:00Z is set (Node {uid})"
    assert wishes.heard == ["released", f"restore: {reason}"]


def test_what_was_left_is_told_beside_the_answer(cluster, node, accompany):
    accompany(Restored((), (Leftover("/var/lib/temper/diary", "is not Temper's"),)))

    cluster.annotate(node, restore_requested="true")

    wait_until(lambda: DONE in cluster.annotations(node), "the answer")
    assert (
        cluster.annotations(node)["temper.codes/restore-left"]
        == "/var/lib/temper/diary: is not Temper's"
    )


def test_an_agent_that_starts_while_it_stands_restores_at_once(cluster, node, accompany):
    cluster.annotate(node, restore_requested="true")

    wishes = accompany()

    assert [each.partition(":")[0] for each in wishes.heard] == ["restore"]


def test_who_asks_for_the_same_again_waits_for_another_answer():
    asked, heard = {ASKED: "true"}, []
    context = MadeContext("one", print, lambda: None, lambda _reason, done: heard.append(done))
    wishes = ObeyedWishes(context)
    wishes.obey(NodeState("u", asked))
    wishes.obey(NodeState("u"))
    heard[0](NOTHING_LEFT)
    late = wishes.answer(asked)
    wishes.obey(NodeState("u", asked))
    heard[0](NOTHING_LEFT)
    early = wishes.answer(asked)

    heard[1](NOTHING_LEFT)

    assert (late, early) == ({}, {})
    assert set(wishes.answer(asked)) == {DONE}


def test_taking_it_away_releases_the_node_and_removes_the_answer(cluster, node, accompany):
    wishes = accompany()
    cluster.annotate(node, restore_requested="true")
    wait_until(lambda: DONE in cluster.annotations(node), "the answer")

    cluster.annotate(node, restore_requested=None)

    wait_until(lambda: DONE not in cluster.annotations(node), "no answer any more")
    assert wishes.heard[-1] == "released"


def test_the_kill_switch_still_counts_once_the_request_is_gone(cluster, node, accompany):
    wishes = accompany()
    cluster.annotate(node, restore_requested="true", safe_mode_requested="true")
    wait_until(lambda: DONE in cluster.annotations(node), "the answer")

    cluster.annotate(node, restore_requested=None)

    wait_until(lambda: wishes.heard[-1].startswith("safe mode"), "the kill switch")


@pytest.mark.parametrize("refusal", ["", "false", "0", "Off"])
def test_what_does_not_ask_does_nothing(cluster, node, accompany, refusal):
    cluster.annotate(node, restore_requested=refusal)

    wishes = accompany()

    assert wishes.heard == ["released"]


def test_an_agent_that_is_about_to_go_says_nothing_more_and_stays_as_it_is(
    cluster, node, accompany
):
    wishes = accompany()
    wait_until(lambda: STATUS in cluster.annotations(node), "the status")

    cluster.annotate(node, restore_requested="uninstall")
    wait_until(
        lambda: DONE in (now := cluster.annotations(node)) and STATUS not in now, "the answer alone"
    )
    cluster.annotate(node, restore_requested=None)

    wait_until(lambda: cluster.annotations(node) == {}, "nothing left")
    assert wishes.heard[-1].startswith("restore:")


def test_the_answer_is_given_where_annotations_are_not_to_be_written(cluster, node, accompany):
    accompany(annotations=False)

    cluster.annotate(node, restore_requested="true")

    wait_until(lambda: DONE in cluster.annotations(node), "the answer")
    assert STATUS not in cluster.annotations(node)


@pytest.fixture
def agent(cluster, fleet, token_file, kubeconfig_of, tmp_path):
    """Start a real agent of one node; it only observes, as this kernel may have no sched_ext."""
    state = tmp_path / "lib/temper"
    state.mkdir(parents=True)
    kubeconfig = kubeconfig_of({"tokenFile": str(token_file)}, "agent-kubeconfig")
    settings = tmp_path / "agent.toml"
    settings.write_text(
        f'run_directory = "{tmp_path}/run"\nstate_directory = "{state}"\n'
        f'[pods]\nsource = "kubernetes"\n[scheduler]\nenforce = false\n'
        f'[plugins.kubernetes]\nkubeconfig = "{kubeconfig}"\nwrite_every_s = 0.5\n'
        f'[observe]\nperiod_s = 0.5\n[server]\nlisten = ""\n'
    )
    running = []

    def start(node):
        log = (tmp_path / "log").open("a")
        environment = {**os.environ, "NODE_NAME": node}
        del environment[NOTES]  # a restoration takes the lock of the node, which is the machine's
        command = [TEMPER, "agent", "--settings", str(settings)]
        running.append(subprocess.Popen(command, stderr=log, env=environment))
        log.close()
        wait_until(lambda: STATUS in cluster.annotations(node), "the agent", 40)
        return state, running[-1]

    fleet.node("lived-in", {})
    fleet.agent("lived-in")
    yield start
    for process in running:
        process.terminate()
        process.wait(20)


def safe_mode(settings, *arguments):
    """Run ``temper safe-mode``, which looks at the node's lock and the machine's own requests."""
    environment = {name: value for name, value in os.environ.items() if name != NOTES}
    command = [TEMPER, "safe-mode", "--settings", str(settings), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)


def test_a_real_agent_leaves_nothing_and_writes_nothing_until_it_is_released(agent, k8s, tmp_path):
    state, _ = agent("lived-in")
    settings = tmp_path / "agent.toml"
    safe_mode(settings, "on", "--requester", "alice")
    was_written = (state / "safe-mode-requests.json").exists()

    done = k8s("restore", "lived-in", "--timeout", "40")
    safe_mode(settings, "on", "--requester", "bob")
    was_left = state.exists()
    asking = json.loads(safe_mode(settings, "status", "--output", "json").stdout)
    released = k8s("restore", "lived-in", "--release")

    assert (done.stdout, done.returncode) == ("lived-in: restored\n", 0)
    assert (was_written, was_left) == (True, False)
    assert set(asking["requests"]) == {"alice", "bob", "kubernetes"}
    assert released.stdout == "lived-in: released; the agent works again\n"
    wait_until((state / "safe-mode-requests.json").exists, "what still stands, written down again")


def test_an_agent_that_is_rolled_meanwhile_makes_nothing_anew(cluster, agent, k8s, tmp_path):
    state, first = agent("lived-in")
    k8s("restore", "lived-in", "--timeout", "40")

    first.terminate()
    first.wait(20)
    wait_until(lambda: STATUS not in cluster.annotations("lived-in"), "its farewell")
    agent("lived-in")
    wait_until(lambda: DONE in cluster.annotations("lived-in"), "the answer of the next one")
    settings = tmp_path / "agent.toml"
    safe_mode(settings, "on", "--requester", "bob")

    assert not state.exists()
    assert ASKED in cluster.annotations("lived-in")


def test_uninstalling_leaves_nothing_on_any_node(cluster, fleet, agent, k8s):
    state, _ = agent("lived-in")
    fleet.node("left-over", told_by_an_agent("enforcing", 7))
    fleet.node("bare")
    cluster.annotate("left-over", safe_mode_requested="true")

    done = k8s("restore", "--all-nodes", "--uninstall", "--timeout", "40", "-o", "json")

    told = {each["node"]: each["state"] for each in json.loads(done.stdout)["nodes"]}
    assert done.returncode == 0
    assert told["lived-in"] == "restored"
    assert (told["left-over"], told["bare"]) == ("no_agent", "nothing")
    assert not state.exists()
    assert cluster.annotations("lived-in") == {}
    assert cluster.annotations("left-over") == {"temper.codes/safe-mode-requested": "true"}


def test_a_node_that_does_not_answer_is_told_and_its_request_stands(cluster, fleet, k8s):
    fleet.node("deaf", told_by_an_agent("enforcing", 7))
    fleet.agent("deaf")

    done = k8s("restore", "deaf", "--timeout", "0.5")

    assert done.returncode == 1
    assert done.stdout == (
        "deaf: no answer: within 0.5 s; the request stays until the node's agent receives it\n"
    )
    assert ASKED in cluster.annotations("deaf")


def test_a_node_that_does_not_answer_holds_up_no_uninstall(cluster, fleet, k8s):
    fleet.node("deaf", told_by_an_agent("enforcing", 7))
    fleet.agent("deaf")

    done = k8s("restore", "--all-nodes", "--uninstall", "--timeout", "0.5")

    assert done.returncode == 0
    assert "deaf: no answer: within 0.5 s; files may remain on the node" in done.stdout
    assert cluster.annotations("deaf") == {}


def test_a_node_whose_agent_is_gone_is_cleaned_and_the_operator_told(cluster, fleet, k8s):
    fleet.node("left-over", told_by_an_agent("enforcing", 7))

    done = k8s("restore", "left-over")

    assert done.returncode == 1
    assert "run `temper restore` there" in done.stdout
    assert cluster.annotations("left-over") == {}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "name the nodes to restore, or give --all-nodes"),
        (("n1", "--all-nodes"), "name the nodes to restore, or give --all-nodes"),
        (("--all-nodes", "--uninstall", "--release"), "exclude each other"),
        (("no-such-node",), "there is no node 'no-such-node' in this cluster"),
    ],
)
def test_what_makes_no_sense_is_the_users_error(k8s, arguments, told):
    done = k8s("restore", *arguments)

    assert done.returncode == 2
    assert told in done.stderr


def test_a_mistyped_node_gets_the_one_that_was_meant(fleet, k8s):
    fleet.node("left-over", told_by_an_agent("enforcing", 7))

    done = k8s("restore", "left-ovre")

    assert done.stderr.endswith("in this cluster; did you mean 'left-over'?\n")


def test_the_agents_own_account_may_do_it_as_the_job_of_the_chart_does(
    cluster, fleet, k8s, token_file, kubeconfig_of
):
    fleet.node("left-over", told_by_an_agent("enforcing", 7))

    done = k8s(
        "restore",
        "--all-nodes",
        "--uninstall",
        kubeconfig=kubeconfig_of({"tokenFile": str(token_file)}),
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert cluster.annotations("left-over") == {}


def test_a_watch_that_is_lost_writes_nothing_but_the_outcome(made, ask):
    nameless = [{"type": "MODIFIED", "object": {"metadata": 5}}]
    made.answers["/api/v1/nodes"] = lambda query: nameless if "watch" in query else listed(one)
    made.answers["/api/v1/namespaces/temper/pods"] = listed(made_agent("n1"))
    made.answers["/api/v1/nodes/n1"] = one = made_node("n1")

    done = ask("restore", "n1", "--timeout", "1", "--output", "json")

    assert (done.returncode, done.stderr) == (1, "")
    assert [each["state"] for each in json.loads(done.stdout)["nodes"]] == ["unanswered"]


FROZEN = "admission policy 'keep' denied request: it is frozen by the platform team"
LACKING = 'nodes "n1" is forbidden: User "me" cannot patch resource "nodes" in API group ""'


def refused(message):
    return 403, {"kind": "Status", "message": message}


def serve_nodes(made, **annotations):
    """Serve n1 and n2 with their agents. The API server takes every change of them."""
    nodes = [made_node(name, **annotations) for name in ("n1", "n2")]
    made.answers["/api/v1/nodes"] = lambda query: [] if "watch" in query else listed(*nodes)
    agents = [made_agent(name) for name in ("n1", "n2")]
    made.answers["/api/v1/namespaces/temper/pods"] = listed(*agents)
    for node in nodes:
        made.answers[f"/api/v1/nodes/{node['metadata']['name']}"] = node


def changed_nodes(made):
    return [path for method, path, _ in made.asked if method == "PATCH"]


def test_a_node_that_a_policy_keeps_delays_no_other_node(made, ask):
    serve_nodes(made)
    made.answers["/api/v1/nodes/n1"] = refused(FROZEN)

    done = ask("restore", "--all-nodes", "--timeout", "0.5")

    assert changed_nodes(made) == ["/api/v1/nodes/n1", "/api/v1/nodes/n2"]
    assert (
        f"n1: the request cannot be written: the API server refuses with status 403: {FROZEN}"
        in (done.stdout)
    )
    assert done.returncode == 1


@pytest.mark.parametrize("answer", [made_node("n1"), refused(FROZEN)], ids=["taken", "kept"])
def test_a_right_that_is_missing_for_a_later_node_is_its_outcome(made, ask, answer):
    serve_nodes(made)
    made.answers["/api/v1/nodes/n1"] = answer
    made.answers["/api/v1/nodes/n2"] = refused(LACKING)

    done = ask("restore", "--all-nodes", "--timeout", "0.5")

    assert changed_nodes(made) == ["/api/v1/nodes/n1", "/api/v1/nodes/n2"]
    assert "n2: the request cannot be written: forbidden: me lacks the right to" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize("option", ["--timeout=0.5", "--release"])
def test_credentials_that_expire_meanwhile_end_the_command(made, ask, option):
    serve_nodes(made, restore_requested="true")
    made.answers["/api/v1/nodes/n2"] = 401, {"kind": "Status", "message": "Unauthorized"}

    done = ask("restore", "--all-nodes", option)

    assert done.returncode == 3
    assert "does not accept these credentials (401)" in done.stderr
    assert "n2" not in done.stdout


def test_a_node_with_nothing_to_change_shows_no_right(made, ask):
    serve_nodes(made)
    made.answers["/api/v1/namespaces/temper/pods"] = listed(made_agent("n2"))
    made.answers["/api/v1/nodes/n2"] = refused(LACKING)

    done = ask("restore", "--all-nodes")

    assert done.stdout == "n1: the node has no agent and no annotations of one\n"
    assert done.returncode == 3


@pytest.mark.parametrize("option", ["--timeout=0.5", "--release"])
def test_a_right_that_is_missing_for_the_first_node_is_an_error(made, ask, option):
    serve_nodes(made, restore_requested="true")
    made.answers["/api/v1/nodes/n1"] = made.answers["/api/v1/nodes/n2"] = refused(LACKING)

    done = ask("restore", "--all-nodes", option)

    assert changed_nodes(made) == ["/api/v1/nodes/n1"]
    assert done.returncode == 3
    assert done.stderr.endswith(
        "forbidden: me lacks the right to patch nodes in the whole cluster\n"
    )


def test_annotations_that_remain_on_one_node_delay_no_other_node(made, ask):
    serve_nodes(made, restore_requested="uninstall", restored="2026-11-21T10:00:00Z")
    answers = iter([made_node("n1")])
    made.answers["/api/v1/nodes/n1"] = lambda _: next(answers, refused(FROZEN))

    done = ask("restore", "--all-nodes", "--uninstall", "--timeout", "20")

    first, second = done.stdout.splitlines()
    assert first.startswith("n1: restored, except for")
    assert "its annotations remain: the API server refuses with status 403" in first
    assert second == "n2: restored"
    assert changed_nodes(made).count("/api/v1/nodes/n2") == 2


@pytest.mark.parametrize("of_the_node", [{}, {"restore_requested": "false"}])
def test_a_release_also_withdraws_the_request_of_a_former_node_object(made, ask, of_the_node):
    former = {"agent_message": "no sched_ext", "agent_former_requests": f"{ASKED},{SWITCH}"}
    nodes = [made_node("n1", **former, **of_the_node), made_node("n2", agent_message="ok")]
    made.answers["/api/v1/nodes"] = listed(*nodes)
    made.answers["/api/v1/nodes/n1"] = nodes[0]

    done = ask("restore", "--all-nodes", "--release")

    assert done.stdout == "n1: released; the agent works again\n"
    assert made.bodies[-1] == {"metadata": {"annotations": {ASKED: "false"}}}


@pytest.mark.parametrize(
    "said",
    [
        {"agent_message": f"the node annotation {ASKED}=now is set (Node u)"},
        {"agent_message": f"the node annotation {ASKED}=now was set on a former Node object"},
        {"agent_former_requests": SWITCH},
    ],
)
def test_a_release_withdraws_no_request_that_the_agent_does_not_name(made, ask, said):
    made.answers["/api/v1/nodes"] = listed(made_node("n1", **said))

    done = ask("restore", "n1", "--release")

    assert done.stdout == "n1: it has no request to withdraw\n"
    assert changed_nodes(made) == []


def test_an_agent_whose_node_was_registered_anew_is_released(cluster, node, accompany, k8s):
    wishes = accompany()
    cluster.annotate(node, restore_requested="true")
    wait_until(lambda: DONE in cluster.annotations(node), "the answer")
    cluster.without_node(node)
    cluster.node(node)
    wait_until(lambda: FORMER in cluster.annotations(node), "the new object")

    released = k8s("restore", node, "--release")

    assert released.stdout == f"{node}: released; the agent works again\n"
    wait_until(lambda: FORMER not in cluster.annotations(node), "the withdrawal")
    assert wishes.heard[-1] == "released"


def test_a_node_that_a_policy_keeps_delays_no_release(made, ask):
    serve_nodes(made, restore_requested="true")
    made.answers["/api/v1/nodes/n1"] = refused(FROZEN)

    done = ask("restore", "--all-nodes", "--release")

    assert FROZEN in done.stdout
    assert "n2: released; the agent works again" in done.stdout
    assert done.returncode == 1
