"""Requests in the annotations of a Node object that was deleted and registered anew."""

import pytest

from temper_core import Restored
from temper_core.testing import MadeContext
from temper_plugin_kubernetes.annotation_requests import AnnotationRequests
from temper_plugin_kubernetes.node import NodeState

SWITCH, RESTORE = "temper.codes/safe-mode-requested", "temper.codes/restore-requested"
FORMER = "temper.codes/agent-former-requests"


class Agent:
    """What an agent has heard, and the reason of the request that it keeps over restarts."""

    def __init__(self, standing=""):
        self.heard, self.standing, self.done = [], standing, []
        self.restart()

    def restart(self):
        context = MadeContext(
            on_request=self._request,
            on_release=lambda: self._note("released", ""),
            on_restore=self._restore,
            standing_reason=self.standing,
        )
        self.requests = AnnotationRequests(context)

    def sees(self, uid, **annotations):
        named = {f"temper.codes/{key.replace('_', '-')}": each for key, each in annotations.items()}
        self.requests.obey(NodeState(uid, named))

    def _note(self, what, reason):
        self.heard.append(what)
        self.standing = reason

    def _request(self, reason):
        self._note("safe mode", reason)

    def _restore(self, reason, done):
        self._note("restore", reason)
        self.done.append(done)


@pytest.mark.parametrize("key", ["safe_mode_requested", "restore_requested"])
def test_another_node_object_without_the_key_does_not_withdraw(key):
    agent = Agent()
    agent.sees("a", **{key: "true"})

    agent.sees("b")

    name = f"temper.codes/{key.replace('_', '-')}"
    assert "released" not in agent.heard
    assert agent.standing == (
        f"the node annotation {name}=true was set on a former Node object; "
        f"annotate this one with {name}=false to withdraw it (Node a)"
    )


@pytest.mark.parametrize("key", ["safe_mode_requested", "restore_requested"])
@pytest.mark.parametrize("uid", ["a", "b"])
def test_a_value_that_refuses_withdraws_from_any_node_object(key, uid):
    agent = Agent()
    agent.sees("a", **{key: "true"})
    agent.sees("b")

    agent.sees(uid, **{key: "false"})

    assert agent.heard[-1] == "released"


def test_the_request_of_the_new_object_is_withdrawn_by_its_removal():
    agent = Agent()
    agent.sees("a", safe_mode_requested="true")
    agent.sees("b", safe_mode_requested="true")
    bound = agent.standing

    agent.sees("b")

    assert bound.endswith("is set (Node b)")
    assert agent.heard == ["safe mode", "safe mode", "released"]


def test_of_two_former_requests_the_kill_switch_outlasts_the_other():
    agent = Agent()
    agent.sees("a", safe_mode_requested="incident", restore_requested="now")
    agent.sees("b")

    agent.sees("b", restore_requested="false")

    assert agent.heard[-1] == "safe mode"
    assert f"{SWITCH}=incident was set on a former" in agent.standing


@pytest.mark.parametrize("value", ["true", "a (Node c) is set (Node d)", "a\nb", "x" * 300])
def test_it_stands_over_restarts(value):
    agent = Agent()
    agent.sees("a", safe_mode_requested=value)

    agent.restart()
    agent.sees("b")
    first = agent.standing
    agent.restart()
    agent.sees("c")

    assert agent.standing == first
    assert "released" not in agent.heard
    assert first.endswith("withdraw it (Node a)")


@pytest.mark.parametrize("uid", ["a", ""])
def test_after_a_restart_the_removal_from_the_same_object_withdraws(uid):
    agent = Agent()
    agent.sees("a", safe_mode_requested="true")

    agent.restart()
    agent.sees(uid)

    assert agent.heard[-1] == "released"


@pytest.mark.parametrize(
    "reason",
    [
        f"the node annotation {SWITCH}=true is set",
        "the node annotation other=true is set (Node a)",
        "from before",
        "",
    ],
)
def test_a_kept_request_that_names_no_node_object_is_withdrawn_as_before(reason):
    agent = Agent(reason)

    agent.sees("b")

    assert agent.heard == ["released"]


def test_the_agent_names_each_former_request_until_it_is_withdrawn():
    agent = Agent()
    agent.sees("a", safe_mode_requested="incident", restore_requested="now")
    before = agent.requests.answer({})
    agent.sees("b")

    both = agent.requests.answer({})
    agent.sees("b", restore_requested="false")
    one = agent.requests.answer(both)
    agent.sees("b", safe_mode_requested="true")

    assert before == {}
    assert both == {FORMER: f"{RESTORE},{SWITCH}"}
    assert one == {FORMER: SWITCH}
    assert agent.requests.answer(one) == {FORMER: None}


def test_an_agent_about_to_be_removed_names_no_former_request():
    agent = Agent()
    agent.sees("a", restore_requested="uninstall")

    agent.sees("b")

    assert agent.requests.answer({FORMER: RESTORE}) == {FORMER: None}


def test_the_same_request_to_restore_of_a_new_object_is_answered_there():
    agent = Agent()
    agent.sees("a", restore_requested="now")
    agent.done[0](Restored())

    agent.sees("b", restore_requested="now")
    early = agent.requests.answer({RESTORE: "now"})
    agent.done[1](Restored())

    assert early == {}
    assert agent.requests.answer({RESTORE: "now"})
