"""Every hostile text in every field of an answer, and hostile errors of endpoints and streams."""

from functools import partial

import pytest
from structlog.testing import capture_logs

from temper_core import Answer, Endpoint, InputError, MachineError, hookimpl
from temper_core.plugin_host import PluginHost
from temper_core.records.endpoints import Request
from temper_core.server.answers import respond_guarded
from temper_core.server.replies import Reply
from temper_core.settings.models import PluginHostSettings, Settings
from tests.core.plugin_host import hostility
from tests.core.plugin_host.hostility import ERRORS, TEXTS, always, exits, sleeps, text

pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in.*gc_callback:pytest.PytestUnraisableExceptionWarning"
)

ANSWERS = {
    "header": lambda it: Answer(headers={it: it}),
    "media type": lambda it: Answer(media_type=it),
    "json": lambda it: {it: [it]},
    "file": lambda it: Answer(file=it),
    "error": lambda it: (_ for _ in ()).throw(InputError(it)),
}


class Shop:
    @hookimpl
    def temper_endpoints(self):
        return []


@pytest.fixture(autouse=True)
def _nothing_of_it_runs_elsewhere():
    hostility.OUTSIDE.clear()
    yield
    assert hostility.OUTSIDE == []


def reply_to(answer):
    """Return the reply to a request for an endpoint, as the server gets it from the host."""
    host = PluginHost(Settings(plugin_host=PluginHostSettings(deadline_s=0.5)))
    host.add(Shop(), "shop")
    endpoint = Endpoint("page", "GET", "/page", "A page.", answer)
    call = partial(host.call, allows=(InputError,))
    with capture_logs():
        return respond_guarded("shop", call, endpoint, Request())


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("field", ANSWERS)
def test_a_text_of_an_answer_is_sent_plain_or_not_at_all(field, kind):
    reply = reply_to(lambda _: ANSWERS[field](TEXTS[kind]()))

    assert type(reply) is Reply
    assert type(reply.content) is bytes
    assert {type(part) for pair in reply.head for part in pair} == {str}
    assert "set-cookie" not in dict(reply.head)


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_of_an_endpoint_is_one_bounded_line(kind):
    def raises(_):
        raise ERRORS[kind]()  # noqa: RSE102 - a function

    reply = reply_to(raises)

    assert reply.status in (400, 503)
    assert len(reply.content) < 2000
    assert reply.content.count(b"\n") == 1


def test_a_fact_of_the_node_is_a_503_and_never_a_failure_of_the_plugin():
    """A full disk, or a restoration, of which each client's request would be told."""
    host = PluginHost()
    host.add(Shop(), "shop")

    def cannot(_):
        raise MachineError("a restoration is active: nothing is written on this host")

    endpoint = Endpoint("page", "GET", "/page", "A page.", cannot)
    call = partial(host.call, allows=(InputError,))

    replies = [respond_guarded("shop", call, endpoint, Request()) for _ in range(5)]

    assert {reply.status for reply in replies} == {503}
    assert all(b"a restoration is active" in reply.content for reply in replies)
    assert host.failures == {"shop": 0}
    assert not host.why_lost("shop", "endpoint page")


def test_a_header_cannot_pass_as_another_one():
    name = text("set-cookie", lower=always("x-odd"), __format__=always("x-odd"))

    reply = reply_to(lambda _: Answer(headers={name: "stolen=1"}))

    assert (reply.status, b"set-cookie" in reply.content) == (503, True)


@pytest.mark.parametrize("misdeed", [sleeps, exits])
def test_an_answer_of_a_class_of_the_plugins_own_is_refused(misdeed):
    odd = type("OddAnswer", (Answer,), {"__getattribute__": misdeed})

    assert reply_to(lambda _: odd()).status == 503
